"""A record that was accepted once may be refused now, or be unreadable for Spark.

This is found before it matters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import nullcontext
from typing import Any

import pytest
from kafka_rescale.core.cluster import TopicDescription
from kafka_rescale.core.control.progress import Extremes
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.formats.record_batches import size_of
from kafka_rescale.core.formats.record_limits import LATEST_MS, RecordLimits
from kafka_rescale.core.plan.plan import Move, MoveKind
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.copy import rehearsal
from kafka_rescale.kafka.copy.units import CopyUnit
from kafka_rescale.kafka.copy.writer import UnitWriter

NOW, DAY = 1_700_000_000_000, 86_400_000
CONNECTION = KafkaConnection({"bootstrap.servers": "nowhere:9092"})


def limits(**configs: str) -> RecordLimits:
    named = {name.replace("_", "."): value for name, value in configs.items()}
    return RecordLimits.of(TopicDescription("t", 4, 1, named), NOW, DAY)


class TestLimits:
    @pytest.mark.parametrize(
        ("configs", "oldest", "newest"),
        [
            ({}, -(2**63), 2**64),
            ({"message_timestamp_before_max_ms": str(3 * DAY)}, NOW - 2 * DAY, 2**64),
            ({"message_timestamp_after_max_ms": "3600000"}, -(2**63), NOW + 3_600_000),
            ({"message_timestamp_difference_max_ms": str(3 * DAY)}, NOW - 2 * DAY, NOW + 3 * DAY),
            (
                {"message_timestamp_before_max_ms": "0", "message_timestamp_type": "LogAppendTime"},
                -(2**63),
                2**64,
            ),
        ],
    )
    def test_timestamps_are_within_what_the_brokers_take_on_the_day_after(
        self, configs: dict[str, str], oldest: int, newest: int
    ) -> None:
        found = limits(**configs)
        for inside in (max(oldest, 1), min(newest, LATEST_MS)):
            found.check("here", inside, 100)
        for outside in (oldest - 1, newest + 1):
            if 0 < outside < 2**62:
                with pytest.raises(UnsafeState, match=r"here: found timestamp \d+, which brokers refuse"):
                    found.check("here", outside, 100)

    def test_the_limit_and_the_remedy_are_named(self) -> None:
        with pytest.raises(UnsafeState) as refused:
            limits(message_timestamp_before_max_ms=str(3 * DAY)).check("here", NOW - 2 * DAY - 1, 100)
        assert "message.timestamp.before.max.ms of t" in refused.value.expected
        assert refused.value.remedy.startswith("Set message.timestamp.before.max.ms, and ")
        assert " to 9223372036854775807 on t until verify has passed" in refused.value.remedy
        with pytest.raises(UnsafeState) as refused:
            limits(max_message_bytes="1000").check("here", NOW, 1001)
        assert refused.value.expected == "at most max.message.bytes of t, 1000"
        assert refused.value.remedy.startswith("Set max.message.bytes=1001 or more on t until")
        limits(max_message_bytes="1000").check("here", NOW, 1000)


@pytest.mark.parametrize(
    ("key", "value", "headers", "body"),
    [
        (None, None, [], 3 + 1 + 1 + 1),
        (b"k", b"", [], 3 + 1 + 2 + 1),
        (b"k" * 63, b"v" * 64, [], 3 + 1 + (1 + 63) + (2 + 64)),
        (b"k", b"v" * 8192, [("h", b"x"), ("ä", None)], 3 + 1 + 2 + (3 + 8192) + (2 + 2) + (3 + 1)),
    ],
)
def test_a_batch_is_its_header_and_its_record_behind_their_lengths(
    key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes | None]], body: int
) -> None:
    length = next(n for n in range(1, 6) if 2 * body < 128**n)
    assert size_of(key, value, headers) == 61 + length + body


class Record:
    """A message of the client library."""

    def __init__(self, key: bytes, timestamp: int) -> None:
        self._key, self._timestamp = key, timestamp

    def key(self) -> bytes:
        return self._key

    def value(self) -> bytes:
        return b"v"

    def headers(self) -> None:
        return None

    def offset(self) -> int:
        return 7

    def timestamp(self) -> tuple[int, int]:
        return 1, self._timestamp

    def __len__(self) -> int:
        return 1


class Producer:
    """A producer that accepts everything."""

    def __init__(self) -> None:
        self.timestamps: list[int] = []

    def transaction(self) -> Any:
        return nullcontext()

    def produce(self, *_: Any, timestamp: int, **__: Any) -> None:
        self.timestamps.append(timestamp)


def unit(kind: MoveKind = MoveKind.CHANGELOG) -> CopyUnit:
    """A partition whose keys all move: the topic grows from 1 partition to so many that every key moves."""
    store_type = "key-value" if kind is MoveKind.CHANGELOG else ""
    named = {"source": "s", "target": "t", "store": "s", "store_type": store_type}
    return CopyUnit(Move(kind=kind, **named, source_partitions=1, target_partitions=64), 0)


NANOSECONDS = NOW * 1_000_000
BAD = [
    (0, "by the present time"),
    (-1, r"found no timestamp \(-1\), for which .* write the present time"),
    (NANOSECONDS, "no time in ms"),
]


@pytest.mark.parametrize(("timestamp", "found"), BAD)
def test_a_timestamp_that_can_not_be_written_or_proven_is_not_copied(timestamp: int, found: str) -> None:
    with pytest.raises(UnsafeState, match=rf"topic s partition 0 offset 7: .*{found}"):
        written(unit(), timestamp)
    assert written(unit(), LATEST_MS) == [LATEST_MS]


def test_a_bridge_that_stops_at_such_a_record_says_how_a_person_gets_it_past() -> None:
    with pytest.raises(UnsafeState, match="timestamp 0") as stopped:
        written(unit(MoveKind.INPUT), 0)
    assert stopped.value.complaint.remedy == (
        "Its producer must write real timestamps from now on. Write the records from the committed offset of the "
        "bridge's group up to this one to t yourself, commit the offset behind it to that group "
        "(`kafka-consumer-groups.sh --reset-offsets`), and run the bridge again."
    )


def test_nobody_reads_what_is_in_flight_but_the_application() -> None:
    assert written(unit(MoveKind.REPARTITION), NANOSECONDS) == [NANOSECONDS]


def written(of: CopyUnit, timestamp: int) -> list[int]:
    """The timestamps that the client gets."""
    producer: Any = Producer()
    nothing: Any = None
    fake: Any = [Record(b"k", timestamp)]
    UnitWriter(of, producer, nothing).write(fake)
    return list(producer.timestamps)


@pytest.mark.parametrize(("timestamp", "found"), BAD)
def test_a_rehearsal_finds_it_before(timestamp: int, found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(*_: Any, **__: Any) -> Iterator[Record]:
        return iter([Record(b"a", NOW), Record(b"b", timestamp)])

    monkeypatch.setattr(rehearsal, "read_ranges", read)
    with pytest.raises(UnsafeState, match=found):
        rehearsal.rehearse_unit(CONNECTION, unit(), 0, 2, limits())


def test_a_rehearsal_keeps_what_limits_are_compared_with_before_the_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batch by batch. ``None`` if nothing would be written."""
    monkeypatch.setattr(rehearsal, "BATCH_RECORDS", 2)
    times = [NOW, NOW - 5, NOW + 7]
    records = [Record(key, time) for key, time in zip([b"a", b"b" * 50, b"c"], times, strict=True)]
    monkeypatch.setattr(rehearsal, "read_ranges", lambda *_, **__: iter(records))
    found = rehearsal.rehearse_unit(CONNECTION, unit(), 0, 3, limits()).extremes
    assert found == Extremes(oldest_ms=NOW - 5, newest_ms=NOW + 7, bytes=size_of(b"b" * 50, b"v", ()))
    records.clear()
    nothing = rehearsal.rehearse_unit(CONNECTION, unit(), 0, 3, limits())
    assert nothing.extremes is None
    assert "extremes" not in nothing.model_dump_json()


