"""The last task of a run: whatever a person has marked, a generation runs, or a person is told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.airflow import runs
from kafka_rescale.airflow.operators import closing
from kafka_rescale.airflow.operators.closing import EnsureRunningOperator
from kafka_rescale.core.autoscaling.parallelism import observe
from kafka_rescale.core.control.journal import Phase
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import Refused, UnsafeState
from kafka_rescale.operations.cutover.cutover import Cutover
from kafka_rescale.operations.expansion.ensure_running import Ensured, ensure_running

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
from tests.support.expansion.growing_world import NAME, OWNER, GrowingWorld
from tests.support.situations import situation


@pytest.fixture(autouse=True)
def nothing_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    without_brokers(monkeypatch)


def ensured(owner: str = OWNER, airflow: str = "") -> Ensured:
    return ensure_running(APPLICATION, CONNECTION, owner=owner, reason="a mark", airflow=airflow)


def in_phase(world: GrowingWorld, phase: Phase, **changes: Any) -> GrowingWorld:
    journal = world.journal.model_copy(update={"phase": phase, **changes})
    world.state = world.state.model_copy(update={"journal": journal})
    return world


def test_a_run_that_is_killed_at_any_moment_leaves_a_running_application_or_an_alarm(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A rollback after every single call is tested with the other steps in place."""
    whole = use(GrowingWorld(), monkeypatch)
    steps(whole)
    seen: set[str] = set()
    for call in range(1, whole.calls + 1, 3):
        # The mark kills the job as well.
        world = use(GrowingWorld(dies_at=call), monkeypatch)
        with pytest.raises(Killed):
            steps(world)
        world.dies_at, world.has_job = 0, False
        if not world.journal.is_promoted:
            seen.add("rolled back")
            assert ensured().told.startswith("rolled back")
            assert (world.journal.phase, world.journal.rollback_reason) == (Phase.ROLLED_BACK, "a mark")
        elif world.journal.green_start:
            seen.add("went forward")
            assert ensured().told.startswith(f"{NAME} was started")
            assert_grown(world)
        else:
            seen.add("told")
            with pytest.raises(UnsafeState, match=r"NOBODY PROCESSES ITS INPUTS\. Clear move and cutover"):
                ensured()
            assert not world.running
            continue
        assert world.running
    assert seen == {"rolled back", "told", "went forward"}


