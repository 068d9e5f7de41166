"""The Spark operator: the connection is checked first, secrets stay unseen, and no driver survives a kill."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import nullcontext
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zipfile import ZipFile

import psutil
import pytest
from kafka_rescale.airflow.operators.spark_submit import RescaleSparkSubmitOperator
from kafka_rescale.airflow.spark.connection import require_spark_master
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.errors import InvalidInput, Outage, UnsafeState
from kafka_rescale.spark.jobs.files import FETCHED, connector, require_spark_files

from testbed.jars import jars_directory
from testbed.processes import is_running, wait_until
from tests.support.expansion.gate_world import PLAN

PASSWORD = "not-to-be-seen"
KAFKA = {"bootstrap.servers": "localhost:9092", "sasl.password": PASSWORD}


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.delenv("KAFKA_RESCALE_KAFKA_CONFIG_FILE", raising=False)
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_X", json.dumps({"conn_type": "kafka", "extra": KAFKA}))
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_X", json.dumps({"conn_type": "spark", "host": "local[2]"}))
    return monkeypatch


def operator(**arguments: Any) -> RescaleSparkSubmitOperator:
    defaults = {"task_id": "t", "application_id": "x", "job": "restore", "stage": 2}
    arguments = {**defaults, **arguments}
    return RescaleSparkSubmitOperator(kafka_conn_id="kafka_x", conn_id="spark_x", **arguments)


def context() -> Any:
    run = SimpleNamespace(dag_id="expand_x", run_id="manual__1")
    return {"dag_run": run, "ti": SimpleNamespace(try_number=3)}


@pytest.fixture
def submitted(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The hooks that were asked to submit. None of them runs spark-submit."""
    from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook

    hooks: list[Any] = []
    monkeypatch.setattr(SparkSubmitHook, "submit", lambda hook, application: hooks.append(hook))
    monkeypatch.setattr(RescaleSparkSubmitOperator, "_package_zip", staticmethod(lambda directory: "package.zip"))
    module = "kafka_rescale.airflow.operators.spark_submit"
    monkeypatch.setattr(f"{module}.journal_of", lambda connection, application: Journal(plan=PLAN))
    monkeypatch.setattr(f"{module}.report_as_of", lambda *_: 0)
    monkeypatch.setattr(f"{module}.result_of", lambda connection, application, key: {"job": key})
    return hooks


@pytest.mark.parametrize("phase", [None, *Phase])
@pytest.mark.parametrize("job", ["restore", "warm_up", "catch_up", "rehearse", "move", "verify"])
def test_no_driver_is_started_to_copy_where_nothing_is_left_to_be_copied(
    connections: pytest.MonkeyPatch, submitted: list[Any], job: str, phase: Phase | None
) -> None:
    """A run that continues shall start green as soon as it can. After a rollback, no task says that it is done."""
    journal = None if phase is None else Journal(plan=PLAN, phase=phase)
    connections.setattr(
        "kafka_rescale.airflow.operators.spark_submit.journal_of",
        lambda _, application: {"x": journal}[application],
    )
    rolled_back = phase in {Phase.ROLLING_BACK, Phase.ROLLED_BACK} and job != "verify"
    refused = pytest.raises(UnsafeState, match="Trigger the expansion again") if rolled_back else nullcontext()
    with refused:
        operator(job=job).execute(context())
    promoted = phase in {Phase.PROMOTED, Phase.STARTED, Phase.VERIFIED, Phase.COMPLETE}
    assert bool(submitted) is not (rolled_back or (promoted and job not in {"move", "verify"}))


@pytest.mark.parametrize(
    ("connection", "master"),
    [
        ({"conn_type": "spark", "host": "local[*]"}, "local[*]"),
        ({"conn_type": "spark", "host": "spark-master", "port": 7077}, "spark://spark-master:7077"),
        ({"conn_type": "spark", "host": "spark://m1:7077,m2:7077"}, "spark://m1:7077,m2:7077"),
        ({"conn_type": "spark", "host": "yarn"}, "yarn"),
        ({"conn_type": "spark", "host": "k8s://https://k8s", "port": 6443}, "k8s://https://k8s:6443"),
    ],
)
def test_the_master_is_the_one_that_the_provider_passes(
    connections: pytest.MonkeyPatch, connection: dict[str, Any], master: str
) -> None:
    from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook

    connections.setenv("AIRFLOW_CONN_SPARK_X", json.dumps(connection))
    connections.setattr("airflow.providers.apache.spark.hooks.spark_submit.kube_client", object(), raising=False)
    assert require_spark_master("spark_x") == master
    assert SparkSubmitHook(conn_id="spark_x")._connection["master"] == master


