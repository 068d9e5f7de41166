"""The parsed DAGs: order, gates, params."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from kafka_rescale.core.errors import Refused

from tests.support.airflow.dag_bags import parsed
from tests.support.application_files import CHAIN, write_application

if TYPE_CHECKING:
    from airflow.sdk import DAG
    from airflow.serialization.serialized_objects import SerializedDAG

TELLS = {"notifier": "tests.support.airflow.recorded_notices:RecordingNotifier", "arguments": {"file": "told"}}
SECONDS = timedelta(seconds=1)
ROOT = Path(__file__).resolve().parents[3]
STAGES = ["stage_1_subtopology_2", "stage_2_subtopology_1", "stage_3_subtopology_0"]
STEPS = ["expand", "restore", "warm_up", "lag_gate"]
CHANGES_SOMETHING = {"restore", "warm_up", "prewarm", "catch_up", "expand", "cutover"}


@pytest.fixture
def applications(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KAFKA_RESCALE_APPLICATIONS", str(tmp_path))
    write_application(tmp_path)
    return tmp_path


@pytest.fixture
def expand(applications: Path) -> DAG:
    return parsed().dags["expand_orders-app"]


def upstream_of(dag: DAG, task_id: str) -> set[str]:
    return dag.get_task(task_id).get_flat_relative_ids(upstream=True)


def test_every_application_has_its_dags_with_tags_owner_and_documentation(applications: Path) -> None:
    dags = parsed().dags
    kinds = ("expand", "rollback", "switch", "pace", "accept", "retire", "watch", "bridge")
    assert set(dags) == {f"{kind}_orders-app" for kind in kinds}
    for dag in dags.values():
        assert "kafka-rescale" in dag.tags
        assert dag.doc_md
        # A second expansion is refused instead of queued. The lease decides that and says so at once.
        assert dag.max_active_runs == (2 if dag.dag_id.startswith("expand_") else 1)
        assert (dag.schedule is None) is not dag.dag_id.startswith(("watch_", "bridge_"))
        assert {task.owner for task in dag.tasks} == {"kafka-rescale"}


def test_stages_are_chained_from_the_most_downstream_upstream(expand: DAG) -> None:
    path = [f"{stage}.{step}" for stage in STAGES for step in STEPS]
    for before, after in zip(["approve_plan", *path], path, strict=False):
        assert expand.get_task(after).upstream_task_ids == {before}
    assert expand.get_task("prewarm").upstream_task_ids == {path[-1]}


def test_the_gate_of_all_stages_comes_after_the_pre_warming_which_may_be_skipped(expand: DAG) -> None:
    last_gate = f"{STAGES[-1]}.lag_gate"
    for task_id in ("catch_up", "gate_all"):
        task = expand.get_task(task_id)
        assert task.upstream_task_ids == {last_gate, "prewarm"}
        assert task.trigger_rule == "none_failed_min_one_success"
    assert {"prewarm"} <= upstream_of(expand, "cutover")


def test_only_a_sub_topology_without_state_starts_no_spark_job_and_waits_for_none(expand: DAG) -> None:
    idle = {task.task_id for task in expand.tasks if getattr(task, "idle", False)}
    assert idle == {f"{STAGES[2]}.{task}" for task in ("restore", "warm_up", "lag_gate")}


def test_verify_waits_for_the_cutover_and_the_end_for_catch_up(expand: DAG) -> None:
    assert expand.get_task("verify").upstream_task_ids == {"cutover"}
    assert expand.get_task("cutover").upstream_task_ids == {"await_window"}
    assert expand.get_task("await_window").upstream_task_ids == {"approve_cutover"}
    assert expand.get_task("approve_cutover").upstream_task_ids == {"prove"}
    assert expand.get_task("prove").upstream_task_ids == {"gate_all"}
    assert expand.get_task("callback").upstream_task_ids == {"catch_up", "verify"}


def test_whatever_changes_something_comes_after_the_preflight_the_plan_and_its_approval(expand: DAG) -> None:
    changing = [t.task_id for t in expand.tasks if t.task_id.rpartition(".")[2] in CHANGES_SOMETHING]
    assert len(changing) == 3 * len(STAGES) + 3
    for task_id in changing:
        assert {"preflight", "plan", "approve_plan"} <= upstream_of(expand, task_id)


def test_the_cutover_comes_after_every_gate(expand: DAG) -> None:
    gates = {f"{stage}.lag_gate" for stage in STAGES} | {"gate_all"}
    assert gates <= upstream_of(expand, "cutover")


def test_a_run_that_was_rolled_back_has_failed(expand: DAG) -> None:
    """The leaves of a run decide its state. If roll_back runs, callback is upstream_failed."""
    roll_back = expand.get_task("roll_back")
    assert roll_back.trigger_rule == "one_failed"
    before = {"catch_up", "gate_all", "prove", "approve_cutover", "await_window", "cutover", "verify"}
    assert roll_back.upstream_task_ids == before
    leaves = {task.task_id for task in expand.tasks if not task.downstream_task_ids}
    assert leaves == {"callback", "ensure_running"}
    assert roll_back.upstream_task_ids <= upstream_of(expand, "callback")


def test_a_trigger_without_params_asks_before_the_application_is_stopped(expand: DAG) -> None:
    assert expand.params.validate() == {
        "target": None,
        "dry_run": False,
        "approve_plan": False,
        "approve_cutover": True,
        "acceptable_recovery_lag": None,
        "max_pause_seconds": None,
        "local_state_deleted": False,
        "expected_state": "either",
        "verify_whole": False,
    }


def test_the_question_before_the_stop_says_what_the_cutover_will_do(expand: DAG) -> None:
    shown = {each: "key='steps'" in expand.get_task(each).body for each in ("approve_plan", "approve_cutover")}
    assert shown == {"approve_plan": False, "approve_cutover": True}


def test_every_approval_looks_whether_the_cutover_has_begun(expand: DAG) -> None:
    asked = {each: expand.get_task(each).cutover_of for each in ("approve_plan", "approve_cutover")}
    assert asked == {"approve_plan": "orders-app", "approve_cutover": "orders-app"}


def test_what_everyone_sets_is_open_and_comes_first_and_the_rest_is_folded(expand: DAG) -> None:
    """Airflow opens the fields that have no section, and folds every section."""
    fields = {name: expand.params.get_param(name) for name in expand.params}
    assert list(fields)[:3] == ["target", "dry_run", "approve_cutover"]
    assert {name: field.schema.get("section") for name, field in fields.items()} == {
        "target": None,
        "dry_run": None,
        "approve_cutover": None,
        "approve_plan": "Approval",
        "acceptable_recovery_lag": "Thresholds",
        "max_pause_seconds": "Thresholds",
        "local_state_deleted": "Safety",
        "expected_state": "Safety",
        "verify_whole": "Safety",
    }


@pytest.mark.parametrize("kind", ["accept", "pace", "retire", "rollback", "switch"])
def test_a_form_that_a_person_has_to_fill_in_is_open(applications: Path, kind: str) -> None:
    params = parsed().dags[f"{kind}_orders-app"].params
    assert {params.get_param(name).schema.get("section") for name in params} == {None}


def test_every_field_of_the_form_has_a_title_and_says_what_an_empty_one_means(expand: DAG) -> None:
    fields = {name: expand.params.get_param(name) for name in expand.params}
    for name, field in fields.items():
        assert field.schema["title"], name
        empty = field.value is None
        assert ("Empty: " in field.schema["description_md"]) == empty, name
    assert "`orders` unkeyed" in fields["target"].schema["description_md"]


def test_the_cutover_takes_the_threshold_of_the_form(expand: DAG) -> None:
    assert "params.max_pause_seconds" in expand.get_task("cutover").max_pause_seconds


def test_preflight_takes_the_expected_state_of_the_form(expand: DAG) -> None:
    preflight = expand.get_task("preflight")
    assert preflight.expected == "{{ params.expected_state }}"
    assert "expected" in preflight.template_fields


def test_prewarm_takes_the_word_of_the_form_that_local_state_is_gone(expand: DAG) -> None:
    prewarm = expand.get_task("prewarm")
    assert "params.local_state_deleted" in prewarm.local_state_deleted
    assert "local_state_deleted" in prewarm.template_fields


@pytest.mark.parametrize(
    "wrong",
    [
        {"target": 0},
        {"target": "8"},
        {"dry_run": "no"},
        {"acceptable_recovery_lag": -1},
        {"max_pause_seconds": 9},
        {"expected_state": "up"},
    ],
)
def test_wrong_params_are_refused(expand: DAG, wrong: dict[str, object]) -> None:
    from airflow.sdk.exceptions import ParamValidationError

    with pytest.raises(ParamValidationError):
        expand.params.update(wrong)


@pytest.mark.parametrize("mode", ["blue_green", "in_place"])
def test_what_ends_a_pause_outlasts_an_outage_and_gets_the_next_slot(applications: Path, mode: str) -> None:
    """As the scheduler sees the tasks: it uses their weights, and their delays double up to a minute."""
    write_application(applications, mode=mode, pause_alert_seconds=60, notifications=[TELLS])
    dags = {dag_id: as_scheduled(dag) for dag_id, dag in parsed().dags.items()}
    expand, manual = dags["expand_orders-app"], dags["rollback_orders-app"].get_task("roll_back")
    ends = {"cutover", "roll_back", "ensure_running"} | ({"move"} if mode == "in_place" else set())
    waits = {"pause_alert", "await_window"} | ({"gate_all", "catch_up"} if mode == "blue_green" else set())
    for task in (*map(expand.get_task, ends), manual):
        assert (task.retries, task.retry_delay, task.max_retry_delay) == (12, SECONDS * 5, SECONDS * 60)
        assert task.retry_exponential_backoff == 2.0
    for task in map(expand.get_task, ("verify", "callback")):
        assert (task.retries, task.retry_delay, task.max_retry_delay) == (6, SECONDS * 5, SECONDS * 60)
    weights = {task.task_id: task.weight_rule.get_weight(instance_of(task)) for task in expand.tasks}
    assert {task for task, weight in weights.items() if weight > 1} == ends | waits
    assert set(weights.values()) == {1, 1000}
    assert manual.weight_rule.get_weight(instance_of(manual)) == 1000


def test_tries_begin_close_together_and_end_a_minute_apart(applications: Path) -> None:
    from airflow.models.taskinstance import TaskInstance

    task = as_scheduled(parsed().dags["expand_orders-app"]).get_task("cutover")
    began = datetime(2026, 1, 1, tzinfo=UTC)
    delays = []
    for number in range(1, 13):
        of = {"dag_id": "d", "task_id": "cutover", "logical_date": None, "try_number": number}
        instance: Any = SimpleNamespace(task=task, end_date=began, retry_delay_override=None, **of)
        delays.append((TaskInstance.next_retry_datetime(instance) - began).total_seconds())
    assert 5 <= delays[0] < 10 <= delays[1] < 20 <= delays[2] < 40 <= delays[3] <= 60
    assert set(delays[4:]) == {60}


def as_scheduled(dag: DAG) -> SerializedDAG:
    from airflow.serialization.serialized_objects import DagSerialization

    return DagSerialization.from_dict(DagSerialization.to_dict(dag))


def instance_of(task: object) -> Any:
    return SimpleNamespace(task=task)


def test_a_schedule_is_a_decision_to_expand(applications: Path) -> None:
    write_application(applications, application_id="nightly", schedule="@daily")
    dag = parsed().dags["expand_nightly"]
    assert dag.schedule == "@daily"
    assert dag.params["approve_cutover"] is False


def test_retirement_has_to_be_confirmed_by_name(applications: Path) -> None:
    from airflow.sdk.exceptions import ParamValidationError

    dag = parsed().dags["retire_orders-app"]
    with pytest.raises(ParamValidationError):
        dag.params.update({"confirm": "another-app"})
    with pytest.raises(Refused, match=r"found no confirmation.*Nothing has been deleted"):
        dag.get_task("retire").execute({"params": dag.params.validate()})  # type: ignore[arg-type]
    dag.params.update({"confirm": CHAIN["application_id"]})
    assert dag.params.validate() == {"confirm": CHAIN["application_id"], "dry_run": False}


@pytest.mark.parametrize(("dry_run", "confirm"), [(False, CHAIN["application_id"]), (True, None)])
def test_to_look_at_what_a_retirement_would_delete_needs_no_confirmation(
    applications: Path, monkeypatch: pytest.MonkeyPatch, dry_run: bool, confirm: str | None
) -> None:
    asked: dict[str, object] = {}
    task = parsed().dags["retire_orders-app"].get_task("retire")
    monkeypatch.setattr(type(task), "run_owned", lambda *_, **options: asked.update(options))
    params = parsed().dags["retire_orders-app"].params
    params.update({"dry_run": dry_run, "confirm": confirm})
    run = SimpleNamespace(run_after=datetime.fromtimestamp(7, UTC))
    task.execute({"params": params.validate(), "dag_run": run})
    assert asked == {"dry_run": dry_run, "asked_ms": 7000}


def test_parsing_twice_gives_the_same_dag(applications: Path) -> None:
    """Otherwise each parse would make a new DAG version (ruff AIR304)."""
    from airflow.serialization.serialized_objects import DagSerialization

    first, second = ({k: DagSerialization.to_dict(v) for k, v in parsed().dags.items()} for _ in range(2))
    assert first == second


def test_the_application_files_of_this_repository_can_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KAFKA_RESCALE_APPLICATIONS", raising=False)
    dags = parsed().dags
    assert not [dag_id for dag_id, dag in dags.items() if "invalid" in dag.tags]


def test_a_bridge_looks_before_it_starts_a_driver_and_runs_by_itself_where_an_input_is_repartitioned(
    applications: Path,
) -> None:
    repartitioned = [
        {"topic": "orders", "policy": "repartitioned", "silent_seconds": 90, "isolation_level": "read_committed"}
    ]
    lifecycle = {**CHAIN["lifecycle"], "start": "start {application_id} {input:orders}"}
    write_application(applications, application_id="bridged", inputs=repartitioned, lifecycle=lifecycle)
    dags = parsed().dags
    assert dags["bridge_orders-app"].is_paused_upon_creation, "it has never had anything to carry on"
    dag = dags["bridge_bridged"]
    assert (dag.max_active_runs, dag.catchup, dag.is_paused_upon_creation) == (1, False, False)
    assert dag.get_task("bridge").upstream_task_ids == {"due"}
    assert dag.get_task("bridge").silent_seconds == 90
    assert dag.get_task("bridge").conf == {"spark.cores.max": "1"}
    assert {task.owner for task in dag.tasks} == {"kafka-rescale"}
    gates = {t.task_id: t.ready_job for t in dags["expand_bridged"].tasks if t.task_id.endswith(".lag_gate")}
    last = f"{STAGES[-1]}.lag_gate"
    assert gates == {f"{stage}.lag_gate": None for stage in STAGES} | {last: "bridge"}
    assert not dags["expand_bridged"].get_task(last).idle, "without state too, it waits for the bridge"


@pytest.mark.parametrize("edited", [{"policy": "paused"}, {"policy": "unkeyed"}, {"mode": "in_place"}])
def test_a_bridge_stays_what_it_is_when_the_file_no_longer_speaks_of_it(
    applications: Path, edited: dict[str, str]
) -> None:
    """Airflow remembers whether a DAG is paused. The journal says whether there is something to carry on."""
    one = {"topic": "orders", "policy": edited.get("policy", "unkeyed"), "silent_seconds": 90}
    mode = {"mode": edited["mode"]} if "mode" in edited else {}
    write_application(applications, inputs=[one], **mode)
    dag = parsed().dags["bridge_orders-app"]
    assert dag.schedule == timedelta(minutes=2)
    assert set(dag.task_ids) == {"due", "bridge"}
    assert dag.get_task("bridge").silent_seconds == 90


class TestWatch:
    @pytest.fixture(params=[True, False], ids=["on", "off"])
    def enabled(self, request: pytest.FixtureRequest, applications: Path) -> bool:
        """Whether autoscaling is enabled for the application."""
        write_application(applications, **{"partition.autoscaling.enabled": request.param})
        return bool(request.param)

    def test_it_looks_on_a_schedule_by_itself_whether_autoscaling_is_on_or_off(self, enabled: bool) -> None:
        """Even when it is off, a growth is reported. To switch it on later, no person has to unpause the DAG."""
        dag = parsed().dags["watch_orders-app"]
        assert dag.schedule == timedelta(minutes=2 if enabled else 10)
        assert (dag.max_active_runs, dag.catchup) == (1, False)
        assert dag.is_paused_upon_creation is False

    def test_an_expansion_is_triggered_under_the_decided_name_and_never_twice(self, enabled: bool) -> None:
        dags = parsed().dags
        task = dags["watch_orders-app"].get_task("expand")
        assert task.upstream_task_ids == {"watch"}
        assert task.trigger_dag_id in dags
        assert task.trigger_run_id == "{{ ti.xcom_pull(task_ids='watch')['run_id'] }}"
        assert (task.skip_when_already_exists, task.reset_dag_run) == (True, False)
        assert (task.fail_when_dag_is_paused, task.wait_for_completion) == (True, False)
        assert set(task.conf) <= set(dags[task.trigger_dag_id].params)

    @pytest.mark.parametrize("paused", [False, True])
    def test_what_was_found_becomes_the_run_and_its_params(self, enabled: bool, paused: bool) -> None:
        from airflow.sdk.exceptions import DagRunTriggerException

        found = {"run_id": "autoscaling__1__to_8", "target": 8, "approval": False}

        class TaskInstance:
            def xcom_pull(self, task_ids: str) -> dict[str, object]:
                return found if task_ids == "watch" else {}

            def get_dag(self, dag_id: str) -> SimpleNamespace:
                return SimpleNamespace(is_paused=paused)

        dags = parsed().dags
        task = dags["watch_orders-app"].get_task("expand")
        context = {"ti": TaskInstance()}
        task.render_template_fields(context)
        if paused:
            with pytest.raises(Exception, match=r"expand_orders-app is paused"):
                task.execute(context)
            return
        with pytest.raises(DagRunTriggerException) as asked:
            task.execute(context)
        assert (asked.value.trigger_dag_id, asked.value.dag_run_id) == ("expand_orders-app", found["run_id"])
        assert asked.value.skip_when_already_exists
        params = dags["expand_orders-app"].params
        params.update(asked.value.conf)
        assert params.validate() | asked.value.conf == params.validate()
        assert asked.value.conf == {
            "target": 8,
            "dry_run": False,
            "approve_plan": False,
            "approve_cutover": False,
        }


def test_every_task_has_the_connection_of_its_role(applications: Path) -> None:
    roles = {role: f"kafka_{role}" for role in ("plan", "copy", "admin", "verify")}
    write_application(applications, kafka_conn_ids=roles)
    dag = parsed().dags["expand_orders-app"]
    of = {
        task.task_id.split(".")[-1]: getattr(task, "kafka_conn_id", None) or getattr(task, "kafka_config_id", None)
        for task in dag.tasks
    }
    assert {of[job] for job in ("restore", "warm_up", "catch_up")} == {"kafka_copy"}
    # They keep their readings as results of jobs, which `plan` may not write.
    assert {of[gate] for gate in ("lag_gate", "gate_all")} == {"kafka_copy"}
    assert of["verify"] == "kafka_verify"
    named = {task.task_id: task.role.value for task in dag.tasks if hasattr(task, "role")}
    assert {task for task, role in named.items() if role == "plan"} == {"preflight"}
    assert {"plan", "cutover", "callback", "roll_back", "prewarm"} <= {t for t, r in named.items() if r == "admin"}
