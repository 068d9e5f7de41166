"""A Spark task is tried again or cleared, in YARN's cluster mode with a ResourceManager that answers."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.apache.spark.hooks import spark_submit
from kafka_rescale.airflow.operators.spark_submit import RescaleSparkSubmitOperator

KAFKA = {"bootstrap.servers": "localhost:9092"}
CLUSTER = {"deploy-mode": "cluster", "yarn_resourcemanager_webapp_address": "http://rm:8088"}
SUCCEEDED = (200, "FINISHED", "SUCCEEDED")
RUNNING = (200, "RUNNING", "UNDEFINED")


class Store(dict[str, str]):
    """What Airflow keeps of a task over its tries."""

    def set(self, key: str, value: str) -> None:
        self[key] = value


class Yarn:
    """A ResourceManager with the application of an earlier try, `app-1`. A new submission is `app-2`."""

    def __init__(self) -> None:
        self.answers = {"app-1": [SUCCEEDED], "app-2": [SUCCEEDED]}
        self.asked: list[str] = []
        self.submitted = 0

    def get(self, url: str, **_: Any) -> SimpleNamespace:
        """Give one answer after the other. The last one is repeated."""
        self.asked.append(url.rpartition("/")[2])
        answers = self.answers[self.asked[-1]]
        code, state, final = answers.pop(0) if len(answers) > 1 else answers[0]
        return SimpleNamespace(
            status_code=code, text="", json=lambda: {"app": {"state": state, "finalStatus": final}}
        )


@pytest.fixture
def yarn(monkeypatch: pytest.MonkeyPatch) -> Yarn:
    fake = Yarn()

    def submit(hook: spark_submit.SparkSubmitHook, application: str) -> None:
        fake.submitted += 1
        hook._yarn_application_id = "app-2"

    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_X", json.dumps({"conn_type": "kafka", "extra": KAFKA}))
    spark = {"conn_type": "spark", "host": "yarn", "extra": CLUSTER}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_X", json.dumps(spark))
    monkeypatch.setattr(spark_submit.SparkSubmitHook, "submit", submit)
    monkeypatch.setattr(spark_submit.requests, "get", fake.get)
    monkeypatch.setattr(RescaleSparkSubmitOperator, "_package_zip", staticmethod(lambda directory: "package.zip"))
    monkeypatch.setattr("kafka_rescale.airflow.operators.spark_submit.journal_of", lambda *_: None)
    monkeypatch.setattr("kafka_rescale.airflow.operators.spark_submit.result_of", lambda *_: {"state": "done"})
    return fake


def execute(directory: Path, store: Store) -> dict[str, Any]:
    file = directory / "kafka.json"
    file.write_text(json.dumps(KAFKA))
    named = {"task_id": "t", "application_id": "x", "job": "snapshot", "kafka_config_file": str(file)}
    task = RescaleSparkSubmitOperator(**named, kafka_conn_id="kafka_x", conn_id="spark_x")
    run = SimpleNamespace(dag_id="expand_x", run_id="manual__1")
    context: Any = {"dag_run": run, "ti": SimpleNamespace(try_number=2, stats_tags={}), "task_state_store": store}
    return task.execute(context)


def test_the_end_of_what_it_has_submitted_is_seen(yarn: Yarn, tmp_path: Path) -> None:
    store = Store()
    assert execute(tmp_path, store) == {"state": "done"}
    assert (yarn.submitted, yarn.asked, store["spark_job_id"]) == (1, ["app-2"], "app-2")


def test_that_it_has_failed_is_seen_as_well(yarn: Yarn, tmp_path: Path) -> None:
    yarn.answers["app-2"] = [(200, "FINISHED", "FAILED")]
    with pytest.raises(RuntimeError, match="app-2 ended with final status: FAILED"):
        execute(tmp_path, Store())


@pytest.mark.parametrize(
    "answer",
    [SUCCEEDED, (200, "FINISHED", "FAILED"), (200, "KILLED", "KILLED"), (404, "", "")],
    ids=["succeeded", "failed", "killed", "forgotten"],
)
def test_a_job_that_is_no_longer_at_work_is_submitted_again(
    yarn: Yarn, tmp_path: Path, answer: tuple[int, str, str]
) -> None:
    """A cleared task has to do its work again, although Airflow still names the job of the previous try."""
    yarn.answers["app-1"] = [answer]
    store = Store(spark_job_id="app-1")
    assert execute(tmp_path, store) == {"state": "done"}
    assert (yarn.submitted, yarn.asked, store["spark_job_id"]) == (1, ["app-1", "app-2"], "app-2")


def test_a_job_that_is_at_work_is_gone_on_with(yarn: Yarn, tmp_path: Path) -> None:
    yarn.answers["app-1"] = [RUNNING, SUCCEEDED]
    assert execute(tmp_path, Store(spark_job_id="app-1")) == {"state": "done"}
    assert (yarn.submitted, yarn.asked) == (0, ["app-1", "app-1"])


def test_while_nobody_can_say_whether_it_is_at_work_none_is_submitted_beside_it(
    yarn: Yarn, tmp_path: Path
) -> None:
    yarn.answers["app-1"] = [(503, "", "")]
    with pytest.raises(RuntimeError, match="HTTP 503"):
        execute(tmp_path, Store(spark_job_id="app-1"))
    assert yarn.submitted == 0
