"""A cluster whose tasks are assigned again and again while clients come and go."""

from __future__ import annotations

from dataclasses import dataclass, field

from kafka_rescale.core.assignment.assignment import Assignment
from kafka_rescale.core.assignment.configs import AssignmentConfigs
from kafka_rescale.core.assignment.high_availability import assign
from kafka_rescale.core.assignment.tasks import Client, TaskId, Tasks

END_OFFSET_SUM = 150_000


def two_kinds(stateless: int, stateful: int, partitions: int = 5) -> Tasks:
    """Stateless and stateful tasks, in sub-topologies of so many partitions. Stateless tasks come first."""
    first = -(-stateless // partitions)
    return Tasks(
        {TaskId(first + n // partitions, n % partitions): END_OFFSET_SUM for n in range(stateful)},
        frozenset(TaskId(n // partitions, n % partitions) for n in range(stateless)),
    )


@dataclass
class Cluster:
    """Clients that have restored all their assigned tasks by the next rebalance, and hold no other state.

    :param running: state by client. A dropped client keeps its state.
    """

    tasks: Tasks
    configs: AssignmentConfigs
    running: dict[str, frozenset[TaskId]] = field(default_factory=dict)
    dropped: dict[str, frozenset[TaskId]] = field(default_factory=dict)

    def add(self) -> None:
        """Start a client without state."""
        self.running[f"c{len(self.running) + len(self.dropped):04}"] = frozenset()

    def drop(self, name: str) -> None:
        """Lose a client."""
        self.dropped[name] = self.running.pop(name)

    def resurrect(self, name: str) -> None:
        """Start a lost client again with its old state."""
        self.running[name] = self.dropped.pop(name)

    def clients(self) -> list[Client]:
        """The clients as they report themselves at a rebalance."""
        return [
            Client(name, 1, dict.fromkeys(state & self.tasks.stateful.keys(), 0))
            for name, state in self.running.items()
        ]

    def rebalance(self) -> Assignment:
        """Assign once."""
        assignment = assign(self.tasks, self.clients(), self.configs)
        self.running = {name: has.all for name, has in assignment.clients.items()}
        return assignment

    def converge(self, limit: int) -> tuple[Assignment, int]:
        """Assign until nothing is left to move, and return the last assignment and the number of rebalances."""
        for rebalances in range(1, limit + 1):
            assignment = self.rebalance()
            if not assignment.is_probing_rebalance_needed:
                return assignment, rebalances
        raise AssertionError(f"not converged after {limit} rebalances: {assignment.movements}")


def cluster(clients: int, tasks: Tasks, configs: AssignmentConfigs) -> Cluster:
    """A cluster of clients without state."""
    made = Cluster(tasks, configs)
    for _ in range(clients):
        made.add()
    return made
