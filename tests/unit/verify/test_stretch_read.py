"""How often a stretch is read, however long it is, and that its parts are judged as the whole would be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Set
from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.core.cluster import TopicDescription
from kafka_rescale.core.errors import Outage
from kafka_rescale.core.partitioning.partitioners import partitioner_named
from kafka_rescale.core.plan.plan import Move, MoveKind
from kafka_rescale.core.verify.fences import Fences
from kafka_rescale.core.verify.oracles import Oracle
from kafka_rescale.core.verify.report import StoreReport
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.reading import later_keys as later_module
from kafka_rescale.kafka.verify import delta, spool, stretch
from kafka_rescale.kafka.verify.delta import StoreDelta
from kafka_rescale.kafka.verify.stretch import Ranges, Stretch

BLUE, GREEN, KEYS, RECORDS = 2, 4, 60, 600
MOVE = Move(
    kind=MoveKind.CHANGELOG,
    source="blue",
    target="green",
    store="totals",
    store_type="key-value",
    source_partitions=BLUE,
    target_partitions=GREEN,
)
NEW = b"key-7"


class Message(SimpleNamespace):
    """A record, with the methods of the client library's."""

    def __getattr__(self, name: str) -> Any:
        return lambda: self.__dict__["of"][name]


class Logs:
    """Both topics, as lists by partition, and how many records were read of each."""

    def __init__(self) -> None:
        self.topics: dict[str, dict[int, list[Message]]] = {
            "blue": {p: [] for p in range(BLUE)},
            "green": {p: [] for p in range(GREEN)},
        }
        self.read: Counter[str] = Counter()

    def put(self, topic: str, key: bytes, value: bytes | None, time: int, shift: int = 0) -> None:
        of = self.topics[topic]
        partition = (partitioner_named("murmur2").partition(key, len(of)) + shift) % len(of)
        of[partition].append(
            Message(
                of={
                    "key": key,
                    "value": value,
                    "partition": partition,
                    "offset": len(of[partition]),
                    "timestamp": (1, time),
                    "headers": None,
                }
            )
        )

    def read_ranges(self, _: object, topic: str, ranges: Ranges, **__: bool) -> Iterator[Message]:
        for partition, (begin, end) in ranges.items():
            for message in self.topics[topic][partition]:
                if begin <= message.offset() < end:
                    self.read[topic] += 1
                    yield message

    def ends(self, topic: str) -> dict[str, dict[int, int]]:
        return {topic: {p: len(of) for p, of in self.topics[topic].items()}}

    def begin_offsets(self, topics: list[str]) -> dict[str, dict[int, int]]:
        return {topic: dict.fromkeys(self.topics[topic], 0) for topic in topics}

    def compared(
        self, copied: Mapping[str, Mapping[int, int]] | None = None, *, stores_at_once: int = 1
    ) -> StoreReport:
        """Compare both topics from their beginnings up to what is copied; by default, that is all of blue."""
        self.read.clear()
        ends, none = copied or self.ends("blue"), self.begin_offsets(["blue"])
        before = Fences(
            begun=none,
            green_begun=self.begin_offsets(["green"]),
            fence=none,
            green_ends=self.begin_offsets(["green"]),
            green_begins=self.begin_offsets(["green"]),
            green_topics={"green": "id"},
            blue_ends=none,
            as_of_ms=0,
            copied_as_of_ms={"blue": now_ms()},
        )
        changes = {"fence": ends, "begun": ends, "blue_ends": ends, "green_ends": self.ends("green")}
        compact = {"cleanup.policy": "compact"}
        topics = {topic: TopicDescription(topic, len(of), 1, compact) for topic, of in self.topics.items()}
        nothing: Any = None
        admin: Any = self
        now = before.model_copy(update=changes)
        return StoreDelta(nothing, admin, MOVE, Stretch(before, now), topics, stores_at_once).compare()


@pytest.fixture
def logs(monkeypatch: pytest.MonkeyPatch) -> Logs:
    """Blue's records and right copies of them, in parts of ten keys or so."""
    logs = Logs()
    for number in range(RECORDS):
        key, value = b"key-%d" % (number % KEYS), None if number % 7 == 0 else b"%d" % number
        for topic in logs.topics:
            logs.put(topic, key, value, 1 + number)
    monkeypatch.setattr(stretch, "read_ranges", logs.read_ranges)
    monkeypatch.setattr(later_module, "read_ranges", logs.read_ranges)
    monkeypatch.setattr(delta, "RECORDS_AT_ONCE", 10)
    monkeypatch.setattr(delta, "PARTS_AT_ONCE", 1_000)
    monkeypatch.setattr(spool, "BUFFERED", 3)
    return logs


