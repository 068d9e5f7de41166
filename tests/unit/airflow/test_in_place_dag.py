"""The DAG of an expansion in place: its order, its params, and what it tells people."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from kafka_rescale.airflow.dags.watch import EVERY_IF_OFF, watch_dag
from kafka_rescale.airflow.markdown import plan_markdown
from kafka_rescale.cli.views import plan_view, status_view
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.lease import Lease
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.operations.application.load import load_application
from kafka_rescale.operations.expansion.rescale import Rescale
from kafka_rescale.operations.expansion.rollback import roll_back

from tests.support.application_files import write_application
from tests.support.plans import in_place_plan

if TYPE_CHECKING:
    from airflow.sdk import DAG

ROOT = Path(__file__).resolve().parents[3]
STAGES = ["stage_1_subtopology_2", "stage_2_subtopology_1", "stage_3_subtopology_0"]


@pytest.fixture
def dag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DAG:
    from airflow.dag_processing.dagbag import DagBag

    monkeypatch.setenv("KAFKA_RESCALE_APPLICATIONS", str(tmp_path))
    write_application(tmp_path, mode="in_place")
    bag = DagBag(ROOT / "dags")
    assert bag.import_errors == {}
    kinds = ("expand", "rollback", "switch", "pace", "accept", "retire", "bridge", "watch")
    assert set(bag.dags) == {f"{kind}_orders-app" for kind in kinds}
    return bag.dags["expand_orders-app"]


def test_the_watch_looks_in_place_as_well_and_tells_of_a_growth(
    dag: DAG, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = watch_dag(load_application(tmp_path / "orders-app.yaml"), tmp_path / "orders-app.yaml")
    assert (watch.dag_id, watch.schedule, watch.is_paused_upon_creation) == (
        "watch_orders-app",
        EVERY_IF_OFF,
        False,
    )
    assert "grown by hand" in str(watch.doc_md)


def test_everything_before_is_one_chain_from_the_most_downstream_stage_upstream(dag: DAG) -> None:
    stages = [f"{stage}.expand" for stage in STAGES]
    chain = ["preflight", "plan", "approve_plan", *stages, "rehearse", "approve_cutover", "await_window"]
    for before, after in pairwise(chain):
        assert dag.get_task(after).upstream_task_ids == {before}
    assert set(dag.task_ids) == {*chain, "move", "cutover", "verify", "callback", "roll_back", "ensure_running"}


def test_the_application_is_down_within_one_task_beside_a_job_that_is_up(dag: DAG) -> None:
    for beside in ("move", "cutover"):
        assert dag.get_task(beside).upstream_task_ids == {"await_window"}
    assert dag.get_task("verify").upstream_task_ids == {"cutover"}
    assert dag.get_task("callback").upstream_task_ids == {"move", "verify"}


def test_a_run_that_fails_before_the_point_of_no_return_is_rolled_back(dag: DAG) -> None:
    roll_back_task = dag.get_task("roll_back")
    assert roll_back_task.trigger_rule == "one_failed"
    before = {"rehearse", "approve_cutover", "await_window", "cutover", "move", "verify"}
    assert roll_back_task.upstream_task_ids == before
    assert {task.task_id for task in dag.tasks if not task.downstream_task_ids} == {"callback", "ensure_running"}


def test_one_job_moves_what_moves_of_all_stages(dag: DAG) -> None:
    assert (dag.get_task("move").stage, dag.get_task("move").idle) == (None, False)
    assert [dag.get_task(f"{stage}.expand").stage for stage in STAGES] == [1, 2, 3]


def test_every_approval_looks_whether_the_cutover_has_begun(dag: DAG) -> None:
    asked = {each: dag.get_task(each).cutover_of for each in ("approve_plan", "approve_cutover")}
    assert asked == {"approve_plan": "orders-app", "approve_cutover": "orders-app"}


def test_there_is_no_lag_to_accept_and_the_stop_is_asked_for(dag: DAG) -> None:
    assert dag.params.validate() == {
        "target": None,
        "dry_run": False,
        "approve_plan": False,
        "approve_cutover": True,
        "max_pause_seconds": None,
        "expected_state": "either",
    }


def test_jobs_are_there_to_be_submitted(dag: DAG) -> None:
    jobs = {t.job for t in dag.tasks if hasattr(t, "job")}
    assert jobs == {"rehearse", "move", "verify"}
    assert jobs <= {file.stem for file in (ROOT / "spark_jobs").glob("*.py")}


def test_the_plan_and_the_status_tell_the_mode(tmp_path: Path) -> None:
    application = load_application(write_application(tmp_path, mode="in_place"))
    assert "`orders-app`, in place (plan" in plan_markdown(in_place_plan())
    shown = plan_view(in_place_plan(), [])
    assert shown.tables[0].title.startswith("orders-app, in place, 8 partitions")
    journal = Journal(plan=in_place_plan(), phase=Phase.PROMOTED)
    status = status_view(application, ControlState(journal=journal), [])
    assert "expansion to 8 partitions, in place: promoted, attempt 1" in status.text
    assert status.data["mode"] == "in_place"


def test_after_the_promotion_a_rollback_says_what_is_left_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lease = Lease(owner="test", epoch=1, target=8, expires_at_ms=0)
    promoted = ControlState(journal=Journal(plan=in_place_plan(), phase=Phase.PROMOTED), lease=lease)
    only_control = SimpleNamespace(control=SimpleNamespace(read=lambda: promoted))
    monkeypatch.setattr(Rescale, "open", lambda *_: only_control)
    application, nobody = load_application(write_application(tmp_path, mode="in_place")), None
    assert roll_back(application, nobody, owner="test", reason="a test").told == (  # type: ignore[arg-type]
        "not rolled back: the topics of orders-app grow, and none can shrink; only forward. Clear the failed "
        "task, or trigger the expansion again: it goes on where it is"
    )
