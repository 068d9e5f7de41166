"""What an application's health is, and whether a person is needed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from kafka_rescale.core.cluster import GroupDescription
from kafka_rescale.core.control.bridge import Bridge, ReplacedBridges
from kafka_rescale.core.control.generations import Generations
from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.lease import Lease
from kafka_rescale.core.control.progress import PartitionProgress
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.page.health import Level, State, health_of
from kafka_rescale.core.page.summary import unknown

from tests.support.page.page_contents import NOW_MS, World, complete, control, copying, paused, quiet
from tests.unit.plan.test_repartitioned import plan as repartitioned_plan

LIVE, EMPTY = GroupDescription("x", "Stable", ("i",)), GroupDescription("x", "Empty")


def test_findings_are_bad_and_say_what_to_stop() -> None:
    page = complete("orders", passed=False).page()
    assert (page.summary.health.level, page.proof and page.proof.passed) == (Level.BAD, False)
    assert "orders-g2" in page.summary.health.reason


def test_an_expansion_without_a_run_needs_a_person() -> None:
    world = copying("orders")
    lease = world.control.lease
    assert lease is not None
    freed = world.control.model_copy(update={"lease": lease.model_copy(update={"released": True})})
    assert health_of(freed, LIVE).level is Level.ATTENTION


def test_a_job_that_failed_needs_a_person_and_says_why() -> None:
    world = copying("orders")
    results = [
        r.model_copy(update={"state": "failed", "detail": "Outage: no broker"}) if r.job == "restore/2" else r
        for r in world.control.results.values()
    ]
    health = health_of(control(world, Phase.WARMING, results), LIVE)
    assert (health.level, health.reason) == (Level.ATTENTION, "restore/2 has failed: Outage: no broker")


@pytest.mark.parametrize(
    ("seconds", "phase", "level"),
    [
        (299, Phase.QUIESCED, Level.WORKING),
        (301, Phase.QUIESCED, Level.ATTENTION),
        (301, Phase.PROMOTED, Level.WORKING),
        (301, Phase.WARMING, Level.WORKING),
    ],
)
def test_a_pause_before_the_promotion_that_no_cutover_has_ended_needs_a_person(
    seconds: int, phase: Phase, level: Level
) -> None:
    """The run that holds the lease may be over. After the promotion, in place, a long move is no fault."""
    world = paused("orders")
    assert world.control.journal is not None
    changes = {"phase": phase, "pause_started_ms": NOW_MS - seconds * 1000, "owner": "expand_orders/marked"}
    journal = world.control.journal.model_copy(update=changes)
    live = phase is Phase.WARMING
    world = replace(world, control=world.control.model_copy(update={"journal": journal}), live=live)
    assert world.application.max_pause_seconds == 300
    health = world.page().summary.health
    assert health.level is level
    assert ("expand_orders/marked is not at work, trigger rollback_orders" in health.reason) == (
        level is Level.ATTENTION
    )


@pytest.mark.parametrize(
    ("seconds", "live", "state", "level"),
    [
        (299, False, State.PAUSED, Level.WORKING),
        (301, False, State.PAUSED, Level.ATTENTION),
        (301, True, State.RESCALING, Level.WORKING),
    ],
)
def test_a_rollback_is_part_of_the_pause_until_the_application_runs_again(
    seconds: int, live: bool, state: State, level: Level
) -> None:
    """Its process may have died. Then nobody starts the application."""
    began_ms = NOW_MS - seconds * 1000
    page = rolled_back(Phase.ROLLING_BACK, pause_started_ms=began_ms, live=live).page()
    health = page.summary.health
    assert (health.state, health.level) == (state, level)
    assert health.reason.endswith("Why: catch_up died")
    assert ("and orders does not run again" in health.reason) == (level is Level.ATTENTION)
    assert ("is not at work, trigger rollback_orders" in health.reason) == (level is Level.ATTENTION)
    assert (page.downtime.since_ms, page.downtime.total) == (None if live else began_ms, None)


def rolled_back(phase: Phase, *, live: bool, **changes: Any) -> World:
    """An expansion whose rollback has begun within the pause."""
    world = paused("orders")
    assert world.control.journal is not None
    changes |= {"phase": phase, "stop_asked": True, "rollback_reason": "catch_up died"}
    journal = world.control.journal.model_copy(update=changes)
    return replace(world, control=world.control.model_copy(update={"journal": journal}), live=live)


BRIDGED = repartitioned_plan(4, 6)
LEASE = Lease(owner="r", epoch=1, target=6, expires_at_ms=0)


def bridged(phase: Phase, state: str = "not_at_work", left: int = 90, **changes: Any) -> ControlState:
    """An expansion whose bridge is in some state, with so many records left to carry on."""
    (move,) = BRIDGED.bridges
    progress = PartitionProgress(topic=move.source, partition=0, position=100 - left, end=100)
    result = JobResult(job="bridge", run="r", attempt=1, state=state, detail="why", partitions=(progress,))
    made = ControlState(
        journal=Journal(plan=BRIDGED, phase=phase, attempt=1, owner="r", timings={"restore": 1.0, "total": 2.0}),
        results={"bridge": result},
        bridge=Bridge(plan=BRIDGED.fingerprint, begun=True),
        lease=LEASE,
    )
    return made.model_copy(update=changes)


def waits(state: str = "not_at_work", left: int = 90) -> str:
    return f"The bridge is not at work ({state}: why), and {left} records wait in {BRIDGED.bridges[0].source}"


@pytest.mark.parametrize(
    ("state", "left", "ended_at_ms", "level"),
    [
        ("carrying", 90, 0, Level.GOOD),
        ("failed", 90, 0, Level.ATTENTION),
        ("not_at_work", 0, 0, Level.ATTENTION),
        ("done", 0, NOW_MS, Level.GOOD),
        ("done", 3, NOW_MS, Level.ATTENTION),
    ],
)
def test_a_bridge_that_is_not_at_work_needs_a_person(
    state: str, left: int, ended_at_ms: int, level: Level
) -> None:
    """Green's own lag is 0 meanwhile, and no task of Airflow fails if the DAG of the bridge is paused."""
    record = Bridge(plan=BRIDGED.fingerprint, begun=True, ended_at_ms=ended_at_ms)
    health = health_of(bridged(Phase.COMPLETE, state, left, bridge=record), LIVE)
    assert health.level is level
    assert health.reason.startswith(waits(state, left)) == (level is Level.ATTENTION)


