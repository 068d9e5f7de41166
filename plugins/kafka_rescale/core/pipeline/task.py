"""The promises between a pipeline and the runner of its tasks.

Here, internal topics have the names that ``Topology#describe()`` prints, **without the application id**. The
runner puts ``<application.id>-`` in front of the names of repartition and changelog topics. It removes this prefix
again before it hands a record to a task. The runner promises:

* It hands each task the records of its source partitions in offset order. If a task has several partitions, the
  runner compares their next records and takes the record with the lowest timestamp first (``PartitionGroup``). If
  timestamps are equal, the topic whose name sorts first comes first.
* For each store, it keeps the content of the store's changelog. It writes every ``put`` to the changelog, in
  order, with the given key, value and timestamp, to the partition of the task.
* It calls :meth:`TaskProcessor.flush` before a commit, and writes the records that this call emits as well.
* It writes emitted records in their order. It commits them, the changelogs, the input offsets and the text of
  :meth:`TaskProcessor.checkpoint` in one transaction.
* After any failure, it makes a new processor and calls :meth:`TaskProcessor.restore` with the committed text. A
  processor whose ``process`` has raised an error is in an undefined state.

The pipeline promises three things. A task has no state except its stores and its checkpoint. A task is
deterministic. A task reads and writes only the stores of its own sub-topology.
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
"""Most characters of a checkpoint. The runner adds a frame to the checkpoint. Both together fit into
``offset.metadata.max.bytes`` (4,096 by default)."""

Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class Record:
    """A record of a source topic.

    :param topic: an input, or a repartition topic without the application id.
    :param timestamp_ms: the timestamp in ms since the epoch.
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
    :param partition: the partition to which the record has to go. ``None`` leaves the choice to the application's
        partitioner (murmur2 of the partitioning key). If the record has no key either, the producer chooses.
    :param partition_key: the bytes that the partitioner gets instead of the key. For a windowed key, they are the
        key without its window (``WindowedStreamPartitioner``).
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
    """A live entry of a store: the value and the timestamp of the key's last record in the changelog."""

    value: bytes
    timestamp_ms: int


class StoreView(Protocol):
    """One task's share of one store. Keys and values are exactly the bytes of the changelog."""

    def get(self, key: bytes) -> Entry | None:
        """Return the entry of a key."""
        ...

    def put(self, key: bytes, value: bytes | None, timestamp_ms: int, headers: Headers = ()) -> None:
        """Set an entry, or delete it (``None``), and log that with this timestamp, even if nothing changes.

        :param headers: the headers of the changelog record. For the window stores of stream-stream joins, Kafka
            Streams 4.3 logs the headers of the input record; for other stores it logs no headers. The entry itself
            doesn't keep them.
        """
        ...

    def range(self, first: bytes, last: bytes) -> Iterator[tuple[bytes, Entry]]:
        """Yield entries in the order of their key bytes, both ends inclusive.

        A ``put`` during the iteration does not change what it yields.
        """
        ...


@dataclass(frozen=True)
class StoreDefinition:
    """A store of a sub-topology.

    :param kind: a name of ``changelog_formats.FORMATS``.
    :param retention_ms: the retention time of a store that has times in its keys (starts of windows, ends of
        sessions). The limit is the latest time that this task has ever put, minus the retention time. The pipeline
        does not read entries whose time is at or before this limit. The runner may drop them without a record in
        the changelog. ``None`` stands for a store that keeps everything.
    :param is_logged: whether the store has a changelog.
    :param window_bytes: number of bytes of the window at the end of each key, if the keys come from a windowed
        table. Only the bytes before the window decided the partition of the record from which the entry was made.
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
        """The format of the changelog, and the bytes of a key that decide its processor."""
        kind = FORMATS[self.kind]
        assert isinstance(kind.layout, Trimmed), "stores of foreign-key joins aren't built"
        layout = Trimmed(kind.layout.prefix, kind.layout.suffix + self.window_bytes)
        return replace(kind, layout=layout)


class TaskProcessor(Protocol):
    """The work of one task. There is one task per sub-topology and partition."""

    def process(self, record: Record) -> list[Emitted]:
        """Process one record completely and return the records for the sinks, in order.

        :raises InvalidInput: the declared serde can't read the record's bytes.
        """
        ...

    def process_batch(self, records: Sequence[Record]) -> list[Emitted]:
        """Process records and return the records for the sinks, as a call of ``process`` per record would.

        Vectorised functions see many records at once.
        """
        ...

    def flush(self) -> list[Emitted]:
        """Write the updates that the record cache has kept back, and return the records for the sinks, in order.

        The runner has to call this before ``checkpoint`` and before each commit.
        """
        ...

    def stream_time(self) -> int:
        """Return the highest timestamp in ms of the records processed so far, or -1 before the first record."""
        ...

    def dropped_records(self) -> int:
        """Return how many records the task has dropped: late records, and records that lack a key they need."""
        ...

    def checkpoint(self) -> str:
        """Return the times and counters that have to survive a restart, in at most ``CHECKPOINT_CHARACTERS``.

        The runner commits this text as the metadata of the task's input offsets. Kafka Streams keeps its partition
        times in the same place.
        """
        ...

    def restore(self, checkpoint: str) -> None:
        """Continue from the text that ``checkpoint`` returned. An empty text stands for a task that never ran.

        :raises InvalidInput: the text is not one that ``checkpoint`` returns.
        """
        ...


class SubTopology(Protocol):
    """A part of a pipeline whose nodes share stores and records. Its tasks are called ``<id>_<partition>``."""

    @property
    def id(self) -> int:
        """The number of the sub-topology in ``describe()``."""
        ...

    @property
    def sources(self) -> tuple[str, ...]:
        """The topics that this sub-topology reads: inputs, and repartition topics without the application id."""
        ...

    @property
    def sinks(self) -> tuple[str, ...]:
        """The topics that this sub-topology writes: outputs, and repartition topics without the application id."""
        ...

    @property
    def stores(self) -> tuple[StoreDefinition, ...]:
        """The stores. The changelog of each store has a partition per task."""
        ...

    def processor(
        self, stores: Mapping[str, StoreView], partition: int, cache: RecordCache | None = None
    ) -> TaskProcessor:
        """Return the processor of the task of this partition.

        :param stores: all stores of ``self.stores``, by name.
        :param cache: the cache in which tables keep updates back until the runner flushes the task. Without a
            cache, each update is written at once.
        """
        ...
