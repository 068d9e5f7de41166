"""The DAGs in a real Airflow, driven over REST, with a real broker: what ``dag.test()`` can't show."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kafka_rescale.core.control.journal import Captured, Journal, Phase
from kafka_rescale.core.verify.report import Report
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection

from testbed.airflow_api import AirflowApiError
from tests.support.airflow.airflow_runs import assert_success, failures
from tests.support.airflow.recorded_notices import told
from tests.support.airflow.rest_page import approve_as_on_the_page, trigger_as_on_the_page
from tests.support.airflow.standalone_world import (
    BRIDGED,
    CHAINED,
    GATED,
    NO_SPARK,
    NOT_SCALED,
    NOTIFIED,
    PLAIN,
    SCALED,
    SCHEDULED,
    World,
    lock_database,
    planned,
    repartitioned,
    standalone_world,
)
from tests.support.made_topics import commit, ends
from tests.support.page.page_contents import complete
from tests.support.small_application import KEYS

REAL_RUN = {"dry_run": False, "approve_plan": True}
LIMIT = 300
CUSTOMERS = f"{BRIDGED}-customers"
PARALLELISM = "stream-subtopology-metrics.{}.1.{}-subtopology-parallelism"

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with standalone_world(tmp_path_factory.mktemp("world")) as made:
        yield made


def test_every_dag_is_parsed_without_an_error(world: World) -> None:
    kinds = ("expand", "rollback", "retire", "gate_probe")
    wanted = {f"{kind}_{name}" for kind in kinds for name in (PLAIN, GATED, SCHEDULED, NO_SPARK)}
    wanted |= {f"bridge_{BRIDGED}", f"watch_{SCALED}", f"watch_{NOT_SCALED}"}
    world.airflow.wait(lambda: wanted <= world.airflow.dag_ids(), "all DAGs to be parsed", LIMIT)
    assert world.airflow.import_errors() == {}


def test_a_database_that_is_locked_for_longer_than_its_own_time_ends_no_part(world: World) -> None:
    """A slow disk does this. With SQLite's own 5 s, the triggerer ended, and deferred tasks waited forever."""
    lock_database(world.airflow_home, 12)
    said = (world.airflow_home / "airflow.log").read_text(errors="replace")
    assert "database is locked" not in said


@pytest.mark.slow  # in `make test`, test_a_chain_shows_the_plans_of_its_members_and_changes_nothing
def test_a_dry_run_shows_the_plan_and_changes_nothing(world: World) -> None:
    dag = f"expand_{PLAIN}"
    run = world.airflow.trigger(dag, {"target": 8, "dry_run": True})
    assert world.airflow.wait_for_run(dag, run, timeout=LIMIT) == "success"
    states = world.airflow.task_states(dag, run)
    assert {task for task, state in states.items() if state == "success"} == {"preflight", "plan"}
    assert set(states.values()) == {"success", "skipped"}
    table = world.airflow.xcom(dag, run, "plan", "table")
    assert f"| {PLAIN}-totals-changelog | {PLAIN}-g2-totals-changelog | 4 | 8 |" in table
    assert world.control(PLAIN).read().lease is None


def test_a_target_that_is_reached_already_is_a_success_without_work(world: World) -> None:
    dag = f"expand_{PLAIN}"
    run = world.airflow.trigger(dag, {"target": 4, "dry_run": False})
    assert world.airflow.wait_for_run(dag, run, timeout=LIMIT) == "success"
    assert "already at 4" in world.airflow.xcom(dag, run, "plan", "table")
    assert world.control(PLAIN).read().lease is None


def test_a_missing_spark_connection_is_refused_before_anything_is_touched(world: World) -> None:
    dag = f"expand_{NO_SPARK}"
    run = world.airflow.trigger(dag, {"target": 8, "dry_run": False})
    assert world.airflow.wait_for_run(dag, run, timeout=LIMIT) == "failed"
    assert world.airflow.task(dag, run, "preflight")["try_number"] == 1
    assert "spark_that_is_missing" in world.airflow.log(dag, run, "preflight")
    assert world.control(NO_SPARK).read().journal is None


@pytest.fixture(scope="module")
def asking(world: World) -> str:
    """Start a run, wait until it asks for an approval of its plan, and return its id."""
    dag = f"expand_{PLAIN}"
    run = world.airflow.trigger(dag, {"target": 8, **REAL_RUN})
    world.airflow.wait_for_task(dag, run, "approve_plan", states={"awaiting_input"}, timeout=LIMIT)
    return run


