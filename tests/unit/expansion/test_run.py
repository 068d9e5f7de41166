"""The list of a run's tasks. The DAG and the run without Airflow follow it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.airflow.dags.expansion_tasks import RULES
from kafka_rescale.core.application.streams import Application, Mode
from kafka_rescale.core.expansion.run import RUN, Begins, IfItFails, steps_of, tasks_of
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.core.plan.planning import build_plan
from kafka_rescale.operations.application.load import topology_of

from testbed import expansion as without_airflow
from testbed.expansion import Expansion
from tests.support.airflow.dag_bags import parsed
from tests.support.application_files import CHAIN, write_application
from tests.support.plans import IN_PLACE_TOPICS

STAGES = ["stage_1_subtopology_2", "stage_2_subtopology_1", "stage_3_subtopology_0"]
STATELESS = STAGES[2]


def ids(mode: Mode) -> list[str]:
    return [task.task_id for task in tasks_of(mode, STAGES)]


def test_a_task_waits_only_for_what_stands_above_it() -> None:
    for place, step in enumerate(RUN):
        assert set(step.waits_for) <= {above.task for above in RUN[:place]}, step.task
    for mode in Mode:
        for place, task in enumerate(tasks_of(mode, STAGES)):
            assert set(task.waits_for) <= set(ids(mode)[:place])
            assert bool(task.waits_for) == bool(place), "only the first begins by itself"


def test_each_stage_comes_once_behind_the_stage_before() -> None:
    tasks = {task.task_id: task for task in tasks_of(Mode.BLUE_GREEN, STAGES)}
    assert tasks["stage_1_subtopology_2.expand"].waits_for == ("approve_plan",)
    assert tasks["stage_2_subtopology_1.expand"].waits_for == ("stage_1_subtopology_2.lag_gate",)
    assert tasks["stage_2_subtopology_1.restore"].waits_for == ("stage_2_subtopology_1.expand",)
    assert tasks["prewarm"].waits_for == ("stage_3_subtopology_0.lag_gate",)
    in_place = {task.task_id: task for task in tasks_of(Mode.IN_PLACE, STAGES)}
    assert in_place["stage_2_subtopology_1.expand"].waits_for == ("stage_1_subtopology_2.expand",)
    assert in_place["rehearse"].waits_for == ("stage_3_subtopology_0.expand",)


def test_a_failure_up_to_the_cutover_is_rolled_back_and_none_behind_it() -> None:
    """After any failure, the tasks that wait for it never begin, and this starts roll_back."""
    behind = {IfItFails.GREEN_GOES_ON, IfItFails.ONLY_TOLD, IfItFails.BY_HAND}
    only_if_a_person_has_marked_a_task = {"verify"}
    for mode in Mode:
        tasks = {task.task_id: task for task in tasks_of(mode, STAGES)}
        reached, ahead = {"roll_back"}, ["roll_back"]
        while ahead:
            following = set(tasks[ahead.pop()].waits_for) - reached
            reached |= following
            ahead += following
        assert {t for t, task in tasks.items() if task.step.if_it_fails in behind} == set(tasks) - reached | {
            "roll_back",
            *only_if_a_person_has_marked_a_task,
        }


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("limit", [None, 60])
def test_the_dag_is_made_of_the_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: Mode, limit: int | None
) -> None:
    monkeypatch.setenv("KAFKA_RESCALE_APPLICATIONS", str(tmp_path))
    tells = {"notifier": "tests.support.airflow.recorded_notices:RecordingNotifier", "arguments": {"file": "told"}}
    write_application(tmp_path, mode=mode.value, pause_alert_seconds=limit, notifications=[tells])
    dag = parsed().dags["expand_orders-app"]
    listed = {t.task_id: t for t in tasks_of(mode, STAGES) if limit or t.step.task != "pause_alert"}
    assert set(dag.task_ids) == set(listed)
    for task_id, task in listed.items():
        made = dag.get_task(task_id)
        assert made.upstream_task_ids == set(task.waits_for)
        assert made.trigger_rule == RULES[task.step.begins]
        assert getattr(made, "job", None) == (task.step.task if task.step.is_job else None)
        # Airflow leaves only a teardown to its work if a person marks the run, and judges the run by it.
        teardown = task.step.begins is Begins.ALL_ENDED
        assert (made.is_teardown, bool(made.on_failure_fail_dagrun)) == (teardown, teardown)


@pytest.fixture
def followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The list of what a run without Airflow has done so far."""
    done: list[str] = []

    class Process:
        def wait(self, _: float) -> int:
            return 0

    def submit(_: Expansion, name: str, stage: int | None = None, more: Sequence[str] = ()) -> Process:
        done.append(f"{STAGES[stage - 1]}.{name}" if stage else name)
        return Process()

    def expand(*_: object, stage: int, **__: object) -> None:
        done.append(f"{STAGES[stage - 1]}.expand")

    def note(name: str) -> Any:
        return lambda *_, **__: done.append(name)

    journal = SimpleNamespace(plan=SimpleNamespace(bridges=()))
    state = SimpleNamespace(report={"passed": True}, journal=journal)
    monkeypatch.setattr(Expansion, "submit", submit)
    monkeypatch.setattr(Expansion, "state", lambda _: state)
    monkeypatch.setattr(without_airflow, "expand_stage", expand)
    for operation, name in {"prewarm": "prewarm", "run_cutover": "cutover", "finish": "callback"}.items():
        monkeypatch.setattr(without_airflow, operation, note(name))
    return done


