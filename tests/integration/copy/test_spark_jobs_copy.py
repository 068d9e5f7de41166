"""restore, warm_up and catch_up by a real ``spark-submit``."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from kafka_rescale.core.control.journal import Phase
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection

from testbed.broker import EmbeddedBroker
from testbed.processes import is_running, wait_until
from tests.integration.copy_helpers import (
    assert_copied,
    changelog,
    create,
    per_key,
    plan_of,
    read,
    records,
    repartition,
    write,
)
from tests.integration.spark_job_helpers import SECONDS, advance, begin, captured, submitted, wait_for

pytestmark = pytest.mark.integration


@pytest.fixture
def connection(broker: EmbeddedBroker) -> KafkaConnection:
    return KafkaConnection(broker.client_config())


# In `make test`, test_expansion_crash.py and test_broker_faults.py run these jobs by `spark-submit` beside a live
# application; below, an executor of another process than the driver's.
@pytest.mark.parametrize(
    "master",
    [
        pytest.param((), id="local", marks=pytest.mark.slow),
        pytest.param((1,), id="one worker", marks=pytest.mark.slow),
        pytest.param((1, 1), id="two workers", marks=pytest.mark.slow),
    ],
    indirect=True,
)
def test_a_stage_is_restored_warmed_up_and_caught_up(
    connection: KafkaConnection, unique: str, tmp_path: Path, master: str
) -> None:
    state, flight = changelog(unique, "timestamped-key-value", 4, 8), repartition(unique, 4, 8)
    plan = plan_of(unique, state, flight)
    create(connection, plan)
    control = begin(connection, plan)
    write(connection, state, records(2000))
    write(connection, flight, records(50, 0))

    with submitted(connection, tmp_path, "restore", plan, "--stage", "1", master=master) as job:
        assert job.result() == 0, job.text()
    result = control.read().results["restore/1"]
    assert (result.state, result.records, len(result.partitions)) == ("done", 2000, 4)

    write(connection, state, records(500, 1))
    with submitted(
        connection, tmp_path, "warm_up", plan, "--stage", "1", "--acceptable-lag", "10", master=master
    ) as job:
        assert job.result() == 0, job.text()
    assert all(p.end - p.position <= 10 for p in control.read().results["warm_up/1"].partitions)

    admin = ClusterAdmin(connection)
    with submitted(connection, tmp_path, "catch_up", plan, "--acceptable-lag", "10", master=master) as job:
        before = wait_for(control, "catch_up", "ready").as_of_ms
        wait_until(
            lambda: control.read().results["catch_up"].as_of_ms > before, timeout=30, what="the next heartbeat"
        )
        write(connection, state, records(300, 2))
        write(connection, flight, records(100, 1))
        committed = {
            flight.source: {p: e // 2 for p, e in admin.end_offsets([flight.source])[flight.source].items()}
        }
        ends = captured(plan, lambda topic: admin.end_offsets([topic])[topic], committed)
        advance(control, Phase.QUIESCED, captured=ends)
        done = wait_for(control, "catch_up", "done")
        assert job.result() == 0, job.text()

    assert done.detail == "attempt 1"
    assert_copied(connection, state)
    ranges = ends.in_flight[flight.source]
    left = {p: rs[ranges[p][0] :] for p, rs in read(connection, flight.source).items()}
    assert per_key(read(connection, flight.target)) == per_key(left)

    with submitted(connection, tmp_path, "catch_up", plan, attempt=2, master=master) as job:
        advance(control, Phase.CAUGHT_UP)
        assert job.result() == 0, job.text()


def test_an_executor_without_the_packages_is_named_before_anything_is_copied(
    connection: KafkaConnection, unique: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = changelog(unique, "key-value", 2, 4)
    plan = plan_of(unique, state)
    create(connection, plan)
    control = begin(connection, plan)
    write(connection, state, records(10))
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    monkeypatch.setenv("PATH", f"{bare / 'bin'}{os.pathsep}{os.environ['PATH']}")

    with submitted(connection, tmp_path, "restore", plan, "--stage", "1", master="local-cluster[1,1,1024]") as job:
        assert job.result() == 1
    assert f"found no confluent_kafka on {socket.gethostname()}, {bare}/bin/python3" in job.text()
    assert "Install requirements-spark.txt there" in control.read().results["restore/1"].detail
    assert not any(read(connection, state.target).values())


# In `make test`, test_copy_in_flight.py::test_another_attempt_begins_with_an_empty_target, without `spark-submit`
@pytest.mark.slow
def test_the_next_attempt_moves_its_own_range_of_records_in_flight(
    connection: KafkaConnection, unique: str, tmp_path: Path
) -> None:
    state, flight = changelog(unique, "key-value", 2, 4), repartition(unique, 2, 4)
    plan = plan_of(unique, state, flight)
    create(connection, plan)
    control = begin(connection, plan)
    admin = ClusterAdmin(connection)
    write(connection, flight, records(100))

    for attempt in (1, 2):
        with submitted(connection, tmp_path, "catch_up", plan, attempt=attempt) as job:
            wait_for(control, "catch_up", "ready", attempt)
            ends = admin.end_offsets([flight.source])[flight.source]
            # Before the second attempt, blue has processed what the first attempt moved, and a little more.
            processed = {p: end // 2 if attempt == 1 else end - 5 for p, end in ends.items()}
            range_of = captured(plan, lambda t: admin.end_offsets([t])[t], {flight.source: processed})
            advance(control, Phase.QUIESCED, captured=range_of)
            assert job.result() == 0, job.text()
        if attempt == 1:
            advance(control, Phase.ROLLED_BACK)
            write(connection, flight, records(40, 1))
            advance(control, Phase.WARMING, attempt=2, captured=None)

    found = read(connection, flight.target)
    assert sum(len(r) for r in found.values()) == 10
    left = {p: rs[range_of.in_flight[flight.source][p][0] :] for p, rs in read(connection, flight.source).items()}
    assert per_key(found) == per_key(left)


# In `make test`, I/test_copy_zombie, I/test_copy_loop and I/test_broker_faults show how a copy goes on.
@pytest.mark.slow
@pytest.mark.parametrize("victim", ["spark-submit", "driver"])
def test_a_restore_that_was_killed_half_way_is_finished_by_the_next(
    connection: KafkaConnection, unique: str, tmp_path: Path, victim: str
) -> None:
    state = changelog(unique, "key-value", 4, 8)
    plan = plan_of(unique, state)
    create(connection, plan)
    control = begin(connection, plan)
    write(connection, state, records(150_000, size=500))
    admin = ClusterAdmin(connection)

    with submitted(connection, tmp_path, "restore", plan, "--stage", "1") as job:
        # Two of four tasks run at a time. So some partitions are done, some have begun, and some have not.
        wait_until(
            lambda: admin.committed(plan.copy_group).get(state.source), timeout=SECONDS, what="a partition's copy"
        )
        pythons = job.python_processes()
        os.kill(job.process.pid if victim == "spark-submit" else job.driver(), signal.SIGKILL)
        wait_until(lambda: not any(is_running(p) for p in pythons), timeout=20, what="the end of all its Pythons")
    assert control.read().results["restore/1"].state == "running"

    with submitted(connection, tmp_path, "restore", plan, "--stage", "1", attempt=2) as job:
        assert job.result() == 0, job.text()
    found = read(connection, state.target)
    assert sum(len(r) for r in found.values()) == 150_000
    assert_copied(connection, state)