def test_a_file_that_can_not_be_used_for_a_while_ends_no_run(world: World, asking: str) -> None:
    """Airflow reads the file again and again, also while a person edits it."""
    dag, run = f"expand_{PLAIN}", asking
    before = world.airflow.task_states(dag, run)
    file = world.applications / f"{PLAIN}.yaml"
    usable = file.read_text()
    file.write_text(usable + "\nunknown: 1\n")
    world.airflow.parse_again(f"expand_{GATED}")
    world.airflow.await_dag(f"invalid_{dag}")
    world.airflow.wait(lambda: dag not in world.airflow.dag_ids(), f"{dag} to be gone", LIMIT)
    file.write_text(usable)
    world.airflow.parse_again(f"expand_{GATED}")
    world.airflow.await_dag(dag)
    assert world.airflow.task_states(dag, run) == before


def test_a_rejected_plan_fails_the_run_and_rolls_back(world: World, asking: str) -> None:
    """This works even after its file could not be used for a while."""
    dag, run = f"expand_{PLAIN}", asking
    assert f"{PLAIN}-g2-totals-changelog" in world.airflow.hitl(dag, run, "approve_plan")["body"]
    world.airflow.reject(dag, run, "approve_plan")
    assert world.airflow.wait_for_run(dag, run, timeout=LIMIT) == "failed"
    states = world.airflow.task_states(dag, run)
    assert (states["approve_plan"], states["roll_back"], states["cutover"]) == (
        "failed",
        "success",
        "upstream_failed",
    )
    journal = world.control(PLAIN).read().journal
    assert journal is not None
    assert journal.phase is Phase.ROLLED_BACK
    assert world.control(PLAIN).read().lease.owner == f"{dag}/{run}"  # type: ignore[union-attr]


def test_the_lease_of_a_run_that_has_ended_holds_nobody_up(world: World) -> None:
    """A task asks Airflow's execution API whether that run has ended."""
    dag = f"expand_{PLAIN}"
    run = world.airflow.trigger(dag, {"target": 8, "dry_run": True})
    assert world.airflow.wait_for_run(dag, run, timeout=LIMIT) == "success"


def test_a_backfill_beside_a_run_is_refused_by_the_lease(world: World) -> None:
    """``max_active_runs`` counts the runs of a backfill separately from other runs."""
    holder, dag = f"gate_probe_{SCHEDULED}", f"expand_{SCHEDULED}"
    run = world.airflow.trigger(holder, {"target": 8, "dry_run": False})
    world.airflow.wait_for_task(holder, run, "gate_all", states={"deferred"}, timeout=LIMIT)
    world.airflow.backfill(dag, "2025-12-31T00:00:00Z", "2026-01-02T00:00:00Z", {"target": 8})
    world.airflow.pause(dag, False)
    runs = lambda: [i for i, r in world.airflow.runs(dag).items() if r["run_type"] == "backfill"]  # noqa: E731
    world.airflow.wait(runs, "the backfill's run", LIMIT)
    (second,) = runs()
    assert world.airflow.wait_for_run(dag, second, timeout=LIMIT) == "failed"
    assert f"a rescale to 8 partitions by {holder}/{run}" in world.airflow.log(dag, second, "preflight")
    assert world.airflow.task_states(holder, run)["gate_all"] == "deferred"
    lease = world.control(SCHEDULED).read().lease
    assert lease is not None
    assert (lease.owner, lease.released) == (f"{holder}/{run}", False)
    world.airflow.pause(dag)
    world.airflow.set_run_state(holder, run, "failed")


def test_the_gate_waits_in_the_triggerer_until_the_last_partition_has_come(world: World) -> None:
    """The logs end with transaction markers. A position at the end, past the marker, is no lag."""
    dag = f"gate_probe_{GATED}"
    run = trigger_as_on_the_page("Trigger", world.airflow, dag)
    world.airflow.wait_for_task(dag, run, "gate_all", states={"deferred"}, timeout=LIMIT)
    plan = world.control(GATED).read().journal.plan  # type: ignore[union-attr]
    *all_but_one, last = ends(world.client, [m.source for s in plan.stages for m in s.changelogs])
    commit(world.client, plan.copy_group, all_but_one)
    held = f"{last.topic}-{last.partition}: no position"
    log = lambda: world.airflow.log(dag, run, "gate_all", 1)  # noqa: E731
    world.airflow.wait(lambda: held in log(), f"the triggerer to say {held}", LIMIT)
    assert world.airflow.task_states(dag, run)["gate_all"] == "deferred"
    commit(world.client, plan.copy_group, [last])
    world.airflow.wait_for_task(dag, run, "approve_cutover", states={"awaiting_input"}, timeout=LIMIT)
    body = world.airflow.hitl(dag, run, "approve_cutover")["body"]
    assert body.startswith("**No proof is shown here**: this DAG has no task `prove`")
    assert f"**All {len(all_but_one) + 1} partitions are within 0 offsets of the end" in body
    assert f"to 8 partitions, `{GATED}` → `{GATED}-g2`" in body


