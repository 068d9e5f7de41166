"""The bridge of the last promotion, after the attempt at the next expansion was rolled back."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.cli.views import status_view
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.control.bridge import Bridge, bridging
from kafka_rescale.core.control.generations import Generations
from kafka_rescale.core.control.journal import Captured, Journal, PartitionOffsets, Phase
from kafka_rescale.core.control.progress import PartitionProgress
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import PreflightRefused
from kafka_rescale.core.expansion.bridge_progress import with_progress
from kafka_rescale.core.preflight.bridge import unfinished_bridge
from kafka_rescale.kafka.control import journal_store
from kafka_rescale.kafka.copy import bridging as looking
from kafka_rescale.kafka.copy.bridging import assert_ended, assert_none_late, verdict_now
from kafka_rescale.spark.copy.bridge_tasks import CARRY, CarryOn
from kafka_rescale.spark.copy.tasks import STOPPED

from tests.support.cluster.young_broker import YoungBroker
from tests.support.plans import plan_for
from tests.support.situations import situation
from tests.unit.plan.test_repartitioned import ORDERED, plan

PLAN = plan(2, 4)
NEXT = plan(4, 8).model_copy(update={"generation": 3, "blue": PLAN.green, "green": "ordered-g3"})
ENDS: PartitionOffsets = {"orders": {0: 10, 1: 20}}
LATE: PartitionOffsets = {"orders": {0: 10, 1: 21}}
ENDED = Bridge(plan=PLAN.fingerprint, begun=True, ends=ENDS, quiet_since_ms=1, ended_at_ms=77)
CAPTURED = Captured(committed={"orders": {0: 1, 1: 2}}, changelog_ends={"c": {0: 5}})
COMPLETE = ControlState(
    journal=Journal(plan=PLAN, phase=Phase.COMPLETE, captured=CAPTURED, green_ends={"c": {0: 5}}),
    generations=Generations(running=PLAN.green, generation=2, since_ms=1),
    bridge=ENDED,
)
CONNECTION: Any = None


def begun(state: ControlState, plan: Any = NEXT) -> ControlState:
    """The control state after an attempt at another plan has begun."""

    written: list[ControlState] = []

    def update(change: Any) -> ControlState:
        found = {str(k): v for k, v in change(state).items() if "/" not in str(k)}
        written.append(state.model_copy(update=found))
        return written[0]

    control: Any = SimpleNamespace(application="ordered", update=update)
    journal_store.begin(control, plan, "run", now_ms=1)
    return written[0]


def in_phase(state: ControlState, phase: Phase) -> ControlState:
    assert state.journal is not None
    return state.model_copy(update={"journal": state.journal.model_copy(update={"phase": phase})})


BACK = in_phase(begun(COMPLETE), Phase.ROLLED_BACK)


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> PartitionOffsets:
    """The ends that the old topics have; the tests change them. The broker that is asked first knows no topic."""
    found = {topic: dict(of) for topic, of in ENDS.items()}
    monkeypatch.setattr(looking, "ClusterAdmin", lambda _: YoungBroker(found, {}))
    return found


def test_the_journal_that_is_replaced_leaves_what_its_bridges_need() -> None:
    kept = BACK.replaced_promotion
    assert kept is not None
    assert (kept.plan, kept.phase) == (PLAN, Phase.COMPLETE)
    assert kept.captured == Captured(committed=CAPTURED.committed)
    assert not kept.green_ends
    again = begun(BACK, NEXT.model_copy(update={"partitions": 16}))
    assert again.replaced_promotion == kept, "a further attempt"
    assert ControlState.model_validate_json(BACK.model_dump_json()) == BACK


def test_an_expansion_without_bridges_leaves_nothing() -> None:
    before = COMPLETE.model_copy(update={"journal": Journal(plan=plan_for("ordered"), phase=Phase.COMPLETE)})
    assert begun(before).replaced is None
    assert begun(before.model_copy(update={"replaced": BACK.replaced})).replaced is None


def test_what_a_job_writes_meanwhile_does_not_lose_it(ends: PartitionOffsets) -> None:
    ends["orders"][1] = 21
    for bridge in (ENDED.model_copy(update={"quiet_since_ms": 2}), Bridge(plan=NEXT.fingerprint)):
        state = BACK.model_copy(update={"bridge": bridge})
        assert verdict_now(CONNECTION, state).due
        with pytest.raises(PreflightRefused):
            assert_none_late(CONNECTION, in_phase(state, Phase.WARMING))


@pytest.mark.parametrize("phase", Phase)
def test_only_after_a_rollback_the_bridges_of_the_last_promotion_have_work(phase: Phase) -> None:
    state = in_phase(BACK, phase)
    assert state.bridging == (state.replaced_promotion if phase is Phase.ROLLED_BACK else state.journal)


def test_a_bridge_of_an_earlier_generation_has_no_work() -> None:
    later = BACK.model_copy(update={"generations": Generations(running="ordered-g3", generation=3)})
    assert (later.replaced_promotion, later.bridging) == (None, BACK.journal)


def test_a_late_record_wakes_it_up(ends: PartitionOffsets) -> None:
    assert not verdict_now(CONNECTION, BACK).due
    ends["orders"][1] = 21
    found = verdict_now(CONNECTION, BACK)
    assert (found.due, found.reason[:25]) == (True, "orders -> orders-p4: had ")


def test_its_tasks_carry_on_until_another_expansion_begins() -> None:
    carry = CarryOn(CONNECTION, PLAN, attempt=1, session="s", replaced=BACK.replaced_promotion)
    assert carry.verdict(bridging(BACK.journal, carry.replaced)) == CARRY
    again = in_phase(BACK, Phase.WARMING)
    assert carry.verdict(bridging(again.journal, carry.replaced)) == STOPPED
    assert carry.verdict(bridging(BACK.journal, None)) == STOPPED


def test_the_next_attempt_is_refused_while_there_are_late_records(ends: PartitionOffsets) -> None:
    assert_ended(CONNECTION, BACK, NEXT)
    ends["orders"][1] = 21
    with pytest.raises(PreflightRefused, match=r"had ended, in partitions 1 \(end 21\)"):
        assert_ended(CONNECTION, BACK, NEXT)


def test_preflight_finds_late_records() -> None:
    control = BACK.model_copy(update={"generations": Generations(running="shop", generation=2)})
    given = replace(situation(16), control=control, bridged_ends=ENDS)
    assert list(unfinished_bridge(given)) == []
    [found] = unfinished_bridge(replace(given, bridged_ends=LATE))
    assert found.what == "bridge from 'orders' to 'orders-p4'"


def test_a_cutover_is_refused_while_there_are_late_records(ends: PartitionOffsets) -> None:
    attempt = in_phase(BACK, Phase.WARMING)
    assert_none_late(CONNECTION, attempt)
    ends["orders"][0] = 11
    assert_none_late(CONNECTION, COMPLETE)
    with pytest.raises(PreflightRefused, match=r"had ended, in partitions 0 \(end 11\)"):
        assert_none_late(CONNECTION, attempt)


def test_a_topic_that_was_deleted_has_no_late_records(ends: PartitionOffsets) -> None:
    del ends["orders"]
    assert_none_late(CONNECTION, in_phase(BACK, Phase.WARMING))
    assert_ended(CONNECTION, BACK, NEXT)
    assert not verdict_now(CONNECTION, BACK).due


def test_the_status_says_that_there_are_late_records() -> None:
    progress = [PartitionProgress(topic="orders", partition=1, position=20, end=21)]
    text = status_view(Application.model_validate(ORDERED), with_progress(BACK, progress, 99), ()).text
    [line] = [line for line in text.splitlines() if line.startswith("bridge: ")]
    assert line.startswith("bridge: NOT AT WORK (not_begun), 1 offsets behind")
