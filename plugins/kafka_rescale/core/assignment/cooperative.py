"""Tasks change hands in two rebalances: revoked in the first one, assigned in the second (KIP-429).

A client that keeps a task goes on processing it all the while; only tasks that move are interrupted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from kafka_rescale.core.assignment.assignment import Assignment, ClientTasks
from kafka_rescale.core.assignment.tasks import TaskId


@dataclass(frozen=True)
class HandOver:
    """What each client does after one rebalance.

    :param revoke: active tasks to stop and commit, per client.
    :param assigned: tasks that each client has from now on: active ones that no other client owns any longer, and
        standbys that it doesn't own as active any longer.
    """

    revoke: Mapping[str, tuple[TaskId, ...]]
    assigned: Mapping[str, ClientTasks]

    @property
    def is_follow_up_needed(self) -> bool:
        """Whether to rebalance again as soon as the revoked tasks are reported, not only at the next probing."""
        return any(self.revoke.values())


def hand_over(owned: Mapping[str, Collection[TaskId]], target: Assignment) -> HandOver:
    """Return the safe step from what clients own towards an assignment.

    A task that two clients claim (one of them is a zombie) is revoked from both, even if one of them shall have
    it. Only then is it certain that no client processes it.

    :param owned: active tasks per client, as the clients reported them at this rebalance. A client that is gone
        reports none, so that what it had is free.
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
