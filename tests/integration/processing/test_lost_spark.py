"""If a client's Spark cluster is gone, its tasks go to the other client.

It joins again when the cluster is back.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kafka_rescale.cli.pipelines import begin_clients, pipeline_status
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.kafka.client.connection import KafkaConnection

from testbed.broker import EmbeddedBroker
from testbed.processes import free_ports
from tests.integration.spark_job_helpers import LOCAL
from tests.support.processing.several_clients import SeveralClients
from tests.support.processing.thread_operators import RETRIES, RUN, attempt, connections, thread_operator

# In `make test`, U/test_lost_spark.py. Spark itself needs a minute until it gives up a dead master.
pytestmark = [pytest.mark.integration, pytest.mark.slow]


def test_its_tasks_go_to_the_other_client_in_the_next_run(
    broker: EmbeddedBroker, unique: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kafka = KafkaConnection(broker.client_config())
    connections(monkeypatch, kafka, spark_a=f"spark://127.0.0.1:{free_ports(1)[0]}", spark_b=LOCAL)
    app = SeveralClients(kafka, unique, tmp_path, {"a": {}, "b": {}}, {"num.standby.replicas": 1})
    app.create_topics()
    app.write(50)
    app.run("run/1")
    app.keep_warm()
    app.write(5)
    application, processing = app.application, app.prepare(RUN).processing
    ours = {client.client_id: client.running[0] for client in processing.clients}
    assert thread_operator(application, ours["b"], "spark_b").execute(attempt(1))["state"] == "done"
    with pytest.raises(UnsafeState, match=r"put out\. .*start-client FILE --client a"):
        thread_operator(application, ours["a"], "spark_a").execute(attempt(RETRIES + 1))

    following = app.run("run/3")
    assert {active for active, _ in app.places().values()} == {"b"}
    assert sum(done.full_restores for done in following.values()) == 0, "b had standbys of what a had"
    assert app.counts() == app.expected()
    config = tmp_path / "config.json"
    config.write_text(json.dumps(dict(kafka.config)))
    tables = pipeline_status(app.file, config, None).tables
    (a, b), missing = tables[0].rows, tables[-1]
    assert (missing.title, set(missing.rows)) == ("Missing standbys", {(task, 1) for task in following})
    assert (a[:3], b[:3]) == (("a", "ERROR", 1), ("b", "RUNNING", 0))
    assert f"its Spark has begun no task in run {RUN}" in str(a[4])

    assert begin_clients(app.file, config, "a").data == {"clients": ["a"]}
    app.write(5)
    app.run("run/4")
    assert {active for active, _ in app.places().values()} == {"a", "b"}
    assert app.counts() == app.expected()
