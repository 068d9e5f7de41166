"""The interface of every node of a task, and the objects that the nodes of one task share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kafka_rescale.core.pipeline.stores.record_cache import RecordCache
from kafka_rescale.core.pipeline.task import Emitted, Headers, StoreView

Forward = Callable[[Any, Any, int, Headers], None]
"""Takes key, value, timestamp in ms and headers of a record."""


@dataclass
class Mark:
    """A number that has to survive a restart: a stream time or a counter."""

    value: int


@dataclass
class TaskContext:
    """The objects that the processors of one task share.

    :param views: the stores by name.
    :param cache: the cache in which the stores of tables keep updates back. Without a cache (``None``), each
        update is written at once.
    :param emitted: the records that the sinks have written since the runner last took them.
    :param marks: the numbers that have to survive a restart. Each mark is named after a store. Names of stores
        that the user has chosen stay the same when an operation is added to the program.
    :param former: by the present name of each mark, its name in earlier checkpoints.
    :param lowest: by store, a key before which the store has no entry. A range that starts at this key doesn't
        have to pass the deleted keys again.
    :param stream_time: the highest timestamp of all records of the task.
    :param dropped: number of records that the task has dropped.
    """

    views: Mapping[str, StoreView]
    partition: int
    cache: RecordCache | None = None
    emitted: list[Emitted] = field(default_factory=list)
    marks: dict[str, Mark] = field(default_factory=dict)
    former: dict[str, str] = field(default_factory=dict)
    lowest: dict[str, bytes] = field(default_factory=dict)
    stream_time: Mark = field(default_factory=lambda: Mark(-1))
    dropped: int = 0

    def mark(self, name: str, initial: int = -1, *, former: str = "") -> Mark:
        """Return the mark of this name. All callers with the same name share the mark.

        :param former: the name that the mark had in earlier checkpoints.
        """
        if former:
            self.former[name] = former
        return self.marks.setdefault(name, Mark(initial))

    def observed(self, store: str, node: str) -> Mark:
        """Return the stream time that an operation has seen.

        :param store: the store that the operation fills.
        :param node: the node of the operation. Earlier checkpoints named the mark after this node. Generated names
            of nodes change when the program changes; therefore the mark is now named after the store.
        """
        return self.mark(f"~{store}", former=node)


class Processor(ABC):
    """A node of a task. ``forward`` hands a record to all nodes behind it, in the order of the program."""

    forward: Forward

    @abstractmethod
    def process(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        """Process one record."""


def forward_to(successors: list[Processor]) -> Forward:
    """Return the function that hands a record to all these processors."""
    if len(successors) == 1:
        return successors[0].process
    calls = [successor.process for successor in successors]

    def forward(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        for call in calls:
            call(key, value, timestamp, headers)

    return forward