def test_an_approved_switch_waits_for_its_window_and_hears_the_form_and_the_shell(world: World) -> None:
    """The run of the previous test waits for a window in some days, so a person lets it begin earlier."""
    dag = f"gate_probe_{GATED}"
    (run,) = world.airflow.runs(dag)
    body = world.airflow.hitl(dag, run, "approve_cutover")["body"]
    assert "the next window begins" in body
    assert "**If nobody answers**, nothing is thrown away. The copies are kept near until" in body
    assert "1. *before the pause*: " in body
    assert body in approve_as_on_the_page(world.airflow, dag, run, LIMIT)
    world.airflow.wait_for_task(dag, run, "await_window", states={"deferred"}, timeout=LIMIT)
    assert "The switch waits: the next window begins" in world.shell("status", GATED)

    form = f"switch_{GATED}"
    said = trigger_as_on_the_page("Postpone", world.airflow, form)
    assert_success(world.airflow, form, said, LIMIT)
    assert f"({form}/{said}) has postponed it (a release), until a person says" in world.shell("status", GATED)
    late = world.shell("postpone", GATED, "--until", "2099-01-01T00:00", fails=True)
    assert "where `max_wait_seconds` of the file ends the wait" in late
    form = f"pace_{GATED}"
    assert_success(world.airflow, form, world.airflow.trigger(form, {"action": "pause"}), LIMIT)
    assert "The switch may begin: " in world.shell("cut-over-now", GATED, "--reason", "it suits")
    log = lambda: world.airflow.log(dag, run, "await_window")  # noqa: E731
    world.airflow.wait(lambda: "the copy is paused by" in log(), "the switch to wait for the copy", LIMIT)
    world.shell("resume", GATED)
    assert world.airflow.wait_for_run(dag, run, timeout=LIMIT) == "success"
    assert "has said so (it suits)" in log()
    assert "expansion whose application has not been stopped yet" in world.shell("cancel", GATED, fails=True)


def test_a_bridge_waits_for_work_carries_on_ends_by_itself_and_waits_again(world: World) -> None:
    """Before any expansion, one run of its schedule waits in the triggerer, and Airflow makes no other run."""
    dag = f"bridge_{BRIDGED}"

    def waiting() -> list[str]:
        states = {run: world.airflow.task_states(dag, run) for run in world.airflow.runs(dag)}
        return [run for run, found in states.items() if found.get("due") == "deferred"]

    world.airflow.wait(waiting, "a run that waits", LIMIT)
    assert len(world.airflow.runs(dag)) == 1
    (first,) = waiting()
    plan = planned(BRIDGED, **repartitioned(BRIDGED))
    admin = ClusterAdmin(KafkaConnection(world.client))
    admin.ensure_topic(f"{CUSTOMERS}-p8", 8, 1, {})
    fence = Captured(committed={CUSTOMERS: dict.fromkeys(range(4), 0)})
    journal = Journal(plan=plan, phase=Phase.COMPLETE, captured=fence)
    world.control(BRIDGED).update(lambda _: {"journal": journal})
    assert world.airflow.wait_for_run(dag, first, timeout=LIMIT) == "success", world.airflow.log(
        dag, first, "bridge"
    )
    bridge = world.control(BRIDGED).read().bridge
    assert bridge is not None
    assert bridge.ended_at_ms
    assert sum(admin.end_offsets([f"{CUSTOMERS}-p8"])[f"{CUSTOMERS}-p8"].values()) >= len(KEYS)

    world.airflow.wait(waiting, "the next run to wait", LIMIT)
    (again,) = waiting()
    assert "nothing to do" in world.airflow.log(dag, again, "due")
    world.airflow.pause(dag)
    world.airflow.set_run_state(dag, again, "failed")


def test_a_retirement_without_the_right_name_is_not_even_started(world: World) -> None:
    with pytest.raises(AirflowApiError, match="confirm"):
        world.airflow.trigger(f"retire_{PLAIN}", {"confirm": "another"})
    assert world.airflow.runs(f"retire_{PLAIN}") == {}


