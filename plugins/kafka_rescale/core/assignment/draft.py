"""An assignment while it is being worked out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from heapq import heapify, heappop, heappush

from kafka_rescale.core.assignment.tasks import Client, Role, TaskId


class Draft:
    """Which client has which tasks so far; no client ever has a task twice.

    :param clients: at least one; iterated by id.
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
        """Return how many tasks a client has, in both roles."""
        return sum(len(self._tasks[role][client]) for role in Role)

    def load(self, client: str) -> float:
        """Return a client's tasks per stream thread, in both roles."""
        return self.count(client) / self.clients[client].threads

    def load_without_one(self, client: str) -> float:
        """Return what a client's load would be with a task less."""
        return (self.count(client) - 1) / self.clients[client].threads

    def load_with_one_more(self, client: str) -> float:
        """Return what a client's load would be with another task."""
        return (self.count(client) + 1) / self.clients[client].threads

    def least_load_with_one_more(self) -> float:
        """Return the load of the emptiest client with another task."""
        return min(map(self.load_with_one_more, self.clients))

    def improves(self, source: str, destination: str) -> bool:
        """Return whether moving a task evens loads out; never both ways, so that moving comes to an end."""
        return self.load_without_one(source) >= self.load_with_one_more(destination)

    def active_load(self, client: str) -> float:
        """Return a client's active tasks per stream thread."""
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
        """Return the one with the fewest tasks per thread, the first by id among equals."""
        return min(clients, key=lambda client: (self.load(client), client), default=None)


class LeastLoaded:
    """Clients by load (``ConstrainedPrioritySet``); one whose load has become less has to be offered again.

    :param load: tasks per thread of a client.
    """

    def __init__(self, clients: Iterable[str], load: Callable[[str], float]) -> None:
        self._load = load
        self._heap = [(load(client), client) for client in clients]
        heapify(self._heap)

    def offer(self, client: str) -> None:
        """Take notice that a client has fewer tasks than before."""
        heappush(self._heap, (self._load(client), client))

    def pick(self, fits: Callable[[str], bool]) -> str | None:
        """Return the least loaded client that fits, the first by id among equals."""
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