@pytest.mark.parametrize(
    ("value", "kind"),
    [(None, Outage), ("spark://local[*]", Outage), ('{"conn_type": "spark"}', InvalidInput)],
)
def test_a_missing_or_unparsable_connection_is_refused_and_never_becomes_yarn(
    connections: pytest.MonkeyPatch, submitted: list[Any], value: str | None, kind: type[Exception]
) -> None:
    if value is None:
        connections.delenv("AIRFLOW_CONN_SPARK_X")
    else:
        connections.setenv("AIRFLOW_CONN_SPARK_X", value)
    with pytest.raises(kind, match=r"Spark connection 'spark_x'.*AIRFLOW_CONN_SPARK_X"):
        operator().execute(context())
    assert submitted == []


@pytest.mark.parametrize(
    "spark",
    [
        {"conn_type": "spark", "host": "yarn"},
        {"conn_type": "spark", "host": "k8s://https://k8s", "port": 6443},
        {"conn_type": "spark", "host": "m", "port": 7077, "extra": {"deploy-mode": "cluster"}},
    ],
    ids=["yarn", "kubernetes", "cluster mode"],
)
def test_where_the_environment_would_be_seen_a_mounted_file_is_asked_for(
    connections: pytest.MonkeyPatch, submitted: list[Any], spark: dict[str, Any]
) -> None:
    connections.setenv("AIRFLOW_CONN_SPARK_X", json.dumps(spark))
    with pytest.raises(InvalidInput, match="`kafka_config_files`"):
        operator().execute(context())
    assert submitted == []


@pytest.mark.parametrize("address", ["", "http://rm:8088"])
def test_in_cluster_mode_of_yarn_only_a_named_resource_manager_is_asked_for_an_earlier_try(
    connections: pytest.MonkeyPatch, submitted: list[Any], tmp_path: Path, address: str
) -> None:
    file = tmp_path / "kafka.json"
    file.write_text(json.dumps(KAFKA))
    extra = {"deploy-mode": "cluster", "yarn_resourcemanager_webapp_address": address}
    connections.setenv("AIRFLOW_CONN_SPARK_X", json.dumps({"conn_type": "spark", "host": "yarn", "extra": extra}))
    resumed: list[Any] = []
    connections.setattr(RescaleSparkSubmitOperator, "execute_resumable", lambda task, _: resumed.append(task))
    task = operator(kafka_config_file=str(file))
    task.execute(context())
    assert (len(submitted), len(resumed)) == ((0, 1) if address else (1, 0))
    assert task.durable == bool(address)


def test_the_job_gets_strings_and_the_run_and_the_attempt(
    connections: pytest.MonkeyPatch, submitted: list[Any]
) -> None:
    assert operator().execute(context()) == {"job": "restore/2"}
    command = submitted[0]._build_spark_submit_command("restore.py")
    arguments = ["--application", "x", "--stage", "2", "--run", "expand_x/manual__1", "--attempt", "3"]
    assert command[-len(arguments) :] == arguments
    assert all(isinstance(each, str) for each in command)
    assert command[command.index("--py-files") + 1] == "package.zip"


@pytest.mark.parametrize(("path", "is_told"), [("/usr/bin", True), (str(Path(sys.executable).parent), False)])
def test_spark_submit_is_found_beside_this_python_if_nowhere_else(
    connections: pytest.MonkeyPatch, submitted: list[Any], path: str, is_told: bool
) -> None:
    connections.setenv("PATH", path)
    operator().execute(context())
    expected = f"{Path(sys.executable).parent}{os.pathsep}{path}" if is_told else None
    assert submitted[0]._env.get("PATH") == expected


def test_a_stage_without_state_starts_no_driver(connections: pytest.MonkeyPatch, submitted: list[Any]) -> None:
    assert operator(idle=True).execute(context()) == {}
    assert submitted == []


def test_the_kafka_connection_travels_in_the_environment_alone(
    connections: pytest.MonkeyPatch, submitted: list[Any]
) -> None:
    task = operator(conf={"spark.ui.enabled": "false"})
    task.execute(context())
    hook = submitted[0]
    command = hook._build_spark_submit_command("restore.py")
    assert PASSWORD not in " ".join(command)
    assert json.loads(hook._env["KAFKA_RESCALE_KAFKA_CONFIG"]) == KAFKA
    rendered = {name: getattr(task, name) for name in task.template_fields}
    assert PASSWORD not in str(rendered)