@pytest.mark.parametrize("phase", [Phase.STARTED, Phase.VERIFIED, Phase.COMPLETE])
def test_it_needs_one_in_every_phase_in_which_the_next_generation_works(phase: Phase) -> None:
    """``verify`` may have findings for days, while retention deletes what waits."""
    health = health_of(bridged(phase), LIVE)
    assert (health.level, health.reason.startswith(waits())) == (Level.ATTENTION, True)
    carrying = health_of(bridged(phase, "carrying"), LIVE)
    assert carrying.level is (Level.GOOD if phase is Phase.COMPLETE else Level.WORKING)
    without_run = health_of(bridged(Phase.STARTED, lease=None), LIVE).reason
    assert without_run.startswith(waits())
    assert without_run.endswith("no run holds the lease: trigger it again.")


@pytest.mark.parametrize("phase", [Phase.WARMING, Phase.QUIESCED, Phase.ROLLED_BACK])
def test_before_the_promotion_no_record_waits_for_a_bridge(phase: Phase) -> None:
    assert "bridge" not in health_of(bridged(phase), LIVE).reason


def test_within_the_pause_a_bridge_gives_signs_only_and_is_not_called_absent() -> None:
    paused_journal = Journal(plan=BRIDGED, phase=Phase.PROMOTED, owner="r", pause_started_ms=1)
    assert health_of(bridged(Phase.PROMOTED, journal=paused_journal), EMPTY).level is Level.WORKING


