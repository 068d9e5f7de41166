"""One partition's snapshot beside a working log cleaner: the judgement is about the records that were read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.snapshots.day import DAY_MS, SnapshotDay
from kafka_rescale.core.snapshots.exactness import Coverage, coverage_of
from kafka_rescale.core.snapshots.manifest import Manifest
from kafka_rescale.core.snapshots.request import StoreRequest
from kafka_rescale.core.snapshots.rows import Entry, SnapshotRule
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.spark.snapshots import partition as snapshot_partition
from kafka_rescale.spark.snapshots.files import StoreDirectory
from kafka_rescale.spark.snapshots.partition import PartitionBuild, PartitionResult, StoreWork

from tests.support.snapshot_days import DAY
from tests.unit.snapshots.test_snapshot_exactness import batched, cleaned

STORE = StoreRequest(name="totals", store_type="key-value")


class CleanedMeanwhile(PartitionBuild):
    """A log that is cleaned further between any two looks at it, up to its newest segment."""

    log: Sequence[Entry] = ()
    newest = 0
    looks = 0

    def _cleaned(self) -> Sequence[Entry]:
        self.looks += 1
        return self.log if self.looks == 1 else cleaned(self.log, self.newest)

    def _entries(self, start: int, end: int) -> Iterator[Entry]:
        return iter([e for e in self._cleaned() if start <= e.offset < end])

    def _coverage(self, start: int, end: int, up_to: int | None = None) -> Coverage:
        batches = batched(self._cleaned(), 1, len(self.log), self.newest)
        return coverage_of([b for b in batches if b.first >= start], start, end, 0)

    def _end(self) -> int:
        return len(self.log)


class Record:
    """A record as the client gives it."""

    def __init__(self, key: bytes | None, at_ms: int, offset: int) -> None:
        self.key, self.value = lambda: key, lambda: b"v"
        self.offset, self.timestamp = lambda: offset, lambda: (1, at_ms)

    def headers(self) -> None:
        """None, as without headers."""


def work_of(
    tmp_path: Path, store: StoreRequest, end: int, lagging: Callable[[int], int] | None = None
) -> StoreWork:
    """The work of a day for a store whose log has one partition."""
    directory = StoreDirectory(str(tmp_path), "app", store.name)
    return StoreWork(
        directory=directory,
        draft=directory.begin(DAY, "x"),
        topic="app-totals-changelog",
        topic_id="x",
        store=store,
        rule=SnapshotRule(DAY.end_ms),
        begins={0: 0},
        ends={0: end},
        lagging=lagging,
    )


def build(
    tmp_path: Path, log: Sequence[Entry], newest: int, lagging: Callable[[int], int] | None = None
) -> tuple[set[bytes] | None, int]:
    """Return the keys of the day (None if it is refused), and the number of records that were read."""
    work = work_of(tmp_path, STORE, len(log), lagging)
    partition = CleanedMeanwhile(KafkaConnection({"bootstrap.servers": "none"}), work, 0)
    partition.log, partition.newest = log, newest
    found = partition.build()
    if found.snapshot is None:
        return None, found.read
    work.directory.publish(work.draft, _manifest(work, found))
    return set(work.directory.read(DAY, found.snapshot.file)["key"].to_pylist()), found.read


def _manifest(work: StoreWork, found: PartitionResult) -> Manifest:
    assert found.snapshot is not None
    return Manifest(
        application="app",
        generation="app",
        date=str(DAY),
        end_ms=DAY.end_ms,
        grace_ms=0,
        store=STORE,
        topic=work.topic,
        topic_id="x",
        partitions=(found.snapshot,),
    )


def log(*records: tuple[str, int]) -> list[Entry]:
    return [Entry(key.encode(), b"v", DAY.end_ms + at, offset) for offset, (key, at) in enumerate(records)]


@pytest.mark.parametrize("holed", [False, True])
def test_what_was_removed_while_it_was_read_is_noticed(tmp_path: Path, holed: bool) -> None:
    """`k` belongs to the day. It is superseded on the next day, before the newest segment."""
    entries = log(("old", -30), ("old", -20), ("k", -10), ("k", 10), ("z", 20))
    if holed:
        del entries[0]
    keys, _ = build(tmp_path, entries, newest=4)
    assert keys == (None if holed else {b"old", b"k"})


def test_a_day_before_the_newest_segment_is_written_from_what_was_read_once(tmp_path: Path) -> None:
    entries = log(("old", -30), ("k", -20), ("old", -15), ("k", -10), ("n", -5), ("k", 10))
    keys, read = build(tmp_path, entries, newest=4)
    assert keys == {b"old", b"k", b"n"}
    assert read == 5, "the record of the next day ends it"


def test_a_record_that_is_dated_ahead_holds_up_no_later_day(tmp_path: Path) -> None:
    """Between it and the next day, log cleaning has removed a record. So the log tells nothing from there on."""
    entries = log(("a", -30), ("f", 10 * DAY_MS), ("k", -20), ("k", -10), ("n", 10), ("z", 20))
    entries[1] = entries[1]._replace(key=b"\xff", value=b"\x00\xfe", headers=(("h", b"\xfd"), ("none", None)))
    first = work_of(tmp_path, STORE, end=len(entries))
    today = _built(first, entries)
    assert today.snapshot is not None
    assert [record.entry for record in today.snapshot.ahead] == [entries[1]]
    manifest = Manifest.model_validate_json(_manifest(first, today).model_dump_json())
    first.directory.publish(first.draft, manifest)
    for days, keys in ((1, {b"a", b"k", b"n", b"z"}), (11, {b"a", b"k", b"n", b"z", b"\xff"})):
        rule = replace(first.rule, end_ms=DAY.minus(-days).end_ms)
        draft = first.directory.begin(DAY.minus(-days), "y")
        later = replace(first, bases=(manifest,), rule=rule, draft=draft)
        found = _built(later, [entry for entry in entries if entry.offset != 2])
        assert found.snapshot is not None
        assert found.read == 2
        later.directory.publish(draft, _manifest(later, found).model_copy(update={"date": str(DAY.minus(-days))}))
        assert set(later.directory.read(DAY.minus(-days), found.snapshot.file)["key"].to_pylist()) == keys


def _built(work: StoreWork, entries: Sequence[Entry]) -> PartitionResult:
    partition = CleanedMeanwhile(KafkaConnection({"bootstrap.servers": "none"}), work, 0)
    partition.log, partition.newest = entries, 4
    return partition.build()


@pytest.mark.parametrize("lag", [None, DAY.minus(1).end_ms])
def test_keys_that_an_expansion_in_place_has_moved_away_are_missed(tmp_path: Path, lag: int | None) -> None:
    """The tombstones have the keys' own times, and lie behind the end of the old generation: offset 4."""
    entries = log(*((key, -DAY_MS - 40 + n) for n, key in enumerate("abcd")))
    entries += [entries[n]._replace(value=None, offset=3 + n) for n in (1, 2)]
    entries += [Entry(b"n", b"v", DAY.end_ms + DAY_MS, 6)]
    work = replace(work_of(tmp_path, STORE, end=4), taken_over_ms=DAY.end_ms + DAY_MS // 2)
    if lag is not None:
        work = replace(work, lagging=lambda _: lag)
    partition = CleanedMeanwhile(KafkaConnection({"bootstrap.servers": "none"}), work, 0)
    partition.log, partition.newest = entries, 6
    assert partition.build().snapshot is not None, "nothing had been removed when it was read"
    partition.log = cleaned(entries, 6)
    assert [e.key for e in partition.log if e.offset < 4] == [b"a", b"d"]
    assert partition.build().snapshot is None
    first = partition.exact_from_ms()
    assert first is not None
    assert SnapshotDay.first_ending_from(first) == DAY.minus(-1), "the new generation was at work then"


@pytest.mark.parametrize("source", ["", "profiles"])
def test_a_record_without_a_key_is_no_row_of_a_table_whose_input_is_its_changelog(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kafka Streams skips it, also in a restore. In a changelog of its own, nothing writes such a record."""
    records = [Record(b"a", DAY.end_ms - 3, 0), Record(None, DAY.end_ms - 2, 1), Record(b"b", DAY.end_ms - 1, 2)]
    monkeypatch.setattr(snapshot_partition, "read_ranges", lambda *_: iter(records))
    work = work_of(tmp_path, STORE.model_copy(update={"source": source}), end=3)
    partition = PartitionBuild(KafkaConnection({"bootstrap.servers": "none"}), work, 0)
    if source:
        assert [entry.key for entry in partition._entries(0, 3)] == [b"a", b"b"]
    else:
        with pytest.raises(UnsafeState, match="a record without a key"):
            list(partition._entries(0, 3))


@pytest.mark.parametrize("looked_at", [-5, 40])
def test_how_far_a_declared_lag_lets_cleaning_come_is_asked_when_the_log_is_judged(
    tmp_path: Path, looked_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cleaning goes on while a job runs. When the job began, `k` was too young to be cleaned."""
    monkeypatch.setattr(snapshot_partition, "now_ms", lambda: DAY.end_ms + looked_at)
    entries = log(("old", -30), ("old", -20), ("k", -10), ("k", 10), ("z", 20))
    del entries[0]
    keys, _ = build(tmp_path, entries, newest=4, lagging=lambda now: now)
    assert (keys is None) is (looked_at > 0)
