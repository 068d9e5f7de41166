"""Several clients of a pipeline on a real broker: standbys, warm-ups, hand-over, lost clients and lost racks."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, Event
from typing import Any

import pytest
from kafka_rescale.cli.pipelines import begin_clients, give_up_clients, pipeline_status
from kafka_rescale.core.assignment.tasks import TaskId
from kafka_rescale.core.assignment.thread_states import State
from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.errors import Fenced, InvalidInput, Refused, TimedOut
from kafka_rescale.core.processing.request import KeepWarmRequest
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms, poll_until
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.kafka.processing.task_producer import TaskProducer
from kafka_rescale.kafka.reading.committed import copy_consumer
from kafka_rescale.operations.processing.dead_threads import Attempt, handle_failure, take_over
from kafka_rescale.operations.processing.keep_warm import due_clients
from kafka_rescale.operations.processing.members import lags_of

from testbed.broker import EmbeddedBroker
from tests.integration.spark_job_helpers import ROOT, submitted
from tests.support.processing.several_clients import OUTPUT, PARTITIONS, SeveralClients

pytestmark = pytest.mark.integration
ACCEPTABLE = 30
TWO: Mapping[str, Mapping[str, str]] = {"a": {}, "b": {}}


@pytest.fixture
def connection(broker: EmbeddedBroker) -> KafkaConnection:
    return KafkaConnection(broker.client_config())


def made(
    connection: KafkaConnection,
    name: str,
    directory: Path,
    clients: Mapping[str, Mapping[str, str]],
    **configs: Any,
) -> SeveralClients:
    known = {"num.standby.replicas": 1, "acceptable.recovery.lag": ACCEPTABLE, **configs}
    application = SeveralClients(connection, name, directory, clients, known)
    application.create_topics()
    return application


def test_a_lost_client_loses_its_tasks_to_warm_standbys(
    connection: KafkaConnection, unique: str, tmp_path: Path
) -> None:
    app = made(connection, unique, tmp_path, TWO)
    app.write(200)
    first = app.run("run/1")
    assert {t: len(keep) for t, (_, keep) in app.places().items()} == dict.fromkeys(first, 1)
    warmed = app.keep_warm()
    assert sum(each.restored for works in warmed.values() for each in works) == 200 * PARTITIONS
    assert app.keep_warm() == {}, "nothing has been written since"

    app.write(20)
    app.run("run/2")
    shutil.rmtree(app.state_dir("a"))
    app.write(10)
    third = app.run("run/3")
    assert {active for active, _ in app.places().values()} == {"b"}
    assert all(done.restored <= ACCEPTABLE and not done.full_restores for done in third.values())
    assert sum(done.restored for done in third.values()) == 20 * PARTITIONS // 2, "what came since the last look"
    assert app.counts() == app.expected()
    absent = app.processing.client("a")
    assert absent is not None
    assert "is no longer there" in absent.absent


RACKS: Mapping[str, Mapping[str, str]] = {
    f"{zone}-{cluster}": {"zone": zone, "cluster": cluster}
    for zone in ("east", "west")
    for cluster in ("k1", "k2")
}


def test_a_lost_rack_promotes_standbys_on_other_racks(
    connection: KafkaConnection, unique: str, tmp_path: Path
) -> None:
    app = made(connection, unique, tmp_path, RACKS, **{"rack.aware.assignment.tags": ["zone", "cluster"]})
    app.write(100)
    app.run("run/1")
    for active, keep in app.places().values():
        assert all(RACKS[active][tag] != RACKS[standby][tag] for standby in keep for tag in ("zone", "cluster"))
    app.keep_warm()
    app.write(20)
    app.run("run/2")

    lost = {client for client in RACKS if RACKS[client]["zone"] == "east"}
    of_lost = {task for task, (active, _) in app.places().items() if active in lost}
    for client in lost:
        shutil.rmtree(app.state_dir(client))
    app.write(5)
    third = app.run("run/3")
    assert len(of_lost) == PARTITIONS // 2
    for task, done in third.items():
        assert (done.restored, done.full_restores) == (20 if task in of_lost else 0, 0)
        assert done.restored <= ACCEPTABLE
    assert {active for active, _ in app.places().values()} == RACKS.keys() - lost
    assert all(len(keep) == 1 for _, keep in app.places().values()), "standbys are made anew where there is room"
    assert app.counts() == app.expected()


@pytest.mark.parametrize("rule", [None, "tests.support.processing.rack_rule:NextRack"])
def test_standbys_go_by_rack_ids_and_by_the_rule_of_a_user(
    connection: KafkaConnection, unique: str, tmp_path: Path, rule: str | None
) -> None:
    racks = {"a1": "a", "a2": "a", "b1": "b", "c1": "c"}
    clients = {client: {"rack.id": rack} for client, rack in racks.items()}
    app = made(connection, unique, tmp_path, clients, **{"rack.standby.task.assignor": rule})
    app.write(50)
    app.run("run/1")
    places = {(racks[active], racks[standby]) for active, keep in app.places().values() for standby in keep}
    assert all(len(keep) == 1 for _, keep in app.places().values())
    assert all(active != standby for active, standby in places)
    if rule is not None:
        assert places == {("a", "b"), ("b", "c"), ("c", "a")}
    app.keep_warm()
    lost = {client for client, rack in racks.items() if rack == "a"}
    of_lost = {task for task, (active, _) in app.places().items() if active in lost}
    for client in lost:
        shutil.rmtree(app.state_dir(client))
    app.write(5)
    second = app.run("run/2")
    assert of_lost
    assert all((done.restored, done.full_restores) == (0, 0) for done in second.values())
    assert app.counts() == app.expected()


def test_a_rack_that_a_person_gives_up_has_no_part_until_it_is_started_again(
    connection: KafkaConnection, unique: str, tmp_path: Path
) -> None:
    app = made(connection, unique, tmp_path, RACKS)
    config, picture = tmp_path / "config.json", tmp_path / "assignment.svg"
    config.write_text(json.dumps(dict(connection.config)))
    with pytest.raises(Refused, match="no run of it so far"):
        give_up_clients(app.file, config, "east-k1", None)
    app.prepare("run/1")
    with pytest.raises(InvalidInput, match="either --client ID or --tag KEY=VALUE"):
        give_up_clients(app.file, config, None, None)
    assert give_up_clients(app.file, config, None, "zone=east").data == {"clients": ["east-k1", "east-k2"]}
    app.prepare("run/2")
    assert {active for active, _ in app.places().values()} == {"west-k1", "west-k2"}

    said = pipeline_status(app.file, config, picture)
    assert said.text == f"{unique}: RUNNING, as of run/2."
    assert [row[:3] for row in said.tables[0].rows] == [
        ("east-k1", "NOT_RUNNING", 0),
        ("east-k2", "NOT_RUNNING", 0),
        ("west-k1", "RUNNING", 0),
        ("west-k2", "RUNNING", 0),
    ]
    assert ">0_0</text>" in picture.read_text()
    assert begin_clients(app.file, config, None).data == {"clients": ["east-k1", "east-k2"]}
    app.prepare("run/3")
    assert {active for active, _ in app.places().values()} == set(RACKS)


def test_a_client_that_joins_is_warmed_up_while_the_others_go_on(
    connection: KafkaConnection, unique: str, tmp_path: Path
) -> None:
    app = made(connection, unique, tmp_path, TWO, **{"num.standby.replicas": 0})
    app.write(100)
    app.run("run/1")
    before = {task: active for task, (active, _) in app.places().items()}
    app.clients = {**TWO, "c": {}, "d": {}}
    app.write(5)
    second = app.run("run/2")
    assert {task: active for task, (active, _) in app.places().items()} == before, "nobody stops for a restore"
    assert all(done.restored == 0 for done in second.values())
    assert app.processing.assignment.is_probing_rebalance_needed
    assert app.prepare("run/2").revoked == (), "a run is assigned once"
    warm = {task: keep for task, (_, keep) in app.places().items() if keep}
    assert len(warm) == 2, "max.warmup.replicas"

    warmed = app.keep_warm()
    assert set(warmed) == {client for keep in warm.values() for client in keep}
    app.write(5)
    third = app.run("run/3")
    assert {task: [active] for task, (active, _) in app.places().items() if task in warm} == warm
    assert all(done.restored <= ACCEPTABLE and not done.full_restores for done in third.values())
    assert not app.processing.assignment.is_probing_rebalance_needed
    assert app.counts() == app.expected()


@pytest.mark.parametrize(("pipeline", "stores"), [("counting", 1), ("three_stores", 3)])
def test_caught_up_is_by_the_lag_over_all_changelogs_of_a_task(
    connection: KafkaConnection, unique: str, tmp_path: Path, pipeline: str, stores: int
) -> None:
    """Each changelog alone is within the acceptable lag. The three changelogs of a task together are not."""
    app = made(
        connection,
        unique,
        tmp_path,
        {"a": {}},
        **{"num.standby.replicas": 0, "pipeline": f"tests.support.processing.several_clients:{pipeline}"},
    )
    app.write(50)
    app.run("run/1")
    app.clients = TWO
    second = app.prepare("run/2").processing
    warming = {movement.task for movement in second.movements}
    assert len(warming) == PARTITIONS // 2
    assert set(app.keep_warm()) == {"b"}
    behind = ACCEPTABLE // 2
    app.write(behind)
    # The run is begun again: it keeps its assignment, and reads what has come since.
    again = app.prepare("run/2").processing
    assert again.clients == second.clients
    app.process(again)

    third = app.prepare("run/3").processing
    saved = {
        task: lags_of(unique, str(app.state_dir("b")), app.known.logs, now_ms())[TaskId.parse(task)]
        for task in warming
    }
    assert all(stores * behind <= lag <= stores * (behind + 2) for lag in saved.values()), saved
    assert {task for task, (active, _) in app.places().items() if active == "b"} == (
        warming if stores == 1 else set()
    )
    assert {movement.task for movement in third.movements} == (set() if stores == 1 else warming)
    app.process(third)
    assert app.counts() == app.expected()


def test_an_owner_that_may_still_be_at_work_is_fenced_before_anybody_else_has_its_tasks(
    connection: KafkaConnection, unique: str, tmp_path: Path
) -> None:
    app = made(connection, unique, tmp_path, TWO)
    app.write(10)
    app.run("run/1")
    places = app.places()
    moving = sorted(task for task, (active, _) in places.items() if active == "a")
    for thread in app.processing.running:
        app.says_it_runs(thread, "run/1")
    owners = {task: TaskProducer(connection, f"{unique}-{task}") for task in places}
    for owner in owners.values():
        with owner.transaction():
            owner.produce(OUTPUT, b"zombie", b"zombie", 0, timestamp=1)
    app.clients = {"b": {}}
    assert sorted(app.prepare("run/2").revoked) == moving
    consumer = copy_consumer(connection, unique)
    try:
        for task, owner in owners.items():
            if task in moving:
                with pytest.raises(Fenced):
                    owner.commit([], consumer)
            else:
                owner.abort()
    finally:
        consumer.close()
    app.process(app.processing)
    assert {active for active, _ in app.places().values()} == {"b"}
    assert app.counts() == app.expected()


def test_standbys_read_what_is_committed_beside_a_run_and_disturb_nobody(
    connection: KafkaConnection, unique: str, tmp_path: Path
) -> None:
    app = made(connection, unique, tmp_path, TWO)
    app.write(300)
    processing = app.prepare("run/1").processing
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(app.process, processing)
        looks = 0
        while not running.done():
            app.keep_warm()
            looks += 1
        done = running.result()
    assert looks > 0
    assert sum(d.records for d in done.values()) == 300 * PARTITIONS
    app.keep_warm()
    for task, (active, (standby,)) in app.places().items():
        rows = app.saved_rows(active, task)
        assert rows
        assert app.saved_rows(standby, task) == rows
    assert app.counts() == app.expected()


def test_a_thread_that_vanished_is_replaced_once_and_its_client_goes_on(
    connection: KafkaConnection, unique: str, tmp_path: Path
) -> None:
    app = made(connection, unique, tmp_path, TWO)
    app.write(5)
    first = app.prepare("run/1").processing
    thread = first.threads[0].name
    app.says_it_runs(thread, "run/1")
    again = Attempt("run/1", f"process/1/{thread}", thread, 2)
    for _ in range(2):
        found = take_over(app.application, connection, again)
        assert found is not None
        assert found.thread_for(thread) == "a-StreamThread-2"
        assert [c.failed_stream_threads for c in found.clients] == [1, 0]
    assert app.control.read().results[again.job].state == "failed"
    assert take_over(app.application, connection, Attempt("another", again.job, thread, 2)) is None
    app.process(app.processing)
    assert app.counts() == app.expected()


def test_a_client_whose_thread_died_is_shut_down_if_the_handler_says_so(
    connection: KafkaConnection, unique: str, tmp_path: Path
) -> None:
    app = made(connection, unique, tmp_path, TWO, **{"uncaught.exception.handler": "SHUTDOWN_CLIENT"})
    thread = app.prepare("run/1").processing.threads[0].name
    attempt = Attempt("run/1", f"process/1/{thread}", thread, 1)
    found = handle_failure(app.application, connection, attempt, Exception("killed"))
    assert found is not None
    assert [c.state for c in found.clients] == [State.ERROR, State.RUNNING]
    assert (app.control.read().results[attempt.job].detail, found.thread_for(thread)) == ("killed", thread)
    app.prepare("run/2")
    assert {active for active, _ in app.places().values()} == {"b"}


def test_threads_that_die_at_once_are_all_buried(connection: KafkaConnection, unique: str, tmp_path: Path) -> None:
    """Each death is handled by its own task. A task that has lost a race on the control topic decides again."""
    app = made(
        connection,
        unique,
        tmp_path,
        {name: {} for name in "abcd"},
        **{"uncaught.exception.handler": "SHUTDOWN_CLIENT"},
    )
    threads = [thread.name for thread in app.prepare("run/1").processing.threads]
    together = Barrier(len(threads))

    def dies(thread: str) -> None:
        together.wait()
        handle_failure(
            app.application, connection, Attempt("run/1", f"process/1/{thread}", thread, 1), Exception("killed")
        )

    with ThreadPoolExecutor(len(threads)) as tasks:
        list(tasks.map(dies, threads))
    state = app.control.read()
    assert state.processing is not None
    assert [c.state for c in state.processing.clients] == [State.ERROR] * 4
    assert sum(c.failed_stream_threads for c in state.processing.clients) == 4


def test_a_client_that_restores_is_left_out_and_the_other_is_kept_warm(
    connection: KafkaConnection, unique: str, tmp_path: Path
) -> None:
    app = made(connection, unique, tmp_path, TWO)
    app.write(5)
    app.run("run/1")
    job, is_over = ControlTopic(connection, unique), Event()

    def restores() -> None:
        result = JobResult(job="keep_warm/a", run="keep_warm/1", attempt=1, state="running")
        job.put_result(result)
        while not is_over.wait(0.2):
            job.put_sign(result)

    with ThreadPoolExecutor(1) as pool:
        restoring = pool.submit(restores)
        try:
            poll_until(
                lambda: "keep_warm/a" in app.control.read().results,
                seconds=60,
                otherwise=lambda: TimedOut("the job to begin", 60, "See its error."),
            )
            assert due_clients(app.application, connection) == ["b"]
        finally:
            is_over.set()
        restoring.result()
    assert due_clients(app.application, connection, silent_seconds=2.0) == ["a", "b"], "it was killed"


# In `make test`, S/test_pipeline_dags.py::test_standbys_are_kept_warm has the same job by `spark-submit`, in
# Airflow.
@pytest.mark.slow
def test_standbys_by_spark(connection: KafkaConnection, unique: str, tmp_path: Path) -> None:
    app = made(connection, unique, tmp_path, TWO)
    app.write(50)
    app.run("run/1")
    assert due_clients(app.application, connection) == ["a", "b"]
    request = KeepWarmRequest.of(app.application, "b")
    arguments = ["--request", request.model_dump_json()]
    with submitted(connection, tmp_path, "keep_warm", unique, *arguments, path=str(ROOT)) as job:
        assert job.result() == 0, job.text()
    result = app.control.read().results[request.key]
    assert (result.state, result.records) == ("done", 50 * PARTITIONS // 2)
    assert due_clients(app.application, connection) == ["a"]