def test_what_was_never_begun_is_not_rolled_back(world: World) -> None:
    dag = f"rollback_{NO_SPARK}"
    run = trigger_as_on_the_page("Roll back", world.airflow, dag)
    assert world.airflow.wait_for_run(dag, run, timeout=LIMIT) == "failed"
    assert "found nothing to roll back: no expansion is in progress" in world.airflow.log(dag, run, "roll_back")


def test_an_input_that_has_grown_has_the_expansion_triggered_and_after_a_failure_again(world: World) -> None:
    """KIP-878, switched on: no person triggers the run. Its plan waits for an approval, as the bounds say."""
    expand, watch = f"expand_{SCALED}", f"watch_{SCALED}"
    world.airflow.pause(expand, False)
    ClusterAdmin(KafkaConnection(world.client)).grow_topic(f"{SCALED}-customers", 8)
    for attempt in (1, 2):
        run = f"autoscaling__{attempt}__to_8"
        world.airflow.trigger(watch)  # do not wait for its schedule
        world.airflow.wait(lambda wanted=run: wanted in world.airflow.runs(expand), f"the run {run}", LIMIT)
        world.airflow.wait_for_task(expand, run, "approve_plan", states={"awaiting_input"}, timeout=LIMIT)
        assert f"{SCALED}-g2-totals-changelog" in world.airflow.hitl(expand, run, "approve_plan")["body"]
        if attempt == 1:
            world.airflow.reject(expand, run, "approve_plan")
            assert world.airflow.wait_for_run(expand, run, timeout=LIMIT) == "failed"
    world.airflow.pause(watch)
    record = world.control(SCALED).read().autoscaling
    assert record is not None
    assert record.attempts >= 2
    assert record.first_failure_ms


def test_a_run_that_is_marked_within_its_pause_fails_and_leaves_a_running_application(world: World) -> None:
    """The run of the previous test asks for its approval. Its journal is set as after a stop."""
    dag, run = f"expand_{SCALED}", "autoscaling__2__to_8"
    world.pretend_stopped(SCALED)
    world.airflow.set_run_state(dag, run, "success")
    assert world.airflow.wait_for_run(dag, run, timeout=LIMIT) == "failed"
    assert world.airflow.task_states(dag, run)["roll_back"] == "skipped"
    assert f"rolled back; {SCALED} was started again" in failures(world.airflow, dag, run)


def test_switched_off_the_watch_fails_once_and_says_what_to_do(world: World) -> None:
    watch = f"watch_{NOT_SCALED}"
    world.airflow.await_dag(watch)
    assert not world.airflow.request("GET", f"/dags/{watch}")["is_paused"]
    ClusterAdmin(KafkaConnection(world.client)).grow_topic(f"{NOT_SCALED}-customers", 8)
    states = [world.airflow.wait_for_run(watch, world.airflow.trigger(watch), timeout=LIMIT) for _ in range(2)]
    assert states[1] == "success"
    # A run of its schedule may already have said it.
    failed = [run for run, each in world.airflow.runs(watch).items() if each["state"] == "failed"]
    assert len(failed) == 1
    assert f"Trigger expand_{NOT_SCALED} with target 8" in world.airflow.log(watch, failed[0], "watch")
    world.airflow.pause(watch)
    assert world.airflow.runs(f"expand_{NOT_SCALED}") == {}


def test_notifiers_are_told_while_a_cutover_hangs_and_when_it_is_rolled_back(world: World) -> None:
    """The triggerer watches the pause, because the task that began it hangs."""
    dag = f"pause_probe_{NOTIFIED}"
    run = world.airflow.trigger(dag, {"target": 8, "dry_run": False, "approve_cutover": True})

    def wait_for(event: str) -> dict[str, str]:
        found = lambda: [n for n in told(world.told) if n["event"] == event]  # noqa: E731
        world.airflow.wait(found, f"the notice {event}", LIMIT)
        return found()[0]

    assert f"`{NOTIFIED}` → `{NOTIFIED}-g2`" in wait_for("approval")["text"]
    world.airflow.approve(dag, run, "approve_cutover")
    late = wait_for("long_pause")
    # Read the gauge while the pause lasts: after the rollback, there is no pause, and a look would say so.
    gauge = f"airflow.kafka-rescale.{NOTIFIED}.pause-seconds"
    world.airflow.wait(lambda: world.stats.gauges.get(gauge, 0) > 1, "the pause among the metrics", LIMIT)
    assert world.airflow.task_states(dag, run)["cutover"] == "running"
    assert f"trigger rollback_{NOTIFIED}" in late["text"]
    assert late["run"] == f"{dag}/{run}"
    rollback = world.airflow.trigger(f"rollback_{NOTIFIED}")
    assert world.airflow.wait_for_run(f"rollback_{NOTIFIED}", rollback, timeout=LIMIT) == "success"
    assert wait_for("rolled_back")["run"] == f"rollback_{NOTIFIED}/{rollback}"
    assert "found a rollback" in wait_for("failed")["text"]
    assert world.airflow.wait_for_run(dag, run, timeout=LIMIT) == "failed"


