"""The states of a client and of its stream threads (``KafkaStreams.State``, ``StreamThread.State``)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class State(StrEnum):
    """State of a client as a whole."""

    CREATED = "CREATED"
    REBALANCING = "REBALANCING"
    RUNNING = "RUNNING"
    PENDING_SHUTDOWN = "PENDING_SHUTDOWN"
    NOT_RUNNING = "NOT_RUNNING"
    PENDING_ERROR = "PENDING_ERROR"
    ERROR = "ERROR"

    @property
    def is_running_or_rebalancing(self) -> bool:
        """Whether stream threads may be added and removed (KIP-663)."""
        return self in {State.RUNNING, State.REBALANCING}

    def may_become(self, other: State) -> bool:
        """Return whether a client may change into another state."""
        return other in _TRANSITIONS[self]


class ThreadState(StrEnum):
    """State of one stream thread."""

    CREATED = "CREATED"
    STARTING = "STARTING"
    PARTITIONS_REVOKED = "PARTITIONS_REVOKED"
    PARTITIONS_ASSIGNED = "PARTITIONS_ASSIGNED"
    RUNNING = "RUNNING"
    PENDING_SHUTDOWN = "PENDING_SHUTDOWN"
    DEAD = "DEAD"

    @property
    def is_alive(self) -> bool:
        """Whether the thread takes part in rebalances and may be removed."""
        return self not in {ThreadState.PENDING_SHUTDOWN, ThreadState.DEAD}

    def may_become(self, other: ThreadState) -> bool:
        """Return whether a thread may change into another state."""
        return other in _THREAD_TRANSITIONS[self]


_TRANSITIONS: Mapping[State, frozenset[State]] = {
    State.CREATED: frozenset({State.REBALANCING, State.PENDING_SHUTDOWN}),
    State.REBALANCING: frozenset({State.RUNNING, State.PENDING_SHUTDOWN, State.PENDING_ERROR}),
    State.RUNNING: frozenset({State.REBALANCING, State.RUNNING, State.PENDING_SHUTDOWN, State.PENDING_ERROR}),
    State.PENDING_SHUTDOWN: frozenset({State.NOT_RUNNING}),
    State.NOT_RUNNING: frozenset(),
    State.PENDING_ERROR: frozenset({State.ERROR}),
    State.ERROR: frozenset(),
}

_REBALANCED = frozenset({ThreadState.PARTITIONS_REVOKED, ThreadState.PARTITIONS_ASSIGNED})
_THREAD_TRANSITIONS: Mapping[ThreadState, frozenset[ThreadState]] = {
    ThreadState.CREATED: frozenset({ThreadState.STARTING, ThreadState.PENDING_SHUTDOWN}),
    ThreadState.STARTING: _REBALANCED | {ThreadState.PENDING_SHUTDOWN},
    ThreadState.PARTITIONS_REVOKED: _REBALANCED | {ThreadState.PENDING_SHUTDOWN},
    ThreadState.PARTITIONS_ASSIGNED: _REBALANCED | {ThreadState.RUNNING, ThreadState.PENDING_SHUTDOWN},
    ThreadState.RUNNING: _REBALANCED | {ThreadState.RUNNING, ThreadState.PENDING_SHUTDOWN},
    ThreadState.PENDING_SHUTDOWN: frozenset({ThreadState.DEAD}),
    ThreadState.DEAD: frozenset(),
}
