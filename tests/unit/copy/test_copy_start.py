"""Where a copy continues."""

from __future__ import annotations

from dataclasses import replace

import pytest
from kafka_rescale.core.cluster import LogRange
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.plan.plan import Move, MoveKind
from kafka_rescale.kafka.copy.marks import EMPTIED, RESETTING, SEEDING, Mark, Position
from kafka_rescale.kafka.copy.settings import StaleCopy
from kafka_rescale.kafka.copy.start import start_of, truncated
from kafka_rescale.kafka.copy.units import CopyUnit, buckets_of, divided, units_of
from kafka_rescale.kafka.reading.source_rules import SourceRules

NOW = 1_000_000
COMPACTED = SourceRules(tombstone_ms=1000, expires=False)
WINDOWED = SourceRules(tombstone_ms=1000, expires=True)
DELETED = SourceRules(tombstone_ms=None, expires=True)
IN_FLIGHT = SourceRules(tombstone_ms=None, expires=True)


def move(kind: MoveKind = MoveKind.CHANGELOG, source: str = "blue", count: int = 4) -> Move:
    return Move(kind=kind, source=source, target="green", store="s", source_partitions=count, target_partitions=8)


LOG = CopyUnit(move(), 0)
FLIGHT = CopyUnit(move(MoveKind.REPARTITION), 0)


def at(offset: int, age: int = 10, state: str = "") -> Position:
    return Position(offset, Mark(as_of_ms=NOW - age, state=state))


def test_a_new_copy_begins_at_the_log_start_and_counts_its_age_from_now() -> None:
    assert start_of(LOG, None, LogRange(7, 20), COMPACTED, NOW) == Position(7, Mark(as_of_ms=NOW))


def test_a_copy_goes_on_where_it_was() -> None:
    assert start_of(LOG, at(12), LogRange(7, 20), COMPACTED, NOW) == at(12)


def test_what_has_expired_is_skipped_in_a_windowed_changelog() -> None:
    assert start_of(LOG, at(3), LogRange(7, 20), WINDOWED, NOW).offset == 7


@pytest.mark.parametrize(
    ("unit", "position", "rules", "found"),
    [
        (LOG, at(21), COMPACTED, "end 20, below the position 21"),
        (LOG, at(3), COMPACTED, "log start 7, beyond the position 3"),
        (FLIGHT, at(3), IN_FLIGHT, "log start 7, beyond the position 3"),
        (FLIGHT, None, IN_FLIGHT, "no position"),
    ],
)
def test_a_log_that_is_not_the_one_read_before_is_unsafe(
    unit: CopyUnit, position: Position | None, rules: SourceRules, found: str
) -> None:
    with pytest.raises(UnsafeState, match=found):
        start_of(unit, position, LogRange(7, 20), rules, NOW)


CARRIED = CopyUnit(move(MoveKind.INPUT, "orders"), 0)
IN_PLACE = CopyUnit(move(source="green"), 0)


@pytest.mark.parametrize(
    ("unit", "way_on"),
    [
        (LOG, "Delete the green topics and the consumer group of the copy"),
        (CARRIED, "Delete nothing of green.* first record that green does not have .* to the bridge's group"),
        (IN_PLACE, "Delete nothing: the application has no other copy of this topic.* wake its owner"),
    ],
    ids=["a copy", "a bridge", "in place"],
)
def test_only_a_copy_may_be_deleted_after_its_source_was_cut(unit: CopyUnit, way_on: str) -> None:
    with pytest.raises(UnsafeState, match=way_on):
        start_of(unit, at(21), LogRange(7, 20), DELETED, NOW)
    with pytest.raises(UnsafeState, match=way_on):
        raise truncated(unit, 21)