def test_a_chain_shows_the_plans_of_its_members_and_changes_nothing(world: World) -> None:
    member, chain = f"expand_{CHAINED}", "expand_chain_line"
    world.airflow.pause(member, False)
    run = world.airflow.trigger(chain, {"target": 8, "dry_run": True})
    assert_success(world.airflow, chain, run, LIMIT)
    states = world.airflow.task_states(member, f"{run}__chained")
    assert {task for task, state in states.items() if state == "success"} == {"preflight", "plan"}
    assert world.control(CHAINED).read().lease is None


def test_a_snapshot_holds_every_key_of_every_store(world: World) -> None:
    dag = f"snapshot_{CHAINED}"
    world.airflow.pause(dag, False)
    world.airflow.wait(lambda: world.airflow.runs(dag), "the run of its schedule", LIMIT)
    (run,) = world.airflow.runs(dag)
    assert_success(world.airflow, dag, run, LIMIT)
    world.airflow.pause(dag)
    assert world.airflow.xcom(dag, run, "snapshot")["records"] == 4 * len(KEYS)


def test_what_verify_has_found_is_accepted_in_the_name_of_whoever_has_triggered_it(world: World) -> None:
    dag = f"accept_{CHAINED}"
    refused = world.airflow.trigger(dag, {"findings": ["totals@0123456789ab"], "reason": "none"})
    assert world.airflow.wait_for_run(dag, refused, timeout=LIMIT) == "failed"
    assert "no expansion" in failures(world.airflow, dag, refused)

    plan, found = planned(CHAINED), Report.model_validate(complete("orders", passed=False).control.report)
    journal = Journal(plan=plan, phase=Phase.STARTED)
    report = found.model_copy(update={"plan": plan.fingerprint, "promotion": journal.promotion})
    control = world.control(CHAINED)
    control.update(lambda _: {"journal": journal, "report": report})
    run = world.airflow.trigger(dag, {"findings": list(report.compared), "reason": "the test says so"})
    assert_success(world.airflow, dag, run, LIMIT)
    accepted = control.read().acceptances
    assert report.concluded(accepted).passed
    assert {f"({dag}/{run})" in each.by for each in accepted.accepted} == {True}


@pytest.mark.parametrize("name", ["largest-lag", "partitions-behind"])
def test_what_gates_have_measured_has_arrived_at_the_statsd_server(world: World, name: str) -> None:
    full = f"airflow.kafka-rescale.{GATED}.gate_all.{name}"
    assert full in world.stats.gauges
    assert world.stats.tags[full] == {"application-id": GATED, "gate": "gate_all"}


@pytest.mark.parametrize(
    ("name", "tags", "value"),
    [
        (PARALLELISM.format(NOT_SCALED, "current"), {"application-id": NOT_SCALED, "subtopology-id": "1"}, 4),
        (PARALLELISM.format(SCALED, "current"), {"application-id": SCALED, "subtopology-id": "1"}, 4),
        (PARALLELISM.format(SCALED, "expected"), {"application-id": SCALED, "subtopology-id": "1"}, 8),
        (f"stream-client-metrics.{SCALED}.num-autoscaling-failures", {"client-id": SCALED}, 0),
    ],
)
def test_the_metrics_of_a_watch_have_arrived_at_the_statsd_server_as_gauges_with_their_tags(
    world: World, name: str, tags: dict[str, str], value: float
) -> None:
    """KIP-878: the inputs of both have grown from 4 to 8, and no run was approved. The type is in the name."""
    world.airflow.wait(
        lambda: world.stats.gauges.get(f"airflow.{name}") == value,
        f"{name} to be {value}, among {world.stats.gauges}",
        LIMIT,
    )
    assert world.stats.tags[f"airflow.{name}"] == tags


def test_with_autoscaling_off_a_watch_reports_the_present_parallelism_only(world: World) -> None:
    reported = {name for name in world.stats.gauges if f".{NOT_SCALED}." in name}
    assert {name.rpartition(".")[2] for name in reported} == {"current-subtopology-parallelism"}
