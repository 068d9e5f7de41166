"""The fence is where blue stopped, even if the log has lost records that blue had not read."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.core.cluster import GroupDescription, LogRange
from kafka_rescale.core.control.journal import Captured, Journal, PartitionOffsets, Phase
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.core.verify.start_offsets import check_start_offsets, input_starts
from kafka_rescale.kafka.copy.bridging import fence_of
from kafka_rescale.kafka.copy.marks import Mark, Position
from kafka_rescale.kafka.copy.start import start_of
from kafka_rescale.kafka.copy.units import units_of
from kafka_rescale.kafka.reading.source_rules import SourceRules
from kafka_rescale.operations.cutover import quiesce
from kafka_rescale.operations.cutover.promotion import assert_promotable
from kafka_rescale.operations.cutover.quiesce import prove_gone

from tests.unit.plan.test_repartitioned import plan

BRIDGED = plan(2, 4)
FIXED = plan(2, 4, inputs=[{"topic": "orders", "policy": "fixed"}])
STOPPED: PartitionOffsets = {"orders": {0: 50, 1: 90}}
"""Blue's offsets. It was down for longer than retention: partition 0 begins after its offset, 1 at it."""

BEGINS: PartitionOffsets = {"orders": {0: 80, 1: 90}}
LOG: PartitionOffsets = {"ordered-last-changelog": {0: 7, 1: 7}}
ENDS: PartitionOffsets = {"orders": {0: 100, 1: 95}, "orders-p4": dict.fromkeys(range(4), 0), **LOG}
RULES = SourceRules(tombstone_ms=None, expires=True)


def rescale(committed: PartitionOffsets = STOPPED) -> Any:
    """An application that has stopped."""
    admin = SimpleNamespace(
        begin_offsets=lambda topics: {t: BEGINS[t] for t in topics},
        end_offsets=lambda topics, **_: {t: ENDS[t] for t in topics},
        committed=lambda *_: committed,
        existing_topics=lambda _: {},
        remove_members=lambda _: (),
        describe_group=lambda group: GroupDescription(group, "Empty", ()),
    )
    lifecycle = SimpleNamespace(is_running=lambda _: False)
    return SimpleNamespace(admin=admin, lifecycle=lifecycle, is_alive=lambda _: False, connection=None)


@pytest.fixture(autouse=True)
def _no_transactions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quiesce, "wait_until_complete", lambda admin, topics, **_: admin.end_offsets(topics))


def promoted(of: Plan) -> Journal:
    return Journal(plan=of, phase=Phase.PROMOTED, captured=prove_gone(rescale(), of, 1))


def test_a_bridge_begins_at_the_log_start_if_blue_had_not_come_so_far() -> None:
    fence = fence_of(promoted(BRIDGED), ())
    assert fence == {("orders", 0): 80, ("orders", 1): 90}
    for unit in units_of(BRIDGED.bridges):
        p = unit.partition
        log = LogRange(BEGINS["orders"][p], ENDS["orders"][p])
        assert start_of(unit, Position(fence[unit.source], Mark()), log, RULES, 0).offset == fence[unit.source]


def test_a_log_that_loses_more_after_that_is_still_refused() -> None:
    unit = units_of(BRIDGED.bridges)[0]
    with pytest.raises(UnsafeState, match="log start 81, beyond the position 80"):
        start_of(unit, Position(fence_of(promoted(BRIDGED), ())[unit.source], Mark()), LogRange(81, 100), RULES, 0)


def test_green_is_given_a_start_that_exists_in_an_input_that_it_reads_itself() -> None:
    captured = promoted(FIXED).captured
    assert captured is not None
    started = input_starts(FIXED.inputs, captured.committed)
    assert started == BEGINS
    found = check_start_offsets(FIXED.inputs, stopped=captured.committed, started=started, committed=started)
    assert found == ()


def test_what_blue_has_not_done_is_no_sign_of_its_life() -> None:
    journal = promoted(BRIDGED)
    assert_promotable(rescale(), journal)
    with pytest.raises(UnsafeState, match="found offsets of orders-0 that it has committed since"):
        assert_promotable(rescale({"orders": {0: 81, 1: 90}}), journal)


def test_what_was_deleted_unread_is_told_once_by_its_place(caplog: pytest.LogCaptureFixture) -> None:
    prove_gone(rescale(), BRIDGED, 1)
    (record,) = caplog.records
    assert record.message == (
        "30 offsets of orders-0 were deleted before ordered had read them; "
        "ordered-g2 goes on from the log start, 80"
    )


def test_of_a_log_that_is_whole_nothing_is_told(caplog: pytest.LogCaptureFixture) -> None:
    whole = {"orders": {0: 85, 1: 90}}
    assert prove_gone(rescale(whole), BRIDGED, 1) == Captured(committed=whole, changelog_ends=LOG)
    assert not caplog.records
