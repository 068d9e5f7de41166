"""Every DAG in a real Airflow, in the order in which an application's life uses them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.control_topic import ControlTopic

from testbed.airflow_standalone import AirflowStandalone
from testbed.demo import ROOT, Options, await_live, environment
from testbed.flights_stack import FlightsStack
from testbed.processes import wait_until
from tests.support.airflow.airflow_runs import assert_success
from tests.support.live_expansion import PROMPT
from tests.support.ordered import NAME, OLD
from tests.support.ordered_in_place import OrderedInPlace

pytestmark = pytest.mark.system
EXPAND, ROLL_BACK, RETIRE = "expand_flights", "rollback_flights", "retire_flights"
GROW = f"expand_{NAME}"
WARM_UP = "stage_1_subtopology_2.warm_up"
RUN_SECONDS = 1100
World = tuple[FlightsStack, AirflowStandalone]


@pytest.fixture(scope="module")
def ordered(tmp_path_factory: pytest.TempPathFactory) -> OrderedInPlace:
    """The application file of an application that grows in place."""
    made = OrderedInPlace(tmp_path_factory.mktemp("ordered"), servers="")
    made.declare()
    return made


@pytest.fixture(scope="module")
def applications(ordered: OrderedInPlace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository's application files, and the file of ``ordered``."""
    directory = tmp_path_factory.mktemp("applications")
    shutil.copytree(ROOT / "applications", directory, dirs_exist_ok=True)
    shutil.copy(ordered.file, directory)
    return directory


