"""An assignment while it is being worked out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from heapq import heapify, heappop, heappush

from kafka_rescale.core.assignment.tasks import Client, Role, TaskId


class Draft:
    """The tasks that each client has so far. A client never has a task twice.

    Iteration yields the ids of the clients in their order.

    :param clients: all clients, at least one.
    """

    def __init__(self, clients: Iterable[Client]) -> None:
        self.clients = {client.id: client for client in sorted(clients, key=lambda client: client.id)}
        self._tasks: dict[Role, dict[str, set[TaskId]]] = {
            role: {client: set() for client in self.clients} for role in Role
        }
        self._holders: defaultdict[TaskId, set[str]] = defaultdict(set)

    def __iter__(self) -> Iterator[str]:
        return iter(self.clients)

    def tasks(self, client: str, role: Role) -> set[TaskId]:
        """Return a client's tasks in one role."""
        return self._tasks[role][client]

    def holders(self, task: TaskId) -> set[str]:
        """Return the clients that have a task in any role."""
        return self._holders[task]

    def has(self, client: str, task: TaskId) -> bool:
        """Return whether a client has a task in any role."""
        return client in self._holders[task]

    def count(self, client: str) -> int:
        """Return the number of tasks that a client has in both roles together."""
        return sum(len(self._tasks[role][client]) for role in Role)

    def load(self, client: str) -> float:
        """Return the number of tasks per stream thread that a client has in both roles together."""
        return self.count(client) / self.clients[client].threads

    def load_without_one(self, client: str) -> float:
        """Return the load that a client would have with one task fewer."""
        return (self.count(client) - 1) / self.clients[client].threads

    def load_with_one_more(self, client: str) -> float:
        """Return the load that a client would have with one more task."""
        return (self.count(client) + 1) / self.clients[client].threads

    def least_load_with_one_more(self) -> float:
        """Return the load that the emptiest client would have with one more task."""
        return min(map(self.load_with_one_more, self.clients))

    def improves(self, source: str, destination: str) -> bool:
        """Return whether the move of a task from source to destination makes the loads more even.

        If a move improves the loads, the opposite move does not. Therefore the balancing ends at some time.
        """
        return self.load_without_one(source) >= self.load_with_one_more(destination)

    def active_load(self, client: str) -> float:
        """Return the number of active tasks per stream thread of a client."""
        return len(self._tasks[Role.ACTIVE][client]) / self.clients[client].threads

    def assign(self, client: str, task: TaskId, role: Role) -> None:
        """Give a client a task that it doesn't have."""
        if self.has(client, task):
            raise ValueError(f"{client} has task {task} already")
        self._tasks[role][client].add(task)
        self._holders[task].add(client)

    def unassign(self, client: str, task: TaskId, role: Role) -> None:
        """Take a task from a client that has it in this role."""
        self._tasks[role][client].remove(task)
        self._holders[task].remove(client)

    def least_loaded(self, clients: Iterable[str]) -> str | None:
        """Return the client with the fewest tasks per thread. Of equal clients, return the first by id."""
        return min(clients, key=lambda client: (self.load(client), client), default=None)


class LeastLoaded:
    """Clients sorted by load (``ConstrainedPrioritySet``).

    When the load of a client has become less, the caller has to offer that client again.

    :param load: takes a client; returns its tasks per thread.
    """

    def __init__(self, clients: Iterable[str], load: Callable[[str], float]) -> None:
        self._load = load
        self._heap = [(load(client), client) for client in clients]
        heapify(self._heap)

    def offer(self, client: str) -> None:
        """Note that a client has fewer tasks than before."""
        heappush(self._heap, (self._load(client), client))

    def pick(self, fits: Callable[[str], bool]) -> str | None:
        """Return the least loaded client that fits. Of equal clients, return the first by id."""
        seen = []
        found = None
        while self._heap and found is None:
            load, client = heappop(self._heap)
            now = self._load(client)
            if load != now:
                heappush(self._heap, (now, client))
                continue
            seen.append((load, client))
            found = client if fits(client) else None
        for entry in seen:
            heappush(self._heap, entry)
        return found
