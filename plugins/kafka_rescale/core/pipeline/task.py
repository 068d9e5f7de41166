"""What a pipeline and the runner of its tasks promise each other.

Names of internal topics are those of ``Topology#describe()`` everywhere here, **without the application id**: the
runner puts ``<application.id>-`` in front of repartition and changelog topics, and takes it off again before
it hands over a record. The runner promises to

* hand each task the records of its source partitions in offset order, several partitions merged: next comes the
  one with the lowest timestamp of those first in their partitions (``PartitionGroup``), equal ones by topic;
* keep for each store what its changelog holds, and write every ``put`` to the changelog, in order, with the key,
  value and timestamp given, to the partition of the task;
* ask for :meth:`TaskProcessor.flush` before a commit, and write what that emits as well;
* write what is emitted in order, and commit it, the changelogs, the input offsets and the text of
  :meth:`TaskProcessor.checkpoint` in one transaction;
* make a processor anew and :meth:`TaskProcessor.restore` the committed text after anything has failed: a processor
  whose ``process`` has raised is in an undefined state.

The pipeline promises that a task has no state but its stores and its checkpoint, that it is deterministic, and
that it reads and writes only the stores of its own sub-topology.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

from kafka_rescale.core.formats.changelog_formats import FORMATS, ChangelogFormat
from kafka_rescale.core.formats.key_layouts import Trimmed

if TYPE_CHECKING:
    from kafka_rescale.core.pipeline.stores.record_cache import RecordCache

CHECKPOINT_CHARACTERS = 3_000
"""What fits into ``offset.metadata.max.bytes`` (4,096 by default) with something around it."""

Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class Record:
    """A record of a source topic.

    :param topic: an input, or a repartition topic without the application id.
    :param timestamp_ms: since the epoch.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


@dataclass(frozen=True, slots=True)
class Emitted:
    """A record for a sink.

    :param topic: an output, or a repartition topic without the application id.
    :param partition: where it has to go; ``None`` leaves it to the application's partitioner (murmur2 of the
        partitioning key), and to the producer where there is no key.
    :param partition_key: what the partitioner sees if it isn't the key: of a windowed key, the key without its
        window (``WindowedStreamPartitioner``).
    """

    topic: str
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: Headers = ()
    partition: int | None = None
    partition_key: bytes | None = None

    @property
    def partitioning_key(self) -> bytes | None:
        """The bytes that decide the partition."""
        return self.key if self.partition_key is None else self.partition_key


class Entry(NamedTuple):
    """A live entry of a store: the value and the timestamp of the last changelog record of its key."""

    value: bytes
    timestamp_ms: int


class StoreView(Protocol):
    """One task's share of one store, in the very bytes of its changelog."""

    def get(self, key: bytes) -> Entry | None:
        """Return the entry of a key."""
        ...

    def put(self, key: bytes, value: bytes | None, timestamp_ms: int, headers: Headers = ()) -> None:
        """Set an entry, or delete it (``None``), and log that with this timestamp, also where nothing changes.

        :param headers: of the changelog record; Kafka Streams 4.3 logs those of the input record in the window
            stores of stream-stream joins, and none elsewhere. The entry itself doesn't keep them.
        """
        ...

    def range(self, first: bytes, last: bytes) -> Iterator[tuple[bytes, Entry]]:
        """Yield entries in the order of their key bytes, both ends inclusive, unmoved by a ``put``."""
        ...


@dataclass(frozen=True)
class StoreDefinition:
    """A store of a sub-topology.

    :param kind: a name of ``changelog_formats.FORMATS``.
    :param retention_ms: of a store with times in its keys (starts of windows, ends of sessions): entries whose
        time is at most the latest one that this task has ever put, minus this, are gone for the pipeline, and
        the runner may drop them without logging that; ``None`` for stores that keep everything.
    :param is_logged: whether it has a changelog at all.
    :param window_bytes: of the windows at the end of its keys, where those are the keys of a windowed table: the
        records that its entries are made of were placed by what is before them.
    """

    name: str
    kind: str
    retention_ms: int | None = None
    is_logged: bool = True
    window_bytes: int = 0

    @property
    def changelog_topic(self) -> str | None:
        """The changelog without the application id, as ``ProcessorStateManager#storeChangelogTopic`` names it."""
        return f"{self.name}-changelog" if self.is_logged else None

    @property
    def format(self) -> ChangelogFormat:
        """How it writes its changelog, and which bytes of a key its processor goes by."""
        kind = FORMATS[self.kind]
        assert isinstance(kind.layout, Trimmed), "stores of foreign-key joins aren't built"
        layout = Trimmed(kind.layout.prefix, kind.layout.suffix + self.window_bytes)
        return replace(kind, layout=layout)


class TaskProcessor(Protocol):
    """What one task does: one per sub-topology and partition."""

    def process(self, record: Record) -> list[Emitted]:
        """Process one record to its end and return what it makes the sinks write, in order.

        :raises InvalidInput: its bytes aren't of the declared serde.
        """
        ...

    def process_batch(self, records: Sequence[Record]) -> list[Emitted]:
        """Return what ``process`` returns for each of them, in order; vectorised functions see many at once."""
        ...

    def flush(self) -> list[Emitted]:
        """Write what the record cache has kept back, and return what that makes the sinks write, in order.

        To be done before ``checkpoint`` and each commit.
        """
        ...

    def stream_time(self) -> int:
        """Return the highest timestamp in ms of any record processed so far, -1 before the first."""
        ...

    def dropped_records(self) -> int:
        """Return how many records it has passed over: late ones, and those without the key that they need."""
        ...

    def checkpoint(self) -> str:
        """Return the stream times and counters that have to survive; at most ``CHECKPOINT_CHARACTERS``.

        To be committed as the metadata of the task's input offsets, as Kafka Streams keeps its partition times.
        """
        ...

    def restore(self, checkpoint: str) -> None:
        """Go on from what ``checkpoint`` returned; an empty text is the beginning.

        :raises InvalidInput: the text is of another pipeline.
        """
        ...


class SubTopology(Protocol):
    """A part of a pipeline whose tasks need each other's stores: its tasks are ``<id>_<partition>``."""

    @property
    def id(self) -> int:
        """Its number in ``describe()``."""
        ...

    @property
    def sources(self) -> tuple[str, ...]:
        """Topics read: inputs, and repartition topics without the application id."""
        ...

    @property
    def sinks(self) -> tuple[str, ...]:
        """Topics written: outputs, and repartition topics without the application id."""
        ...

    @property
    def stores(self) -> tuple[StoreDefinition, ...]:
        """Stores, each of which has a changelog with a partition per task."""
        ...

    def processor(
        self, stores: Mapping[str, StoreView], partition: int, cache: RecordCache | None = None
    ) -> TaskProcessor:
        """Return what the task of this partition does.

        :param stores: by name, all of ``self.stores``.
        :param cache: where tables keep updates back until the task is flushed; without it each is written at once.
        """
        ...