def plan_of(mode: Mode) -> tuple[Application, Plan]:
    application = Application.model_validate({**CHAIN, "mode": mode.value})
    counts = {f"orders-app-{name}": 4 for name in IN_PLACE_TOPICS} | {"orders": 4, "totals": 4}
    topology = topology_of(application)
    return application, build_plan(
        application, topology, blue="orders-app", generation=2, current=counts, target=8
    )


@pytest.mark.parametrize("mode", list(Mode))
def test_a_run_without_airflow_does_the_same_in_the_same_order(
    tmp_path: Path, followed: list[str], mode: Mode
) -> None:
    """Except for tasks that wait for a person or a lag: its jobs end by themselves when the copies are close."""
    application, plan = plan_of(mode)
    Expansion(tmp_path, application, None).follow(plan)  # type: ignore[arg-type]
    waits = {"preflight", "plan", "approve_plan", "lag_gate", "gate_all", "approve_cutover", "pause_alert"}
    waits |= {"await_window"}
    acts = [t for t in tasks_of(mode, STAGES) if t.step.task not in waits | {"roll_back", "ensure_running"}]
    idle = {f"{STATELESS}.restore", f"{STATELESS}.warm_up"}
    assert followed == [task.task_id for task in acts if task.task_id not in idle]


def test_a_run_without_airflow_can_be_left_before_any_task(tmp_path: Path, followed: list[str]) -> None:
    application, plan = plan_of(Mode.IN_PLACE)
    Expansion(tmp_path, application, None).follow(plan, before="move")  # type: ignore[arg-type]
    assert followed == [*(f"{stage}.expand" for stage in STAGES), "rehearse"]
    with pytest.raises(AssertionError):
        Expansion(tmp_path, application, None).follow(plan, before="catch_up")  # type: ignore[arg-type]


def test_the_modes_differ_where_they_have_to() -> None:
    blue_green, in_place = ({step.task for step in steps_of(mode)} for mode in Mode)
    assert in_place - blue_green == {"rehearse", "move"}
    assert blue_green - in_place == {"restore", "warm_up", "lag_gate", "prewarm", "catch_up", "gate_all", "prove"}
    assert {step.task for step in RUN if step.begins is Begins.SOME_SKIPPED} == {"catch_up", "gate_all"}


@pytest.mark.parametrize("mode", Mode)
def test_a_cutover_that_a_person_has_marked_within_the_pause_is_followed_by_a_task_that_refuses(
    mode: Mode,
) -> None:
    """The jobs beside it wait for words of the cutover, and would never end."""
    tasks = {task.step.task: task for task in tasks_of(mode, [])}
    assert tasks["verify"].waits_for == ("cutover",)
    assert {"verify"} < set(tasks["callback"].waits_for) <= {"catch_up", "move", "verify"}
    assert "verify" in tasks["roll_back"].waits_for