def test_a_record_that_stays_is_read_by_the_proof_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a timestamp of 0, it can stay where it is. With a timestamp in ns, its topic could not be compared."""
    stays = unit().move.model_copy(update={"target": "s", "target_partitions": 1})

    def rehearse(timestamp: int) -> int:
        records: Iterable[Record] = [Record(b"a", timestamp)]
        monkeypatch.setattr(rehearsal, "read_ranges", lambda *_, **__: iter(records))
        return rehearsal.rehearse_unit(CONNECTION, CopyUnit(stays, 0), 0, 1, limits()).records

    assert rehearse(0) == 0
    with pytest.raises(UnsafeState, match="no time in ms"):
        rehearse(NANOSECONDS)


def test_a_rehearsal_can_be_ended_between_two_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[bytes] = []

    def records() -> Iterator[Record]:
        for key in (b"a", b"b", b"c"):
            read.append(key)
            yield Record(key, NOW)

    def go_on() -> None:
        if len(read) == 2:
            raise CancelledError

    monkeypatch.setattr(rehearsal, "BATCH_RECORDS", 1)
    monkeypatch.setattr(rehearsal, "read_ranges", lambda *_, **__: records())
    with pytest.raises(CancelledError):
        rehearsal.rehearse_unit(CONNECTION, unit(), 0, 3, limits(), go_on)
    assert read == [b"a", b"b"]
