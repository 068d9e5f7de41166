"""What is left of the differences that a proof sees beside a live blue, and what becomes of the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.core.errors import Outage
from kafka_rescale.core.verify.oracles import Oracle
from kafka_rescale.core.verify.pairs import ComparedLog, StorePair
from kafka_rescale.core.verify.report import LogCount, PartitionContent, StoreReport
from kafka_rescale.spark.verify import live
from kafka_rescale.spark.verify.compare import Counts
from kafka_rescale.spark.verify.live import BesideBlue

PAIR = StorePair(
    store="totals",
    store_type="key-value",
    blue=ComparedLog.of("blue", {}, {0: 9, 1: 9}),
    green=ComparedLog.of("green", {}, dict.fromkeys(range(4), 9)),
    fence={0: 9, 1: 9},
)
SEEN = StoreReport(
    store="totals",
    store_type="key-value",
    blue_topic="blue",
    green_topic="green",
    blue=LogCount(records=9, live=4),
    green=LogCount(records=9, live=4),
    expired=0,
    surplus=0,
    partitions=(PartitionContent(partition=0, blue_live=4, green_live=4, blue_hash="ab", green_hash="cd"),),
    excused=2,
    failures={Oracle.STATE: 1},
)
"""The counts of the first reading."""
NO_KEY: set[bytes] = set()

Suspect = Mapping[str, Any]


def suspect(key: bytes, *oracles: Oracle, shape: int = 1, **fields: object) -> Suspect:
    """A row with a difference. By default, the proof judges its key, and its records lie where they should."""
    sides = {
        f"{side}_{name}": value
        for side, partition in (("blue", 1), ("green", 3))
        for name, value in {
            "partition": partition,
            "offset": 5,
            "timestamp": 0,
            "tombstone": False,
            "value_1": 0,
            "value_2": 0,
            "headers": 0,
            "neighbour": None,
        }.items()
    }
    whole = {"key": key, "rank": 1, "shape": shape, "source": 1, "target": 3, "touched": False, **sides}
    return {**whole, "oracles": [o.value for o in oracles], **fields}


Proves = Callable[..., StoreReport]


@pytest.fixture
def proves(monkeypatch: pytest.MonkeyPatch) -> Proves:
    """Returns the report of a store whose readings have these rows.

    It takes what is found in each reading, the keys that blue has written since, and whether deletions are lost.
    """

    def report_of(
        *readings: Sequence[Suspect], later: Callable[[Set[bytes]], Set[bytes]] | None = None, lost: bool = False
    ) -> StoreReport:
        rows = iter(readings)
        for name in ("align", "judge"):
            monkeypatch.setattr(live, name, lambda *_: None)
        monkeypatch.setattr(live, "_suspects", lambda *_: next(rows))
        monkeypatch.setattr(live, "_complete", lambda *_: set())
        spark: Any = SimpleNamespace(createDataFrame=lambda *_: None)
        beside = BesideBlue(later=later or (lambda _: NO_KEY), lacks_deletions=lambda: lost)
        return live._certain(spark, {}, None, PAIR, Counts(SEEN, {}, 0), beside)

    return report_of


def every(keys: Set[bytes]) -> Set[bytes]:
    """Blue has written all of them since."""
    return keys


def test_a_difference_that_a_later_record_explains_is_no_finding(proves: Proves) -> None:
    report = proves([suspect(b"hot", Oracle.STATE, Oracle.TOMBSTONES)], later=every)

    assert (report.passed, report.findings) == (True, ())


def test_no_later_record_explains_a_copy_in_a_wrong_partition(proves: Proves) -> None:
    """Such a copy stays in green when blue writes its key again, and nothing else looks at it."""
    wrong = suspect(b"hot", Oracle.STATE, Oracle.PLACEMENT, green_partition=2)

    report = proves([wrong], later=every)

    assert report.failures == {Oracle.PLACEMENT: 1}
    assert [(f.key, f.detail) for f in report.findings] == [(b"hot".hex(), "in partition 2 instead of 3")]


def test_it_is_found_beside_other_keys_that_are_read_again(proves: Proves) -> None:
    hot, cold = suspect(b"hot", Oracle.PLACEMENT), suspect(b"cold", Oracle.STATE)

    report = proves([hot, cold], [cold], later=lambda keys: keys & {b"hot"})

    assert report.failures == {Oracle.PLACEMENT: 1, Oracle.STATE: 1}
    assert proves([hot, cold], [], later=lambda keys: keys & {b"hot"}).failures == {Oracle.PLACEMENT: 1}


@pytest.mark.parametrize(
    ("fields", "failures"),
    [
        ({"green_neighbour": 0}, {Oracle.ONE_PARTITION: 1}),
        ({"blue_neighbour": 0}, {}),
        ({"green_neighbour": 3}, {}),
    ],
    ids=["in green", "in blue", "the other side"],
)
def test_a_key_in_two_partitions_of_green_is_certain_but_a_deletion_may_explain_those_of_blue(
    fields: dict[str, int], failures: dict[Oracle, int], proves: Proves
) -> None:
    assert proves([suspect(b"hot", Oracle.ONE_PARTITION, **fields)], later=every).failures == failures


def test_what_lies_wrong_in_blue_may_be_deleted_by_a_later_record(proves: Proves) -> None:
    assert proves([suspect(b"hot", Oracle.MISPLACED_IN_BLUE)], later=every).passed


def test_a_deletion_that_blue_may_have_lost_explains_no_copy_in_a_wrong_partition(proves: Proves) -> None:
    misplaced = suspect(b"gone", Oracle.PLACEMENT, Oracle.TOMBSTONES, blue_offset=None)
    invented = suspect(b"gone", Oracle.TOMBSTONES, blue_offset=None)

    assert proves([misplaced], [misplaced], lost=True).failures == {Oracle.PLACEMENT: 1}
    with pytest.raises(Outage, match="longer than deletions are kept"):
        proves([invented], [invented], lost=True)


def test_what_was_not_looked_at_is_not_taken_for_equal(proves: Proves, monkeypatch: pytest.MonkeyPatch) -> None:
    """More rows differ than come to the driver. Those that come are explained, or resolved when read again."""
    monkeypatch.setattr(live, "SUSPECTS", 2)
    hot, cold = suspect(b"hot", Oracle.TOMBSTONES), suspect(b"cold", Oracle.SEQUENCE)
    twice = suspect(b"cold", Oracle.DUPLICATES)

    for readings in ([[hot, cold], []], [[hot, twice], [twice]]):
        with pytest.raises(Outage, match="more than 2 differences, and no mistake among the first of them"):
            proves(*readings, later=lambda keys: keys & {b"hot"})
    with pytest.raises(Outage, match="more than 2 differences"):
        proves([hot, cold], later=every)
    assert proves([hot, cold], [cold], later=lambda keys: keys & {b"hot"}).failures == {Oracle.SEQUENCE: 1}


def test_a_key_that_a_later_record_explains_counts_as_left_out(proves: Proves) -> None:
    """The counts and hashes of the first reading have it on both sides, with a difference."""
    hot, warm = suspect(b"hot", Oracle.STATE), suspect(b"warm", Oracle.STATE)
    left_out_before = suspect(b"misplaced", Oracle.PLACEMENT, touched=True)
    written = iter([{b"hot", b"misplaced"}, {b"warm"}])

    report = proves([hot, warm, left_out_before], [warm], later=lambda _: next(written))

    assert (report.failures, report.excused) == ({Oracle.PLACEMENT: 1}, 4)
