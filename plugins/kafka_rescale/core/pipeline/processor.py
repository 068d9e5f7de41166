"""What every node of a task does with a record, and what it can reach while it does."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kafka_rescale.core.pipeline.stores.record_cache import RecordCache
from kafka_rescale.core.pipeline.task import Emitted, Headers, StoreView

Forward = Callable[[Any, Any, int, Headers], None]
"""Key, value, timestamp in ms, headers."""


@dataclass
class Mark:
    """A number that has to survive a restart: a stream time, a counter."""

    value: int


@dataclass
class TaskContext:
    """What the processors of one task share.

    :param emitted: what the sinks have written since the runner last took it.
    :param marks: what has to survive a restart, by names that an operation added to the program doesn't change:
        those of stores.
    :param former: names by which checkpoints had marks that are named otherwise by now.
    :param lowest: by store, a key before which it has no entry: ranges don't pass deleted keys there again.
    :param stream_time: the highest timestamp of all records of the task.
    :param cache: where the stores of tables keep updates back; ``None`` writes each at once.
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
        """Return the mark of this name; all callers with the same name share it.

        :param former: the name by which checkpoints had it.
        """
        if former:
            self.former[name] = former
        return self.marks.setdefault(name, Mark(initial))

    def observed(self, store: str, node: str) -> Mark:
        """Return the stream time that the operation has seen which fills a store.

        :param node: of the operation, by which checkpoints had it: generated names of nodes shift.
        """
        return self.mark(f"~{store}", former=node)


class Processor(ABC):
    """A node of a task; ``forward`` hands a record to all nodes behind it, in the order of the program."""

    forward: Forward

    @abstractmethod
    def process(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        """Do what the node does with one record."""


def forward_to(successors: list[Processor]) -> Forward:
    """Return what hands a record to all of them."""
    if len(successors) == 1:
        return successors[0].process
    calls = [successor.process for successor in successors]

    def forward(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        for call in calls:
            call(key, value, timestamp, headers)

    return forward
