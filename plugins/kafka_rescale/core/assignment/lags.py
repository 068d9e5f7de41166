"""The clients that have state of a task, and how far that state is behind (KIP-441)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from kafka_rescale.core.assignment.tasks import Client, TaskId

LATEST_OFFSET = -2
"""Offset sum, and lag, of a task that is active and running. The task counts as caught up, whatever is written."""
UNKNOWN_OFFSET_SUM = -3
"""Offset sum, and lag, of state whose position is not known.

Such state never counts as caught up. But it counts as nearer than state with any known lag.
"""
UNBOUNDED_LAG = 2**63 - 1
"""The ``acceptable.recovery.lag`` with which every client counts as caught up."""


def task_lag(offset_sum: int, end_offset_sum: int) -> int:
    """Return how many records a client's state of a task is behind, over all changelog partitions of the task.

    An offset sum beyond the end means that the state belongs to another changelog. The client then has to restore
    the whole changelog.

    :param offset_sum: sum of the offsets up to which the client's state has the changelogs, or ``LATEST_OFFSET``
        or ``UNKNOWN_OFFSET_SUM``.
    :param end_offset_sum: sum of the end offsets of the task's changelog partitions.
    """
    if offset_sum in {LATEST_OFFSET, UNKNOWN_OFFSET_SUM}:
        return offset_sum
    return end_offset_sum if offset_sum > end_offset_sum else end_offset_sum - offset_sum


class Lags:
    """The lags of all clients by task.

    For each task, this class keeps only the clients that have state of it. With 10,000 tasks and 1,000 clients,
    nearly all clients have no state of a given task.

    :param end_offset_sums: the sum of the changelogs' end offsets, per stateful task.
    :param acceptable: ``acceptable.recovery.lag`` in records, inclusive.
    """

    def __init__(self, end_offset_sums: Mapping[TaskId, int], clients: Sequence[Client], acceptable: int) -> None:
        self._ends, self._acceptable = end_offset_sums, acceptable
        self._clients = sorted(client.id for client in clients)
        self._known: dict[TaskId, dict[str, int]] = {task: {} for task in end_offset_sums}
        for client in clients:
            for task, lag in client.lags.items():
                if task in self._known:
                    self._known[task][client.id] = lag

    def lag(self, task: TaskId, client: str) -> int:
        """Return a client's lag. Without state, the lag is the whole changelog."""
        return self._known[task].get(client, self._ends[task])

    def is_caught_up(self, task: TaskId, client: str) -> bool:
        """Return whether a client may take a task over without a pause for a restore."""
        return self._is_acceptable(self.lag(task, client))

    def caught_up(self, task: TaskId) -> list[str]:
        """Return the clients that are caught up on a task."""
        if self._is_acceptable(self._ends[task]):
            return [client for client in self._clients if self.is_caught_up(task, client)]
        return [client for client, lag in self._known[task].items() if self._is_acceptable(lag)]

    def caught_up_count(self, task: TaskId) -> int:
        """Return how many clients are caught up on a task."""
        known = self._known[task]
        others = len(self._clients) - len(known) if self._is_acceptable(self._ends[task]) else 0
        return others + sum(map(self._is_acceptable, known.values()))

    def others_are_more_caught_up(self, task: TaskId, client: str) -> bool:
        """Return whether a client is not caught up on a task and another client has a smaller lag."""
        lag = self.lag(task, client)
        if self._is_acceptable(lag):
            return False
        known = self._known[task]
        least = min(known.values(), default=lag)
        return least < lag or (len(known) < len(self._clients) and self._ends[task] < lag)

    def more_caught_up(self, task: TaskId, client: str, fits: Callable[[str], bool]) -> str | None:
        """Return the most caught-up client that fits and that is more caught up than the given client.

        Of two clients with the same lag, the first by id counts as more caught up.
        """
        known = self._known[task]
        limit = (self.lag(task, client), client)
        found = [(lag, other) for other, lag in known.items() if (lag, other) < limit and fits(other)]
        found += self._first_without_state(task, limit, fits)
        return min(found)[1] if found else None

    def _first_without_state(
        self, task: TaskId, limit: tuple[int, str], fits: Callable[[str], bool]
    ) -> Iterable[tuple[int, str]]:
        known, end = self._known[task], self._ends[task]
        for other in self._clients:
            if (end, other) >= limit:
                return ()
            if other not in known and fits(other):
                return ((end, other),)
        return ()

    def _is_acceptable(self, lag: int) -> bool:
        return lag == LATEST_OFFSET or 0 <= lag <= self._acceptable or self._acceptable == UNBOUNDED_LAG