def test_a_kill_ends_the_driver_below_the_jvm_too(tmp_path: Path, connections: pytest.MonkeyPatch) -> None:
    """The provider kills only the JVM. Init would adopt its Python child, which would go on writing."""
    script = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(600)'])"
    jvm = subprocess.Popen([sys.executable, "-c", script])
    wait_until(lambda: psutil.Process(jvm.pid).children(), timeout=30, what="a driver below the fake JVM")
    driver = psutil.Process(jvm.pid).children()[0].pid
    task = operator()
    task._hook = task._get_hook()
    task._hook._submit_sp = jvm
    task.on_kill()
    jvm.wait()
    assert not is_running(driver)


def test_what_setup_fetches_is_where_jobs_look_for_it() -> None:
    assert jars_directory("connector") == FETCHED


def test_without_jars_spark_fetches_the_connector_of_its_own_version(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import pyspark

    monkeypatch.delenv("KAFKA_RESCALE_SPARK_JARS", raising=False)
    monkeypatch.setattr("kafka_rescale.spark.jobs.files.FETCHED", tmp_path / "none")
    assert connector() == (None, f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}")
    (tmp_path / "b.jar").touch()
    (tmp_path / "a.jar").touch()
    monkeypatch.setenv("KAFKA_RESCALE_SPARK_JARS", str(tmp_path))
    assert connector() == (f"{tmp_path / 'a.jar'},{tmp_path / 'b.jar'}", None)


def test_without_spark_the_remedy_is_named_before_anything_is_submitted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As after an installation of the wheel without its extra: Airflow's provider brings only Spark's client."""

    def absent(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.delenv("KAFKA_RESCALE_SPARK_JARS", raising=False)
    monkeypatch.setattr("kafka_rescale.spark.jobs.files.FETCHED", tmp_path / "none")
    monkeypatch.setattr("kafka_rescale.spark.jobs.files.version", absent)
    with pytest.raises(InvalidInput, match=r"found no package pyspark .*'kafka_rescale\[spark\]'"):
        require_spark_files()
    jar = tmp_path / "connector.jar"
    jar.touch()
    monkeypatch.setenv("KAFKA_RESCALE_SPARK_JARS", str(jar))
    assert require_spark_files() == ""


@pytest.mark.parametrize("given", ["empty", "gone", "gone.jar,also.jar"])
def test_a_connector_that_is_not_where_it_is_said_to_be_is_refused_before_anything_is_submitted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, given: str
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("KAFKA_RESCALE_SPARK_JARS", ",".join(str(tmp_path / name) for name in given.split(",")))
    with pytest.raises(InvalidInput) as refused:
        require_spark_files()
    assert refused.value.what == "environment variable KAFKA_RESCALE_SPARK_JARS"
    assert str(tmp_path / given.split(",", maxsplit=1)[0]) in refused.value.found
    assert "make setup" in refused.value.remedy


def test_jobs_that_are_not_there_are_refused_before_anything_is_submitted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KAFKA_RESCALE_SPARK_JOBS", str(tmp_path))
    with pytest.raises(InvalidInput, match="KAFKA_RESCALE_SPARK_JOBS"):
        require_spark_files()


def test_whoever_relies_on_maven_central_is_told_before_anything_is_submitted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("kafka_rescale.spark.jobs.files.FETCHED", tmp_path)
    monkeypatch.setenv("KAFKA_RESCALE_SPARK_JARS", "https://repository/a.jar")
    assert require_spark_files() == ""
    monkeypatch.delenv("KAFKA_RESCALE_SPARK_JARS")
    assert "spark-sql-kafka-0-10_2.13" in require_spark_files()


def test_a_class_that_no_jar_has_is_told_before_anything_is_submitted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    jar = tmp_path / "connector.jar"
    with ZipFile(jar, "w") as written:
        written.writestr("com/example/Tokens.class", b"")
    monkeypatch.setenv("KAFKA_RESCALE_SPARK_JARS", str(jar))
    assert require_spark_files("com.example.Tokens") == ""
    assert "com.example.Others, which no jar of Spark's Kafka connector has" in require_spark_files(
        "com.example.Others"
    )
    monkeypatch.setenv("KAFKA_RESCALE_SPARK_JARS", "https://repository/a.jar")
    assert require_spark_files("com.example.Others") == ""
