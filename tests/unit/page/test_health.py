"""What an application's health is, and whether a person is needed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from kafka_rescale.core.cluster import GroupDescription
from kafka_rescale.core.control.bridge import Bridge
from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.journal import Journal, Phase
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
    world = replace(world, control=world.control.model_copy(update={"journal": journal}))
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
    plan = repartitioned_plan(4, 6)
    (bridge,) = plan.bridges
    progress = PartitionProgress(topic=bridge.source, partition=0, position=100 - left, end=100)
    result = JobResult(job="bridge", run="r", attempt=1, state=state, detail="why", partitions=(progress,))
    found = ControlState(
        journal=Journal(plan=plan, phase=Phase.COMPLETE, attempt=1, owner="r"),
        results={"bridge": result},
        bridge=Bridge(plan=plan.fingerprint, begun=True, ended_at_ms=ended_at_ms),
    )
    health = health_of(found, LIVE)
    assert health.level is level
    waits = f"The bridge is not at work ({state}: why), and {left} records wait in {bridge.source}"
    assert health.reason.startswith(waits) == (level is Level.ATTENTION)


def test_an_application_without_members_needs_a_person() -> None:
    assert health_of(ControlState(), EMPTY).state is State.STOPPED
    assert quiet("orders", live=False).page().summary.health.level is Level.ATTENTION
    assert quiet("orders").page().summary.health.level is Level.GOOD


def test_what_cannot_be_reached_is_unknown_and_says_why() -> None:
    line = unknown("orders", "the broker does not answer")
    assert (line.health.state, line.health.level) == (State.UNKNOWN, Level.BAD)
    assert line.run.dag_id == "expand_orders"
