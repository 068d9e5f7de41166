"""Tasks stay with a caught-up client until the client that shall have them is warm (KIP-441, ``TaskMovement``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kafka_rescale.core.assignment.assignment import Movement
from kafka_rescale.core.assignment.draft import Draft
from kafka_rescale.core.assignment.lags import Lags
from kafka_rescale.core.assignment.tasks import Role, TaskId


class TaskMovements:
    """Changes a balanced draft into an assignment that can run at once.

    A client that loses a task in this change warms the task up, as long as ``warm_ups`` allows another warm-up.

    :param draft: the balanced assignment. Both methods change it.
    :param warm_ups: the largest number of warm-ups at a time, ``max.warmup.replicas``.
    """

    def __init__(self, draft: Draft, lags: Lags, warm_ups: int) -> None:
        self._draft, self._lags, self._left = draft, lags, warm_ups

    def move_active(self) -> list[Movement]:
        """Move each active task whose client is not caught up to a client that is caught up, or at least nearer.

        The first choice is a client with a caught-up standby, because the two clients then only swap their roles.
        The second choice is any caught-up client. The third choice is the client with the smallest lag.
        """
        return [self._move_active(task, client) for task, client in self._behind(Role.ACTIVE, [])]

    def move_standby(self, moved: Iterable[Movement]) -> list[Movement]:
        """Move each standby whose client is not caught up to a nearer client that does not have the task yet.

        :param moved: the movements that :meth:`move_active` returned. The warm-ups among them stay where they are.
        """
        moves = (self._move_standby(task, client) for task, client in self._behind(Role.STANDBY, moved))
        return [move for move in moves if move is not None]

    def _behind(self, role: Role, moved: Iterable[Movement]) -> Iterator[tuple[TaskId, str]]:
        """Yield the tasks that have to move, with their clients. Tasks that few clients could take come first."""
        warm_ups = {(m.task, m.goes_to) for m in moved if m.is_warming_up and not m.is_swap}
        found = [
            (self._lags.caught_up_count(task), task, client)
            for client in self._draft
            for task in self._draft.tasks(client, role)
            if (task, client) not in warm_ups and self._lags.others_are_more_caught_up(task, client)
        ]
        for _, task, client in sorted(found):
            yield task, client

    def _move_active(self, task: TaskId, planned: str) -> Movement:
        draft, caught_up = self._draft, self._lags.caught_up(task)
        client = (
            draft.least_loaded(c for c in caught_up if task in draft.tasks(c, Role.STANDBY))
            or draft.least_loaded(caught_up)
            or self._lags.more_caught_up(task, planned, lambda _: True)
        )
        if client is None:
            raise ValueError(f"task {task}: no client is more caught up than {planned}")
        draft.unassign(planned, task, Role.ACTIVE)
        is_swap = task in draft.tasks(client, Role.STANDBY)
        if is_swap:
            draft.unassign(client, task, Role.STANDBY)
        draft.assign(client, task, Role.ACTIVE)
        is_warming_up = is_swap or self._take_warm_up()
        if is_warming_up:
            draft.assign(planned, task, Role.STANDBY)
        return Movement(task, Role.ACTIVE, client, planned, is_warming_up, is_swap)

    def _move_standby(self, task: TaskId, planned: str) -> Movement | None:
        draft = self._draft
        client = draft.least_loaded(c for c in self._lags.caught_up(task) if not draft.has(c, task))
        client = client or self._lags.more_caught_up(task, planned, lambda c: not draft.has(c, task))
        if client is None:
            return None
        draft.assign(client, task, Role.STANDBY)
        is_warming_up = self._take_warm_up()
        if not is_warming_up:
            draft.unassign(planned, task, Role.STANDBY)
        return Movement(task, Role.STANDBY, client, planned, is_warming_up)

    def _take_warm_up(self) -> bool:
        self._left -= 1
        return self._left >= 0
