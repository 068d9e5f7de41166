"""The hand-over of tasks in two rebalances: the first one revokes a task, the second one assigns it (KIP-429).

A client that keeps a task goes on processing it during both rebalances. Only tasks that move are interrupted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from kafka_rescale.core.assignment.assignment import Assignment, ClientTasks
from kafka_rescale.core.assignment.tasks import TaskId


@dataclass(frozen=True)
class HandOver:
    """The duties of each client after one rebalance.

    :param revoke: per client, the active tasks that it has to stop and commit.
    :param assigned: per client, the tasks that it has from now on. These are active tasks that no other client
        owns any longer, and standbys of tasks that the client itself no longer owns as active.
    """

    revoke: Mapping[str, tuple[TaskId, ...]]
    assigned: Mapping[str, ClientTasks]

    @property
    def is_follow_up_needed(self) -> bool:
        """Whether the next rebalance has to begin as soon as the clients have reported the revoked tasks.

        Without revoked tasks, the next probing is early enough.
        """
        return any(self.revoke.values())


def hand_over(owned: Mapping[str, Collection[TaskId]], target: Assignment) -> HandOver:
    """Return the safe step from the tasks that clients own towards an assignment.

    If two clients claim one task, one of them is a zombie. Both have to give the task up, even if one of the two
    shall have it. Only then is it certain that no client processes the task.

    :param owned: the active tasks of each client, as the client reported them at this rebalance. A client that is
        gone reports no task, so its tasks are free.
    :param target: the assignment that the clients shall have in the end.
    """
    claims = Counter(task for tasks in owned.values() for task in set(tasks))
    revoke, assigned = {}, {}
    for client, wanted in target.clients.items():
        mine = set(owned.get(client, ()))
        kept = {task for task in mine & set(wanted.active) if claims[task] == 1}
        revoke[client] = tuple(sorted(mine - kept))
        free = {task for task in wanted.active if claims[task] == 0}
        assigned[client] = ClientTasks(
            tuple(sorted(kept | free)), tuple(task for task in wanted.standby if task not in mine)
        )
    for client in sorted(owned.keys() - target.clients.keys()):
        revoke[client] = tuple(sorted(owned[client]))
    return HandOver(revoke, assigned)