@pytest.mark.parametrize(
    ("unit", "way_on"),
    [
        (LOG, "Find out why"),
        (CARRIED, "Delete nothing of green.* commit 7 to the bridge's group .*, and run the bridge again"),
        (IN_PLACE, "Delete nothing: the application has no other copy of this topic.* wake its owner"),
    ],
    ids=["a copy", "a bridge", "in place"],
)
def test_after_records_were_deleted_the_way_on_is_named(unit: CopyUnit, way_on: str) -> None:
    rules = DELETED if unit is CARRIED else COMPACTED
    with pytest.raises(UnsafeState, match=way_on):
        start_of(unit, at(3), LogRange(7, 20), rules, NOW)


def test_a_copy_that_may_have_missed_deletions_does_not_go_on() -> None:
    with pytest.raises(StaleCopy, match="last reached an end 1001 ms ago") as caught:
        start_of(LOG, at(12, age=1001), LogRange(7, 20), COMPACTED, NOW)
    assert "raise the limit of the pace; or roll back, raise delete.retention.ms" in caught.value.remedy
    assert "protects only copies that begin after it" in caught.value.remedy, "brokers date by the earlier value"


@pytest.mark.parametrize("state", [RESETTING, SEEDING])
@pytest.mark.parametrize(("unit", "rules"), [(LOG, COMPACTED), (LOG, DELETED), (FLIGHT, IN_FLIGHT)])
def test_a_copy_whose_target_is_in_pieces_does_not_go_on(unit: CopyUnit, rules: SourceRules, state: str) -> None:
    with pytest.raises(StaleCopy, match=f"ended while it was {state}"):
        start_of(unit, at(12, state=state), LogRange(7, 20), rules, NOW)


def test_the_age_of_records_in_flight_does_not_matter() -> None:
    assert start_of(FLIGHT, at(12, age=10**6), LogRange(7, 20), IN_FLIGHT, NOW).offset == 12


def test_a_mark_survives_the_metadata_of_an_offset() -> None:
    mark = Mark(as_of_ms=5, records=6, bytes=7, attempt=8, state=EMPTIED)
    assert Mark.from_metadata(mark.to_metadata()) == mark
    assert "restarted" not in mark.to_metadata(), "an earlier version would take it for no mark"
    again = replace(mark, restarted_ms=9)
    assert Mark.from_metadata(again.to_metadata()) == again


@pytest.mark.parametrize("text", [None, "", "something", "[]", '{"other": 1}', "3"])
def test_an_offset_that_somebody_else_committed_counts_as_ancient(text: str | None) -> None:
    assert Mark.from_metadata(text) == Mark(as_of_ms=0)


def test_units_are_divided_evenly_and_repartition_topics_stay_whole() -> None:
    units = units_of([move(count=5), move(MoveKind.REPARTITION, "flight", 4)])
    lists = divided(units, 3)
    assert sorted(str(u) for each in lists for u in each) == sorted(map(str, units))
    assert [sum(u.is_changelog for u in each) for each in lists] == [2, 2, 1]
    assert {sum(not u.is_changelog for u in each) for each in lists} == {0, 4}


def test_what_one_producer_writes_stays_together() -> None:
    """Otherwise two processes would fence each other."""
    units = units_of([move(count=9).model_copy(update={"producers": 4})])
    assert [[u.partition for u in of] for of in buckets_of(units)] == [[0, 4, 8], [1, 5], [2, 6], [3, 7]]
    lists = divided(units, 3)
    assert [[u.partition for u in of] for of in lists] == [[0, 4, 8, 3, 7], [1, 5], [2, 6]]
    assert len({u.transactional_id("green") for u in units}) == 4


def test_topics_share_no_producer() -> None:
    """A topic that starts anew fences its own writers, while copies of other topics go on."""
    one, other = (move(source=s, count=3).model_copy(update={"producers": 1}) for s in ("one", "other"))
    assert [len(of) for of in buckets_of(units_of([one, other]))] == [3, 3]


def test_there_are_no_empty_lists() -> None:
    assert [len(each) for each in divided(units_of([move(count=2)]), 8)] == [1, 1]
    assert divided([], 8) == []