def test_a_cutover_that_is_not_yet_killed_can_not_stop_the_application_any_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It lives for some seconds after the mark, and was just about to begin the pause."""
    world = use(GrowingWorld(), monkeypatch)
    assert ensured().has_acted
    with pytest.raises(UnsafeState, match="found rolled_back, because: a mark"):
        cut_over()
    assert world.running


def test_a_promotion_in_the_same_moment_is_brought_to_its_start(monkeypatch: pytest.MonkeyPatch) -> None:
    world = use(GrowingWorld(), monkeypatch)
    update, happens = world._update, [Cutover(world.rescale).until_promoted]

    def later(change: Callable[[ControlState], Mapping[str, Any]]) -> ControlState:
        if happens:
            happens.pop()()
            in_phase(world, Phase.PROMOTED, green_start={"orders": {}})
        return update(change)

    monkeypatch.setattr(world, "_update", later)
    monkeypatch.setattr("kafka_rescale.operations.expansion.ensure_running.run_cutover", lambda *_, **__: None)
    assert ensured().told.startswith(f"{NAME} was started")
    assert world.journal.phase is Phase.PROMOTED, "not rolled back"


@pytest.mark.parametrize("phase", [Phase.STARTED, Phase.VERIFIED, Phase.COMPLETE, Phase.ROLLED_BACK])
def test_where_a_generation_runs_nothing_is_done(monkeypatch: pytest.MonkeyPatch, phase: Phase) -> None:
    world = in_phase(use(GrowingWorld(), monkeypatch), phase)
    before = world.state
    said = ensured()
    assert (said.has_acted, world.state.journal) == (False, before.journal)
    assert f"the expansion is in phase {phase}" in said.told
    assert "clear" not in said.told, "in a run that nobody has marked, callback may be at work"


def test_in_place_an_application_that_something_else_has_started_is_no_stopped_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """``cutover`` has failed for that reason, and its log names the offsets to set back."""
    world = in_phase(use(GrowingWorld(has_job=False), monkeypatch), Phase.PROMOTED)
    world.running = True
    with pytest.raises(UnsafeState, match=r"found a running instance.* Do what the log of the task cutover says"):
        ensured()


def test_a_new_generation_that_works_already_is_not_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """``cutover`` may have failed behind its start because the old generation has come back."""
    world = in_phase(use(GrowingWorld(), monkeypatch), Phase.PROMOTED, timings={"total": 6.5})
    assert not ensured().has_acted
    assert world.starts == 0


def test_what_another_run_has_begun_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    world = in_phase(use(GrowingWorld(), monkeypatch), Phase.QUIESCED)
    assert world.state.lease is not None
    lease = world.state.lease.model_copy(update={"owner": "expand_orders-app/another"})
    world.state = world.state.model_copy(update={"lease": lease})
    assert not ensured().has_acted
    assert world.journal.phase is Phase.QUIESCED


def test_autoscaling_asks_before_it_tries_a_marked_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    world = in_phase(use(GrowingWorld(has_job=False), monkeypatch), Phase.WARMING)
    assert ensured().has_acted
    assert world.journal.phase is Phase.ROLLED_BACK
    assert world.journal.stopped_by == "a person who has marked its run, or by Airflow"
    assert observe(replace(situation(), control=world.state)).stopped == world.journal


def test_a_run_that_has_begun_nothing_has_nothing_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    use(GrowingWorld(has_job=False), monkeypatch).state = ControlState()
    found = ensured()
    assert not found.has_acted
    assert found.told.startswith(
        "Nothing to do: no expansion has begun; if one had begun, the topic _kafka_rescale"
    )


@pytest.mark.parametrize(
    ("has_acted", "is_marked", "fails"),
    [(False, False, False), (True, False, True), (False, True, True), (True, True, True)],
)
def test_a_run_that_was_marked_fails_whatever_the_mark_was(
    monkeypatch: pytest.MonkeyPatch, has_acted: bool, is_marked: bool, fails: bool
) -> None:
    """Otherwise a chain would go on to its next application."""
    task = EnsureRunningOperator(task_id="ensure_running", application_file="app.yaml")
    monkeypatch.setattr(task, "run_owned", lambda *_, **__: Ensured(has_acted, "rolled back; x was started again"))
    monkeypatch.setattr(closing, "was_marked", lambda _: is_marked)
    context: Any = {"dag_run": SimpleNamespace(dag_id="expand_x", run_id="manual")}
    if not fails:
        assert task.execute(context) == {"has_acted": False, "told": "rolled back; x was started again"}
        return
    with pytest.raises(Refused, match=r"run expand_x/manual: .* rolled back; x was started again\.") as refused:
        task.execute(context)
    assert ("clear the tasks that are left" in str(refused.value)) == (not has_acted)


@pytest.mark.parametrize("state", ["skipped", "upstream_failed", "running", "failed", None])
def test_a_run_was_marked_if_its_last_task_was_skipped(monkeypatch: pytest.MonkeyPatch, state: str | None) -> None:
    from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

    def states(**asked: Any) -> dict[str, dict[str, str | None]]:
        assert asked == {"dag_id": "expand_x", "run_ids": ["manual"], "task_ids": ["callback"]}
        return {"manual": {"callback": state} if state else {}}

    monkeypatch.setattr(RuntimeTaskInstance, "get_task_states", states)
    assert runs.was_marked("expand_x/manual") == (state == "skipped")