def test_the_bridge_of_the_last_promotion_needs_one_if_the_next_attempt_was_rolled_back() -> None:
    done = bridged(Phase.COMPLETE)
    assert done.journal is not None
    following = BRIDGED.model_copy(update={"generation": BRIDGED.generation + 1, "partitions": 8})
    cancelled = Journal(plan=following, phase=Phase.ROLLED_BACK, owner="r2", rollback_reason="cancelled")
    running = Generations(running="g", generation=BRIDGED.generation, partitions=6)
    replaced = ReplacedBridges.of(done.journal, done.bridge)
    reason = health_of(
        bridged(Phase.COMPLETE, journal=cancelled, replaced=replaced, generations=running), LIVE
    ).reason
    assert reason.startswith(waits())
    assert reason.endswith("trigger it again to go on with its copies. Why: cancelled")


@pytest.mark.parametrize("phase", [Phase.WARMING, Phase.STARTED, Phase.VERIFIED])
def test_an_application_that_is_down_during_an_expansion_needs_a_person(phase: Phase) -> None:
    """Copies last for days, and the runbook lets everything wait because that generation is up."""
    world = complete("orders")
    found = in_phase(world, phase)
    assert found.page().summary.health.level is Level.WORKING
    health = replace(found, live=False).page().summary.health
    name = world.cluster.group.group_id
    assert (health.state, health.level) == (State.RESCALING, Level.ATTENTION)
    assert health.reason == f"Group {name} has no member (Empty)."
    unseen = GroupDescription(name, "Unknown")
    assert health_of(found.control, unseen).level is Level.WORKING, "unknown, not zero"


@pytest.mark.parametrize("phase", [Phase.QUIESCING, Phase.QUIESCED, Phase.CAUGHT_UP, Phase.PROMOTED])
def test_within_the_pause_nobody_is_expected(phase: Phase) -> None:
    found = in_phase(complete("orders"), phase, timings={})
    health = replace(found, live=False).page().summary.health
    assert (health.state, health.level) == (State.PAUSED, Level.WORKING)


def test_a_next_generation_that_has_not_worked_yet_has_as_long_as_a_pause_to_join_its_group() -> None:
    """Some programs prepare for minutes before they join."""
    for seconds, level in ((299, Level.WORKING), (301, Level.ATTENTION)):
        found = in_phase(
            complete("orders"), Phase.STARTED, timings={"total": 1.0}, changed_at_ms=NOW_MS - seconds * 1000
        )
        assert replace(found, live=False).page().summary.health.level is level


def test_an_application_that_is_down_after_a_rollback_is_told_with_it() -> None:
    reason = rolled_back(Phase.ROLLED_BACK, live=False).page().summary.health.reason
    assert reason.startswith("Group orders has no member (Empty). The last expansion was rolled back")
    assert reason.endswith("Why: catch_up died")


def in_phase(world: World, phase: Phase, **changes: Any) -> World:
    """This world in another phase, while a run holds the lease."""
    assert world.control.journal is not None
    journal = world.control.journal.model_copy(update={"phase": phase, **changes})
    state = world.control.model_copy(update={"journal": journal, "report": {}, "lease": LEASE})
    return replace(world, control=state)


def test_an_application_without_members_needs_a_person() -> None:
    assert health_of(ControlState(), EMPTY).state is State.STOPPED
    assert quiet("orders", live=False).page().summary.health.level is Level.ATTENTION
    assert quiet("orders").page().summary.health.level is Level.GOOD


def test_what_cannot_be_reached_is_unknown_and_says_why() -> None:
    line = unknown("orders", "the broker does not answer")
    assert (line.health.state, line.health.level) == (State.UNKNOWN, Level.BAD)
    assert line.run.dag_id == "expand_orders"
