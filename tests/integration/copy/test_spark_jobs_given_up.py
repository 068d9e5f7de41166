"""Jobs by a real ``spark-submit`` that end because their run is over: rolled back, overtaken, or never begun."""

from __future__ import annotations

from pathlib import Path

import pytest
from kafka_rescale.core.control.journal import Phase
from kafka_rescale.core.control.pace import Pace
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.lease import release
from kafka_rescale.spark.jobs.exit_codes import SUPERSEDED

from testbed.broker import EmbeddedBroker
from testbed.processes import is_running, wait_until
from tests.integration.copy_helpers import changelog, create, plan_of, records, write
from tests.integration.spark_job_helpers import RUN, SECONDS, advance, begin, submitted, wait_for

pytestmark = pytest.mark.integration


@pytest.fixture
def connection(broker: EmbeddedBroker) -> KafkaConnection:
    return KafkaConnection(broker.client_config())


# In `make test`, test_without_topics.py has it without `spark-submit`: test_catch_up_waits_for_the_journals_word.
@pytest.mark.slow
def test_a_rollback_stops_the_job(connection: KafkaConnection, unique: str, tmp_path: Path) -> None:
    state = changelog(unique, "key-value", 2, 4)
    plan = plan_of(unique, state)
    create(connection, plan)
    control = begin(connection, plan)
    with submitted(connection, tmp_path, "catch_up", plan) as job:
        wait_for(control, "catch_up", "ready")
        advance(control, Phase.ROLLED_BACK)
        assert job.result() == 0, job.text()
    assert control.read().results["catch_up"].state == "stopped"


def test_a_restore_ends_when_a_person_rolls_back(connection: KafkaConnection, unique: str, tmp_path: Path) -> None:
    """With terabytes, the restore would go on for hours, and a rollback shall free the brokers."""
    # Partitions are copied one after the other, so that much is left after the first one. A limit keeps a fast
    # machine from copying all of it before the rollback.
    state = changelog(unique, "key-value", 16, 32)
    plan = plan_of(unique, state)
    create(connection, plan)
    control = begin(connection, plan)
    control.update(lambda _: {"pace": Pace(plan=plan.fingerprint, limit=2_000_000)})
    write(connection, state, records(150_000, size=500))
    admin = ClusterAdmin(connection)

    with submitted(connection, tmp_path, "restore", plan, "--stage", "1", master="local[1]") as job:
        wait_until(
            lambda: admin.committed(plan.copy_group).get(state.source), timeout=SECONDS, what="a partition's copy"
        )
        pythons = job.python_processes()
        release(control, RUN)
        assert job.result() == SUPERSEDED, job.text()
        wait_until(lambda: not any(is_running(p) for p in pythons), timeout=20, what="the end of all its Pythons")
    result = control.read().results["restore/1"]
    assert (result.state, result.records < 150_000) == ("failed", True)
    assert "found the lease held by nobody" in result.detail

    with submitted(connection, tmp_path, "restore", plan, "--stage", "1", attempt=2) as job:
        assert job.result() == SUPERSEDED, job.text()
    assert control.read().results["restore/1"] == result, "a retry neither copies nor says anything"


# In `make test`, test_copy_loop.py::test_a_newer_worker_fences_the_older_one, and the exit code in the test above
@pytest.mark.slow
def test_an_older_attempt_ends_as_superseded(connection: KafkaConnection, unique: str, tmp_path: Path) -> None:
    state = changelog(unique, "key-value", 2, 4)
    plan = plan_of(unique, state)
    create(connection, plan)
    control = begin(connection, plan)
    with submitted(connection, tmp_path, "catch_up", plan, attempt=1) as older:
        wait_for(control, "catch_up", "ready", 1)
        with submitted(connection, tmp_path, "catch_up", plan, attempt=2):
            wait_for(control, "catch_up", "ready", 2)
            assert older.result() == SUPERSEDED, older.text()


def test_a_job_without_a_journal_fails_with_the_remedy(
    connection: KafkaConnection, unique: str, tmp_path: Path
) -> None:
    plan = plan_of(unique, changelog(unique, "key-value", 1, 2))
    with submitted(connection, tmp_path, "restore", plan, "--stage", "1") as job:
        assert job.result() == 1
    assert "Trigger the expansion" in job.text()