@pytest.fixture(scope="module")
def world(
    ordered: OrderedInPlace, applications: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    """A live application and an Airflow that knows it."""
    options = Options(
        directory=tmp_path_factory.mktemp("world"),
        guarantee="at_least_once",
        target=8,
        preload=6_000,
        rate=10,
        limit=20_000,
    )
    with pytest.MonkeyPatch.context() as lifecycle:
        lifecycle.setenv("LINKS", str(ordered.directory))
        with environment(options, applications, settings=PROMPT) as made:
            await_live(made[0], options)
            yield made
            made[0].run("stop", "flights-g3")


@pytest.fixture(scope="module")
def expanded(world: World) -> str:
    """The run id of a first expansion to 8 partitions. A person approved it, and one of its tasks was cleared."""
    _, airflow = world
    run_id = airflow.client.trigger(EXPAND, {"dry_run": False, "approve_plan": True, "approve_cutover": True})
    approve(airflow, EXPAND, run_id, "approve_plan")
    asked = {"awaiting_input", "deferred"}
    airflow.client.wait_for_task(EXPAND, run_id, "approve_cutover", states=asked, timeout=RUN_SECONDS)
    airflow.client.clear(EXPAND, run_id, [WARM_UP], downstream=False)
    assert airflow.client.wait_for_task(EXPAND, run_id, WARM_UP, timeout=RUN_SECONDS) == "success"
    approve(airflow, EXPAND, run_id, "approve_cutover")
    assert_success(airflow.client, EXPAND, run_id, RUN_SECONDS)
    return run_id


def approve(airflow: AirflowStandalone, dag_id: str, run_id: str, task: str) -> None:
    """Wait until a task asks, assert that it says what it asks about, and approve."""
    airflow.client.wait_for_task(dag_id, run_id, task, states={"awaiting_input", "deferred"}, timeout=RUN_SECONDS)
    assert airflow.client.hitl(dag_id, run_id, task)["body"]
    airflow.client.approve(dag_id, run_id, task)


def test_a_task_that_is_cleared_after_the_end_says_that_nothing_is_left_to_do(world: World, expanded: str) -> None:
    stack, airflow = world
    before = stack.sent()
    airflow.client.clear(EXPAND, expanded, ["cutover"], downstream=False)
    assert airflow.client.wait_for_task(EXPAND, expanded, "cutover", timeout=RUN_SECONDS) == "failed"
    log = airflow.client.log(EXPAND, expanded, "cutover")
    assert f"{EXPAND}/{expanded} has done everything, and given the lease back" in log
    assert stack.run("status", "flights-g2") == 0
    wait_until(lambda: stack.sent() > before, timeout=60, what="the replay to go on")


# In `make test`, S/test_airflow_standalone.py::test_a_target_that_is_reached_already_is_a_success_without_work
@pytest.mark.slow
def test_a_run_after_success_is_a_no_op_that_says_so(world: World, expanded: str) -> None:
    _, airflow = world
    run_id = airflow.client.trigger(EXPAND, {"dry_run": False})
    assert airflow.client.wait_for_run(EXPAND, run_id, timeout=RUN_SECONDS) == "success"
    assert "already at 8 partitions" in airflow.client.log(EXPAND, run_id, "preflight")
    assert airflow.client.task_states(EXPAND, run_id)["cutover"] == "skipped"


@pytest.fixture(scope="module")
def retired(world: World, expanded: str) -> None:
    """Retire the old generation, after a dry run that deletes nothing and needs no confirmation."""
    stack, airflow = world
    looked = airflow.client.trigger(RETIRE, {"dry_run": True})
    assert airflow.client.wait_for_run(RETIRE, looked, timeout=RUN_SECONDS) == "success"
    assert "flights-planes-changelog" in ClusterAdmin(KafkaConnection(stack.client)).list_topics()
    run_id = airflow.client.trigger(RETIRE, {"confirm": "flights"})
    assert airflow.client.wait_for_run(RETIRE, run_id, timeout=RUN_SECONDS) == "success"


@pytest.mark.usefixtures("retired")
def test_retire_deletes_the_old_generation_and_nothing_else(world: World) -> None:
    stack, _ = world
    topics = ClusterAdmin(KafkaConnection(stack.client)).list_topics()
    assert "flights-planes-changelog" not in topics
    assert {"flights", "planes", "flights-g2-planes-changelog", "aircraft-totals-output"} <= topics


# In `make test`, S/test_airflow_standalone.py has one refused beside another (a backfill), and one rolled back by
# its DAG; I/test_expansion_crash.py has the application that a rollback leaves at work.
@pytest.mark.slow
@pytest.mark.usefixtures("retired")
def test_an_expansion_in_progress_refuses_others_and_can_be_rolled_back(world: World) -> None:
    stack, airflow = world
    first = airflow.client.trigger(EXPAND, {"target": 16, "dry_run": False, "approve_plan": True})
    airflow.client.wait_for_task(
        EXPAND, first, "approve_plan", states={"awaiting_input", "deferred"}, timeout=RUN_SECONDS
    )
    for target in (16, 12):
        other = airflow.client.trigger(EXPAND, {"target": target, "dry_run": False})
        assert airflow.client.wait_for_run(EXPAND, other, timeout=RUN_SECONDS) == "failed"
        refusal = airflow.client.log(EXPAND, other, "preflight")
        assert f"a rescale to 16 partitions by {EXPAND}/{first} that has not ended" in refusal
        assert airflow.client.task_states(EXPAND, first)["approve_plan"] in {"awaiting_input", "deferred"}
    second = airflow.client.trigger(ROLL_BACK, {"reason": "the test says so"})
    assert airflow.client.wait_for_run(ROLL_BACK, second, timeout=RUN_SECONDS) == "success"
    assert "was never touched" in airflow.client.log(ROLL_BACK, second, "roll_back")
    airflow.client.reject(EXPAND, first, "approve_plan")
    assert airflow.client.wait_for_run(EXPAND, first, timeout=RUN_SECONDS) == "failed"
    state = ControlTopic(KafkaConnection(stack.client), "flights").read()
    assert state.generations is not None
    assert state.generations.running == "flights-g2"
    assert stack.run("status", "flights-g2") == 0
    before = stack.sent()
    wait_until(lambda: stack.sent() > before, timeout=60, what="the replay to go on")


# In `make test`, I/test_expansion_in_place.py grows this application by the same steps, without Airflow.
@pytest.mark.slow
def test_an_application_grows_in_place_and_processes_every_record_once_and_in_order(
    world: World, ordered: OrderedInPlace
) -> None:
    stack, airflow = world
    ordered.servers = stack.bootstrap_servers
    ordered.prepare()
    try:
        with ordered.at_work():
            assert ordered.run("start", NAME) == 0
            wait_until(lambda: len(ordered.seen) == len(ordered.sent) > 300, timeout=120, what="every key")
            run_id = airflow.client.trigger(GROW, {"dry_run": False, "approve_cutover": True})
            approve(airflow, GROW, run_id, "approve_cutover")
            assert_success(airflow.client, GROW, run_id, RUN_SECONDS)
            ordered.stop_sending()
            wait_until(lambda: ordered.is_all_seen, timeout=120, what="the last output")
    finally:
        ordered.run("stop", NAME)
    assert ordered.wrong() == {}
    topics = ClusterAdmin(KafkaConnection(stack.client)).describe_topics([OLD, f"{NAME}-values-changelog"])
    assert {t.partitions for t in topics.values()} == {6}
    state = ControlTopic(KafkaConnection(stack.client), NAME).read()
    assert state.generations is not None
    assert (state.generations.running, state.generations.generation) == (NAME, 2)
