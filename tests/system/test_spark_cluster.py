"""The DAG of an expansion works on a standalone Spark cluster. Only the connection differs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from testbed.airflow_standalone import AirflowStandalone
from tests.support.airflow.airflow_runs import assert_success
from tests.support.airflow.spark_cluster import spark_cluster
from tests.support.live_expansion import live_application

pytestmark = [pytest.mark.system, pytest.mark.slow]

EXPAND, GREEN = "expand_flights", "flights-g2"
RUN_SECONDS = 1_500


def test_a_live_application_is_expanded_by_the_workers_of_a_cluster(tmp_path: Path) -> None:
    with live_application(tmp_path, rate=20) as (stack, expansion), spark_cluster(tmp_path / "spark", 2, 2) as url:
        connections = {
            "kafka_default": {"conn_type": "kafka", "extra": dict(expansion.connection.config)},
            "spark_default": {"conn_type": "spark", "host": url},
        }
        with AirflowStandalone(tmp_path / "airflow", connections=connections, env=stack.environment) as airflow:
            client = airflow.client
            run = client.trigger(EXPAND, {"target": 8, "dry_run": False, "approve_cutover": False})
            assert_success(client, EXPAND, run, RUN_SECONDS)
        stack.finish_replay()
        stack.await_equal(GREEN)
        assert expansion.state().report["passed"]
        executors = executors_of(tmp_path / "spark")
        # All that was copied is proven before the promotion, so verify has nothing to ask Spark.
        copied = {f"{job}/{stage}" for job in ("restore", "warm_up") for stage in (1, 2)}
        assert executors.keys() == copied | {"catch_up", "prove"}
        assert executors["restore/1"] == {"work-0", "work-1"}
        # catch_up is at work until the promotion, and leaves the other worker to prove.
        assert len(executors["catch_up"]) == len(executors["prove"]) == 1
        assert executors["catch_up"] != executors["prove"]


def executors_of(cluster: Path) -> dict[str, set[str]]:
    """The workers that had an executor of a job, by the name of the job."""
    log = (cluster / "master.log").read_text()
    jobs = re.findall(r"Registered app kafka-rescale (\S+) .* with ID (\S+)", log)
    return {job: {found.parent.name for found in cluster.glob(f"work-*/{each}")} for job, each in jobs}
