"""The DAG of an expansion works on a standalone Spark cluster. Only the connection differs."""

from __future__ import annotations

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
        finished = sorted((tmp_path / "spark").glob("work-*/app-*"))
        # restore and warm_up of two stages with state, and catch_up, prove and verify.
        assert len({directory.name for directory in finished}) >= 7
        assert {directory.parent.name for directory in finished} == {"work-0", "work-1"}
