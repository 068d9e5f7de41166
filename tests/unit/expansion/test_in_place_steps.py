"""The steps of a growth in place can be killed at every single call, and then be called again."""

from __future__ import annotations

from typing import Any

import pytest
from kafka_rescale.core.control.journal import Phase
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.operations.cutover import cutover
from kafka_rescale.operations.expansion.compaction import KEEP_ALL
from kafka_rescale.operations.expansion.rollback import roll_back
from kafka_rescale.operations.expansion.stages import expand_stage

from tests.support.expansion.gate_world import Killed
from tests.support.expansion.growing_steps import (
    APPLICATION,
    CONNECTION,
    assert_grown,
    cut_over,
    steps,
    use,
    without_brokers,
)
from tests.support.expansion.growing_world import NAME, OUTPUT, OWNER, GrowingWorld
from tests.support.plans import in_place_plan, stateless_plan


@pytest.fixture(autouse=True)
def _no_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    without_brokers(monkeypatch)


def test_it_is_stopped_grown_moved_and_started(monkeypatch: pytest.MonkeyPatch) -> None:
    world = use(GrowingWorld(), monkeypatch)
    steps(world)
    assert_grown(world)
    kept = {topic: configs["min.compaction.lag.ms"] for topic, configs in world.configs.items()}
    assert kept == {m.target: KEEP_ALL for m in world.plan.changelogs}


@pytest.mark.parametrize(("plan", "least"), [(in_place_plan(), 50), (stateless_plan(), 30)])
def test_killed_at_any_call_the_next_attempt_ends_in_the_same(
    plan: Plan, least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = use(GrowingWorld(plan), monkeypatch)
    steps(whole)
    assert whole.calls > least
    for call in range(1, whole.calls + 1):
        world = use(GrowingWorld(plan, dies_at=call), monkeypatch)
        with pytest.raises(Killed):
            steps(world)
        world.dies_at = 0
        steps(world)
        assert_grown(world)


def test_killed_before_the_promotion_it_can_be_rolled_back_after_it_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = use(GrowingWorld(), monkeypatch)
    steps(whole)
    ends = GrowingWorld().ends
    for call in range(1, whole.calls + 1):
        world = use(GrowingWorld(dies_at=call), monkeypatch)
        with pytest.raises(Killed):
            steps(world)
        world.dies_at = 0
        was_promoted = world.journal.is_promoted
        said = roll_back(APPLICATION, CONNECTION, owner=OWNER, reason="a test")
        assert ("only forward" in said.told) == was_promoted
        if not was_promoted:
            assert world.running
            own = {t: of for t, of in world.ends.items() if t != OUTPUT}
            assert own == {t: of for t, of in ends.items() if t != OUTPUT}
            assert not any(of.get("min.compaction.lag.ms") for of in world.configs.values())


def test_what_its_user_has_stopped_stays_so_after_a_rollback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = use(GrowingWorld(running=False, members=True), monkeypatch)
    with monkeypatch.context() as failing:
        failing.setattr(cutover, "assert_promotable", _refuse)
        with pytest.raises(UnsafeState):
            cut_over()
    assert world.journal.phase is Phase.ROLLED_BACK
    assert not world.running
    assert not world.journal.stop_asked
    said = roll_back(APPLICATION, CONNECTION, owner=OWNER, reason="the run's own task, behind it")
    assert said.told.startswith(
        f"rolled back before, by the task that failed; {NAME} was never touched; rolled_back"
    )
    another = roll_back(APPLICATION, CONNECTION, owner="rollback_x/another", reason="a test")
    assert another.told.startswith("nothing to roll back: it was done before; rolled_back")

    again = use(GrowingWorld(running=False, members=True), monkeypatch)
    steps(again)
    assert_grown(again)


def test_its_own_topics_grow_only_after_the_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    world = use(GrowingWorld(), monkeypatch)
    before = {t: dict(of) for t, of in world.ends.items()}
    for stage in world.plan.stages:
        expand_stage(APPLICATION, CONNECTION, owner=OWNER, stage=stage.index)
    assert {t for t, of in world.ends.items() if of != before[t]} <= {OUTPUT}


def _refuse(*_: Any) -> None:
    raise UnsafeState("a test", found="this", expected="that", remedy="None.")