def once(logs: Logs) -> dict[str, int]:
    return {topic: sum(map(len, of.values())) for topic, of in logs.topics.items()}


def test_a_long_stretch_without_a_difference_is_read_once(logs: Logs) -> None:
    found = logs.compared()
    assert logs.read == once(logs)
    assert (found.failures, found.blue.records, found.green.records) == ({}, RECORDS, RECORDS)
    assert found.green.live + found.green.tombstoned == KEYS


def test_differences_in_many_parts_are_looked_into_together(logs: Logs) -> None:
    wrong = {b"key-%d" % n for n in range(30)}
    for key in wrong:
        logs.put("green", key, b"another", 1)
    found = logs.compared()
    assert logs.read == {topic: 2 * count for topic, count in once(logs).items()}
    assert {f.key for f in found.findings} <= {key.hex() for key in wrong}
    assert found.failures[Oracle.STATE] + found.failures[Oracle.TOMBSTONES] == len(wrong)


def test_how_much_is_on_disk_and_in_memory_is_bounded(logs: Logs, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(30):
        logs.put("green", b"key-%d" % n, b"another", 1)
    whole = logs.compared()
    monkeypatch.setattr(delta, "PARTS_AT_ONCE", 32)
    monkeypatch.setattr(delta, "SUSPECTS", 10)
    assert logs.compared() == whole
    assert logs.read["blue"] > 4 * RECORDS


@pytest.mark.parametrize("at_once", [10, 10_000], ids=["parts", "whole"])
def test_a_copy_that_was_written_twice_is_found(logs: Logs, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delta, "RECORDS_AT_ONCE", at_once)
    for topic in ("blue", "green", "green"):
        logs.put(topic, b"another key", b"value", 1_000)
    assert logs.compared().failures == {Oracle.DUPLICATES: 1}


def test_a_difference_that_a_later_record_of_blue_explains_is_none(logs: Logs) -> None:
    copied = logs.ends("blue")
    logs.put("green", NEW, b"compacted away in blue", 1_000)
    logs.put("blue", NEW, b"later", 1_001)
    assert logs.compared(copied).failures == {}


def test_a_later_record_does_not_explain_a_record_that_lies_in_a_wrong_partition(logs: Logs) -> None:
    copied = logs.ends("blue")
    logs.put("green", NEW, b"astray", 1_000, shift=1)
    logs.put("blue", NEW, b"later", 1_001)
    found = logs.compared(copied)
    assert set(found.failures) == {Oracle.PLACEMENT, Oracle.ONE_PARTITION}
    assert {f.key for f in found.findings} == {NEW.hex()}


def test_the_search_for_later_records_ends_with_the_last_key(logs: Logs) -> None:
    keys: Set[bytes] = {message.key() for message in logs.topics["blue"][0][:5]}
    nothing: Any = None
    assert later_module.later_keys(nothing, "blue", dict.fromkeys(range(BLUE), 0), keys) == keys
    assert logs.read["blue"] == 5


def test_stores_that_are_compared_at_once_share_the_disk(logs: Logs, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store reads a long stretch once per share: here, 16 of 61 parts."""
    monkeypatch.setattr(delta, "PARTS_AT_ONCE", 64)
    logs.compared(stores_at_once=4)
    assert logs.read == {topic: 4 * count for topic, count in once(logs).items()}
    logs.compared(stores_at_once=100)
    assert logs.read == {topic: 61 * count for topic, count in once(logs).items()}, "one part at a time"


def test_a_lost_deletion_explains_no_record_that_lies_in_a_wrong_partition(
    logs: Logs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delta, "now_ms", lambda: now_ms() + 2 * 86_400_000)
    logs.put("green", b"nobody's", None, 1_000, shift=1)
    with pytest.raises(Outage, match="no longer than deletions are kept"):
        logs.compared()
    copied = logs.ends("blue")
    logs.put("blue", b"nobody's", b"later", 1_001)
    assert logs.compared(copied).failures == {Oracle.PLACEMENT: 1}
