"""The operator submits jobs to YARN: in client mode, and in cluster mode without and with its REST API."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.airflow.operators.spark_submit import RescaleSparkSubmitOperator
from kafka_rescale.kafka.client.connection import KafkaConnection

from testbed.broker import EmbeddedBroker
from tests.integration.copy_helpers import Record, assert_copied, changelog, create, plan_of, write
from tests.integration.spark_job_helpers import begin
from tests.support.airflow.yarn_cluster import Yarn, yarn_cluster

pytestmark = [pytest.mark.system, pytest.mark.slow]

SMALL = {
    "spark.executor.instances": "2",
    "spark.executor.memory": "512m",
    "spark.driver.memory": "512m",
    "spark.pyspark.python": sys.executable,
    "spark.ui.enabled": "false",
}


@pytest.fixture(scope="module")
def yarn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yarn]:
    with yarn_cluster(tmp_path_factory.mktemp("yarn")) as running:
        yield running


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaConnection]:
    with EmbeddedBroker(tmp_path_factory.mktemp("broker"), heap="512m") as broker:
        yield KafkaConnection(broker.client_config())


@pytest.mark.parametrize(
    ("mode", "is_asked"),
    [("client", False), ("cluster", False), ("cluster", True)],
    ids=["client", "cluster", "cluster, asked by REST"],
)
def test_a_stage_is_restored(
    yarn: Yarn,
    connection: KafkaConnection,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mode: str,
    is_asked: bool,
) -> None:
    application = f"{mode}{'-asked' * is_asked}"
    state = changelog(application, "timestamped-key-value", 4, 8)
    plan = plan_of(application, state)
    create(connection, plan)
    control = begin(connection, plan, "expand_x/1")
    write(connection, state, [Record(b"key-%d" % n, b"%d" % n) for n in range(2_000)])
    file = tmp_path / "kafka.json"
    file.write_text(json.dumps(dict(connection.config)))
    extra = {
        "deploy-mode": mode,
        **({"yarn_resourcemanager_webapp_address": yarn.resource_manager} if is_asked else {}),
    }
    for name, value in {
        "AIRFLOW_CONN_KAFKA_X": json.dumps({"conn_type": "kafka", "extra": dict(connection.config)}),
        "AIRFLOW_CONN_SPARK_X": json.dumps({"conn_type": "spark", "host": "yarn", "extra": extra}),
        "HADOOP_CONF_DIR": str(yarn.settings),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }.items():
        monkeypatch.setenv(name, value)
    task = RescaleSparkSubmitOperator(
        task_id="restore",
        application_id=application,
        job="restore",
        stage=1,
        kafka_conn_id="kafka_x",
        kafka_config_file=str(file),
        conn_id="spark_x",
        conf=SMALL,
    )
    run, instance = SimpleNamespace(dag_id="expand_x", run_id="1"), SimpleNamespace(try_number=1, stats_tags={})
    context: Any = {"dag_run": run, "ti": instance, "task_state_store": None}
    try:
        result = task.execute(context)
    except Exception as failure:
        raise AssertionError(yarn.logs()) from failure
    assert (result["state"], result["records"]) == ("done", 2_000)
    assert control.read().results["restore/1"].state == "done"
    assert_copied(connection, state)
