"""The snapshot of one partition of one store: from the log, or on top of an earlier day if that is exact."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kafka_rescale.core.errors import InvalidInput, UnsafeState
from kafka_rescale.core.snapshots.day import SnapshotDay
from kafka_rescale.core.snapshots.exactness import Coverage, coverage_of, exact_from_ms
from kafka_rescale.core.snapshots.manifest import AheadRecord, Manifest, PartitionSnapshot
from kafka_rescale.core.snapshots.request import StoreRequest
from kafka_rescale.core.snapshots.rows import Entry, SnapshotRule
from kafka_rescale.core.snapshots.tail import Tail
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.reading.log_batches import END_OF_LOG, log_batches
from kafka_rescale.kafka.reading.range_reader import read_ranges
from kafka_rescale.spark.snapshots.columns import decoded, state_after
from kafka_rescale.spark.snapshots.files import StoreDirectory

Unit = tuple[str, int]
"""A store and a partition of its changelog."""


@dataclass(frozen=True)
class StoreWork:
    """One store, ready to be read.

    :param draft: the directory of the files.
    :param lagging: takes a wall clock time and tells since when records have always been too young for log
        cleaning; None if that is not known.
    :param origins: the offsets at which the changelog began.
    :param begins: log starts now.
    :param ends: exclusive; reading stops there if the day doesn't end before.
    :param bases: earlier days to begin with, the newest first.
    :param taken_over_ms: when the next generation took over the log behind ``ends``; None if there is no such log.
    :param by_age: whether the topic deletes by age.
    """

    directory: StoreDirectory
    draft: str
    topic: str
    topic_id: str
    store: StoreRequest
    rule: SnapshotRule
    begins: Mapping[int, int]
    ends: Mapping[int, int]
    lagging: Callable[[int], int | None] | None = None
    origins: Mapping[int, int] = field(default_factory=dict)
    bases: tuple[Manifest, ...] = ()
    taken_over_ms: int | None = None
    by_age: bool = False


@dataclass(frozen=True)
class PartitionResult:
    """The result of one partition.

    :param snapshot: None if the partition's state can't be told exactly.
    :param read: number of records read.
    :param unused: why earlier days were not built on, for a person.
    """

    unit: Unit
    snapshot: PartitionSnapshot | None
    read: int
    unused: tuple[str, ...] = ()


@dataclass
class PartitionBuild:
    """The snapshot of one partition.

    :param read: number of records read so far.
    :param damage: why earlier days can't be read, by day.
    """

    connection: KafkaConnection
    work: StoreWork
    partition: int
    read: int = 0
    damage: dict[SnapshotDay, InvalidInput] = field(default_factory=dict)

    def build(self) -> PartitionResult:
        """Write the partition's state, based on an earlier day if that is exact, otherwise on the whole log.

        :raises InvalidInput: an earlier day is damaged, and neither a day before it nor the log tells the state.
        """
        for day, base in self._bases():
            try:
                rows = self.work.directory.read(day.day, base.file) if base.file else None
            except InvalidInput as error:
                self.damage[day.day] = error
                continue
            tail = self._exact_tail(base)
            if tail is None:
                continue  # A day before may begin behind them: it may have kept a record that is dated ahead.
            if rows is not None and day.store != self.work.store:
                rows = decoded(rows, self.work.store)
            return self._result(self._write(rows, tail))
        tail = self._tail(self._origin, ())
        # Check after reading. Records that log cleaning has removed before leave traces, and records that it
        # removes later have been read.
        if self._is_whole(self._origin, tail) or self._is_exact():
            return self._result(self._write(None, tail))
        if self.damage:
            # The log does not tell the state any more, but the newest day would, if it were built again.
            raise next(iter(self.damage.values()))
        return self._result(None)

    def _bases(self) -> Iterator[tuple[Manifest, PartitionSnapshot]]:
        for day in self.work.bases:
            if (base := day.of_partition(self.partition)) is not None:
                yield day, base

    def _is_exact(self) -> bool:
        moment = self.exact_from_ms()
        return moment is not None and moment <= self.work.rule.end_ms

    def exact_from_ms(self) -> int | None:
        """Return the first moment whose state the whole log tells exactly; None if there is no such moment."""
        end = self._end()
        first = next(self._entries(self._origin, end), None)
        coverage = self._coverage(self._origin, end, up_to=END_OF_LOG)
        first_ms = None if first is None else first.timestamp_ms
        # Log cleaning goes on while the job runs. So look for its traces first, then ask how far it may have come.
        lagging_ms = self.work.lagging(now_ms()) if self.work.lagging else None
        return exact_from_ms(coverage, first_ms, self.work.rule, lagging_ms, self.work.taken_over_ms)

    def _exact_tail(self, base: PartitionSnapshot) -> Tail | None:
        """Return the records that a day has left out, or None if some of them were removed."""
        tail = self._tail(base.resumes_at, base.ahead)
        return tail if self._is_whole(base.resumes_at, tail) else None

    def _is_whole(self, start: int, tail: Tail) -> bool:
        end = self._end_of(tail)
        counts = self._begin <= start and tail.records == end - start
        return counts or self._coverage(start, end).is_whole

    def _tail(self, start: int, ahead: Sequence[AheadRecord]) -> Tail:
        tail = Tail(self.work.rule)
        tail.start_with(record.entry for record in ahead)
        for entry in self._entries(start, self.work.ends[self.partition]):
            if not tail.add(entry):
                break
        self.read += tail.records
        return tail

    def _entries(self, start: int, end: int) -> Iterator[Entry]:
        ranges = {self.partition: (max(start, self._begin), end)}
        for message in read_ranges(self.connection, self.work.topic, ranges):
            if self.work.store.source and message.key() is None:
                continue  # Kafka Streams skips it too, also when it restores the table.
            yield _entry(message, self.work.topic, self.partition)

    def _coverage(self, start: int, end: int, up_to: int | None = None) -> Coverage:
        begin, up_to = max(start, self._begin), end if up_to is None else up_to
        batches = log_batches(self.connection, self.work.topic, self.partition, begin, up_to)
        return coverage_of(batches, start, end, self._begin)

    def _end(self) -> int:
        ends = ClusterAdmin(self.connection).end_offsets([self.work.topic], read_committed=False)
        return ends[self.work.topic][self.partition]

    def _write(self, base: Any | None, tail: Tail) -> PartitionSnapshot:
        work, end = self.work, self._end_of(tail)
        rows = state_after(base, tail, self.partition, work.store)
        file = work.directory.write(work.draft, self.partition, rows) if rows.num_rows else ""
        return PartitionSnapshot.of(self.partition, tail, end, rows.num_rows, file)

    def _end_of(self, tail: Tail) -> int:
        return self.work.ends[self.partition] if tail.closed_at is None else tail.closed_at

    def _result(self, snapshot: PartitionSnapshot | None) -> PartitionResult:
        where = f"{self.work.topic}-{self.partition}"
        unused = tuple(f"{where}: not built on {day}: {error}" for day, error in self.damage.items())
        return PartitionResult((self.work.store.name, self.partition), snapshot, self.read, unused)

    @property
    def _origin(self) -> int:
        return self.work.origins.get(self.partition, 0)

    @property
    def _begin(self) -> int:
        return self.work.begins[self.partition]


def _entry(message: Any, topic: str, partition: int) -> Entry:
    key = message.key()
    if key is None:
        raise UnsafeState(
            f"topic {topic!r} partition {partition}, offset {message.offset()}",
            found="a record without a key",
            expected="a key in every record of a changelog",
            remedy="Another program writes to this topic. Find it first.",
        )
    headers = tuple(message.headers() or ())
    return Entry(key, message.value(), message.timestamp()[1], message.offset(), headers)
