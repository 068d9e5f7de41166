"""A model of stream threads: the names, states and tasks that follow from the rules of KIP-663 alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kafka_rescale.core.assignment.tasks import TaskId
from kafka_rescale.core.assignment.thread_states import State, ThreadState
from kafka_rescale.core.control.processing import Processing


@dataclass
class Client:
    """The names and states of the threads that follow from the rules of KIP-663 alone.

    :param states: by index. A name is free again when its thread is gone.
    """

    application_id: str
    states: dict[int, ThreadState]

    def name(self, index: int) -> str:
        return f"{self.application_id}-StreamThread-{index}"

    def add(self) -> str:
        """Add a thread. It takes the lowest index that no thread has, not even a thread that is about to end."""
        index = next(i for i in range(1, len(self.states) + 2) if i not in self.states)
        self.states[index] = ThreadState.STARTING
        return self.name(index)

    def remove(self, name: str | None) -> None:
        """Check and note that a thread was asked to end: a live thread, if there is any."""
        alive = [i for i, state in self.states.items() if state is not ThreadState.PENDING_SHUTDOWN]
        assert (name is None) == (not alive)
        if name is not None:
            index = next(i for i in alive if self.name(i) == name)
            self.states[index] = ThreadState.PENDING_SHUTDOWN

    def next_run(self) -> None:
        """Begin another run: threads that were asked to end are gone, and all others run."""
        alive = (i for i, state in self.states.items() if state is not ThreadState.PENDING_SHUTDOWN)
        self.states = dict.fromkeys(alive, ThreadState.RUNNING)

    def check(self, found: Processing) -> None:
        """Compare with the control topic."""
        expected = {self.name(index): state for index, state in self.states.items()}
        assert {thread.name: thread.state for thread in found.threads} == expected
        assert found.state is State.RUNNING

    def check_assignment(self, found: Processing, tasks: Mapping[int, int]) -> None:
        """Check that every task has exactly one running thread, and that shares differ by at most one task."""
        self.check(found)
        dealt = [task for thread in found.threads for task in thread.tasks]
        every = {str(TaskId(part, p)) for part, count in tasks.items() for p in range(count)}
        assert len(dealt) == len(set(dealt))
        assert set(dealt) == (every if found.threads else set())
        shares = [len(thread.tasks) for thread in found.threads]
        assert not shares or max(shares) - min(shares) <= 1
