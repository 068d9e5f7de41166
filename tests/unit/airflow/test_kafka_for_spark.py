"""Spark jobs and the tasks around them use one cluster as one user.

Settings that contradict this are refused first.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.airflow.operators import admin, process
from kafka_rescale.airflow.operators.admin import PreflightOperator
from kafka_rescale.airflow.operators.process import AssignOperator
from kafka_rescale.airflow.operators.spark_submit import RescaleSparkSubmitOperator
from kafka_rescale.airflow.spark.kafka_for_spark import kafka_environment, require_kafka_for_spark
from kafka_rescale.core.application.config_files import KafkaOfJob
from kafka_rescale.core.errors import InvalidApplication, InvalidInput
from kafka_rescale.core.roles import Role
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.settings_files import as_word, of_word
from kafka_rescale.operations.application.load import load_application, load_pipeline_application
from kafka_rescale.operations.preflight import preflight
from kafka_rescale.operations.processing import prepare as processing

from testbed.certificates import Certificates
from tests.support.application_files import write_application
from tests.support.words_pipeline import write_pipeline

FILE, TEXT, EXPECTED = (f"KAFKA_RESCALE_KAFKA_{name}" for name in ("CONFIG_FILE", "CONFIG", "EXPECTED"))
PASSWORD = "not-to-be-seen"
KAFKA = {"bootstrap.servers": "a:9092,b:9092", "sasl.username": "copy", "sasl.password": PASSWORD}
YARN = {"conn_type": "spark", "host": "yarn"}
KUBERNETES = {"conn_type": "spark", "host": "k8s://https://k8s", "port": 6443}
CLUSTER = {**KUBERNETES, "extra": {"deploy-mode": "cluster"}}
LOCAL = {"conn_type": "spark", "host": "local[2]"}
ONE_SPARK: list[tuple[str, dict[str, str]]] = [("spark_default", {})]


@pytest.fixture(autouse=True)
def hooks(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The hooks that were asked to submit. None of them runs spark-submit."""
    from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook

    asked: list[Any] = []
    for name in (FILE, TEXT, EXPECTED):
        monkeypatch.delenv(name, raising=False)
    for name in ("X", "DEFAULT"):
        monkeypatch.setenv(f"AIRFLOW_CONN_KAFKA_{name}", json.dumps({"conn_type": "kafka", "extra": KAFKA}))
    monkeypatch.setattr("airflow.providers.apache.spark.hooks.spark_submit.kube_client", object(), raising=False)
    monkeypatch.setattr(SparkSubmitHook, "submit", lambda hook, application: asked.append(hook))
    monkeypatch.setattr(RescaleSparkSubmitOperator, "_package_zip", staticmethod(lambda directory: "package.zip"))
    monkeypatch.setattr("kafka_rescale.airflow.operators.spark_submit.journal_of", lambda *_: None)
    monkeypatch.setattr("kafka_rescale.airflow.operators.spark_submit.result_of", lambda *_: {})
    return asked


def spark(monkeypatch: pytest.MonkeyPatch, connection: dict[str, Any]) -> None:
    for name in ("X", "DEFAULT"):
        monkeypatch.setenv(f"AIRFLOW_CONN_SPARK_{name}", json.dumps(connection))


def mounted(directory: Path, **changes: str) -> str:
    file = directory / "kafka.json"
    file.write_text(json.dumps({**KAFKA, **changes}))
    return str(file)


def submit(**arguments: Any) -> RescaleSparkSubmitOperator:
    named = {"task_id": "t", "application_id": "x", "job": "restore", "stage": 2}
    task = RescaleSparkSubmitOperator(**named, kafka_conn_id="kafka_x", conn_id="spark_x", **arguments)
    run = SimpleNamespace(dag_id="expand_x", run_id="manual__1")
    context: Any = {"dag_run": run, "ti": SimpleNamespace(try_number=1)}
    task.execute(context)
    return task


@pytest.mark.parametrize("connection", [LOCAL, YARN, CLUSTER, KUBERNETES])
def test_a_file_is_only_named_and_reaches_the_driver_wherever_it_runs(
    hooks: list[Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, connection: dict[str, Any]
) -> None:
    spark(monkeypatch, connection)
    task = submit(kafka_config_file=mounted(tmp_path))
    command = hooks[0]._build_spark_submit_command("restore.py")
    environment = hooks[0]._env
    assert environment[FILE] == str(tmp_path / "kafka.json")
    assert TEXT not in environment
    assert re.fullmatch(r"[\w=-]+", environment[EXPECTED]), "a shell, as that of YARN, would change it"
    assert of_word(environment[EXPECTED])["bootstrap.servers"] == KAFKA["bootstrap.servers"]
    rendered = {name: getattr(task, name) for name in task.template_fields}
    assert PASSWORD not in f"{command} {environment} {rendered}"


def test_where_the_environment_is_private_the_connection_is_used_and_no_file_for_all(
    hooks: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    spark(monkeypatch, LOCAL)
    monkeypatch.setenv(FILE, "/of/another/cluster.json")
    submit()
    hooks[0]._build_spark_submit_command("restore.py")
    assert json.loads(hooks[0]._env[TEXT]) == KAFKA
    assert hooks[0]._env[FILE] == ""


@pytest.mark.parametrize("host", ["spark://yarn-edge", "spark://master.k8s.example"])
def test_a_master_that_the_provider_takes_for_a_resource_manager_is_told_a_file_only(
    hooks: list[Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, host: str
) -> None:
    """The provider looks for the words anywhere in the master.

    Then it puts the environment on the command line.
    """
    spark(monkeypatch, {"conn_type": "spark", "host": host, "port": 7077})
    with pytest.raises(InvalidInput, match="without yarn or k8s in its name"):
        submit()
    assert hooks == []
    submit(kafka_config_file=mounted(tmp_path))
    assert PASSWORD not in f"{hooks[0]._build_spark_common_args()} {hooks[0]._env}"
    assert hooks[0]._env[FILE] == str(tmp_path / "kafka.json"), "the driver is on this machine"


CONTRADICTIONS = [
    ({"bootstrap.servers": "c:9092"}, "found bootstrap.servers 'c:9092'; expected 'a:9092,b:9092' of Airflow"),
    ({"sasl.username": "admin"}, "found sasl.username 'admin'; expected 'copy' of Airflow connection 'kafka_x'"),
    ({"sasl.password": "an old one"}, "found another sasl.password; expected the one of Airflow"),
]


@pytest.mark.parametrize(("changes", "message"), CONTRADICTIONS)
@pytest.mark.parametrize("connection", [YARN, CLUSTER], ids=["client", "cluster"])
def test_a_file_that_contradicts_the_connection_is_refused_before_anything_is_submitted(
    hooks: list[Any],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    changes: dict[str, str],
    message: str,
    connection: dict[str, Any],
) -> None:
    spark(monkeypatch, connection)
    monkeypatch.setenv(FILE, mounted(tmp_path, **changes))
    with pytest.raises(InvalidInput) as refused:
        submit()
    assert message in str(refused.value)
    assert str(tmp_path / "kafka.json") in refused.value.what
    assert PASSWORD not in str(refused.value)
    assert "an old one" not in str(refused.value)
    assert hooks == []


def test_servers_may_come_in_another_order(
    hooks: list[Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    spark(monkeypatch, YARN)
    submit(kafka_config_file=mounted(tmp_path, **{"bootstrap.servers": "b:9092, a:9092"}))
    assert len(hooks) == 1


def test_a_file_that_is_missing_is_refused_where_the_driver_runs_here(
    hooks: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    spark(monkeypatch, YARN)
    with pytest.raises(InvalidInput, match=r"/not/here\.json: found No such file"):
        submit(kafka_config_file="/not/here.json")
    spark(monkeypatch, CLUSTER)
    submit(kafka_config_file="/not/here.json")
    assert len(hooks) == 1


def test_what_can_not_be_seen_from_here_is_checked_by_the_job(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(FILE, mounted(tmp_path))
    monkeypatch.setenv(EXPECTED, as_word({"bootstrap.servers": "b:9092,a:9092", "sasl.username": "copy"}))
    assert KafkaConnection.from_environment().config == KAFKA
    monkeypatch.setenv(EXPECTED, as_word({"bootstrap.servers": "c:9092", "sasl.username": "copy"}))
    with pytest.raises(InvalidInput, match=r"found bootstrap\.servers 'a:9092,b:9092'; expected 'c:9092' of the"):
        KafkaConnection.from_environment()


def test_one_file_for_all_is_none_for_a_role_with_a_connection_of_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    spark(monkeypatch, CLUSTER)
    monkeypatch.setenv(FILE, "/for/all.json")
    connections = {Role.VERIFY: KafkaConnection(KAFKA)}
    own: dict[str, Any] = {"kafka_conn_ids": {"verify": "kafka_x"}}
    with pytest.raises(InvalidInput, match=r"/for/all\.json, one file for all, while Airflow connection 'k"):
        require_kafka_for_spark(load_application(write_application(tmp_path, **own)), connections, ONE_SPARK)
    own["kafka_config_files"] = {"verify": "/for/verify.json"}
    require_kafka_for_spark(load_application(write_application(tmp_path, **own)), connections, ONE_SPARK)


def test_a_missing_spark_connection_is_refused_at_once_while_nothing_has_been_touched(tmp_path: Path) -> None:
    """A job of a run that goes on waits for it, because Airflow may only be unable to look it up."""
    application = load_application(write_application(tmp_path))
    with pytest.raises(InvalidInput, match="Spark connection 'spark_absent'"):
        require_kafka_for_spark(application, {Role.VERIFY: KafkaConnection(KAFKA)}, [("spark_absent", {})])


def test_a_file_that_no_job_would_use_is_a_mistake(tmp_path: Path) -> None:
    files = {"kafka_config_files": {"plan": "/x"}}
    with pytest.raises(InvalidApplication, match="kafka_config_files: found a file of role plan; expected"):
        load_application(write_application(tmp_path, **files))
    with pytest.raises(InvalidApplication, match="found a file of role plan; expected files of copy, which"):
        load_pipeline_application(write_pipeline(tmp_path, **files))


def test_a_preflight_warns_of_permissions_that_cover_another_application(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    told: list[str] = []
    spark(monkeypatch, LOCAL)
    monkeypatch.setattr(preflight, "preflight", lambda *_, **__: preflight.Preflight(None, True, ()))
    monkeypatch.setattr(admin, "require_spark_files", lambda _: "")
    file = write_application(tmp_path, application_id="orders")
    write_application(tmp_path, application_id="orders-eu")
    task = PreflightOperator(task_id="preflight", application_file=str(file))
    monkeypatch.setattr(task.log, "warning", lambda form, *values: told.append(form % values))
    context: Any = {"dag_run": SimpleNamespace(dag_id="expand_orders", run_id="manual__1", run_type="manual")}
    task.execute(context)
    assert [line for line in told if "found that they cover orders-eu" in line]


def test_an_expansion_is_refused_in_its_preflight(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[Any] = []
    spark(monkeypatch, YARN)
    monkeypatch.setattr(preflight, "preflight", lambda *given, **_: asked.append(given))
    monkeypatch.setattr(admin, "require_spark_files", lambda _: "")
    monkeypatch.setenv(FILE, mounted(tmp_path, **CONTRADICTIONS[0][0]))
    task = PreflightOperator(task_id="preflight", application_file=str(write_application(tmp_path)))
    context: Any = {"dag_run": SimpleNamespace(dag_id="expand_x", run_id="manual__1", run_type="manual")}
    with pytest.raises(InvalidInput, match=r"found bootstrap\.servers 'c:9092'"):
        task.execute(context)
    assert asked == []


def test_a_run_of_a_pipeline_is_refused_before_its_topics_are_made(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[Any] = []
    spark(monkeypatch, YARN)
    monkeypatch.setattr(processing, "prepare", lambda *given: asked.append(given))
    monkeypatch.setenv(FILE, mounted(tmp_path, **CONTRADICTIONS[0][0]))
    task = AssignOperator(task_id="assign", application_file=str(write_pipeline(tmp_path)))
    context: Any = {"dag_run": SimpleNamespace(dag_id="process_words", run_id="manual__1"), "params": {}}
    with pytest.raises(InvalidInput, match=r"found bootstrap\.servers 'c:9092'"):
        task.execute(context)
    assert asked == []


LOGIN = {**KAFKA, "security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512"}
OTHER_WAYS = [
    ({"security.protocol": "SASL_PLAINTEXT"}, "found security.protocol 'SASL_PLAINTEXT'; expected 'SASL_SSL' of"),
    ({"security.protocol": ""}, "found security.protocol 'PLAINTEXT'; expected 'SASL_SSL' of"),
    ({"sasl.mechanism": "PLAIN"}, "found sasl.mechanism 'PLAIN'; expected 'SCRAM-SHA-512' of"),
]


def compared(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, wanted: dict[str, str], found: dict[str, str]
) -> Iterator[Callable[[], object]]:
    """Yield the two comparisons of a file with a connection: by the task, and by a driver that runs elsewhere."""
    file = tmp_path / "kafka.json"
    file.write_text(json.dumps(found))
    spark(monkeypatch, YARN)
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_X", json.dumps({"conn_type": "kafka", "extra": wanted}))
    yield lambda: submit(kafka_config_file=str(file))
    spark(monkeypatch, CLUSTER)
    of_job = KafkaOfJob("kafka_x", f"{tmp_path}/elsewhere.json", True)
    given = kafka_environment(of_job, KafkaConnection(wanted), "spark_x", "k8s://k8s")
    monkeypatch.setenv(FILE, str(file))
    monkeypatch.setenv(EXPECTED, given[EXPECTED])
    yield KafkaConnection.from_environment


@pytest.mark.parametrize(("changes", "message"), OTHER_WAYS)
def test_a_file_that_logs_in_by_another_way_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, changes: dict[str, str], message: str
) -> None:
    for compare in compared(monkeypatch, tmp_path, LOGIN, {**LOGIN, **changes}):
        with pytest.raises(InvalidInput, match=re.escape(message)):
            compare()


@pytest.mark.parametrize(
    "same",
    [
        {**KAFKA, "security.protocol": "sasl_ssl", "sasl.mechanisms": "SCRAM-SHA-512"},
        {**LOGIN, "ssl.endpoint.identification.algorithm": "https"},
    ],
)
def test_the_same_way_may_be_written_otherwise(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, same: dict[str, str]
) -> None:
    for compare in compared(monkeypatch, tmp_path, LOGIN, same):
        compare()


class TestCertificates:
    @pytest.fixture
    def settings(self, tmp_path: Path) -> Callable[[str, str], dict[str, str]]:
        """Settings of a user by a certificate, each made at a path of its own."""

        def made(machine: str, user: str) -> dict[str, str]:
            (tmp_path / machine).mkdir()
            pem = str(Certificates(tmp_path / machine).issue(user))
            files = {"ssl.certificate.location": pem, "ssl.key.location": pem}
            return {"bootstrap.servers": "a:9092", "security.protocol": "SSL", **files}

        return made

    def test_of_another_user_are_refused(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, settings: Callable[[str, str], dict[str, str]]
    ) -> None:
        wanted, found = settings("worker", "copy"), settings("driver", "ADMIN")
        for compare in compared(monkeypatch, tmp_path, wanted, found):
            with pytest.raises(InvalidInput, match="with the subject 'CN=ADMIN'; expected 'CN=copy' of"):
                compare()
        none = {"bootstrap.servers": "a:9092", "security.protocol": "SSL"}
        for compare in compared(monkeypatch, tmp_path, wanted, none):
            with pytest.raises(InvalidInput, match="with the subject ''; expected 'CN=copy' of"):
                compare()

    def test_of_one_user_may_be_at_different_paths(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, settings: Callable[[str, str], dict[str, str]]
    ) -> None:
        for compare in compared(monkeypatch, tmp_path, settings("worker", "copy"), settings("driver", "copy")):
            compare()

    def test_that_can_not_be_read_here_are_not_compared(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, settings: Callable[[str, str], dict[str, str]]
    ) -> None:
        wanted = settings("worker", "copy")
        elsewhere = {**wanted, "ssl.certificate.location": "/run/copy.pem", "ssl.key.location": "/run/copy.pem"}
        next(compared(monkeypatch, tmp_path, wanted, elsewhere))()

    def test_beside_a_login_may_be_those_of_the_machines(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, settings: Callable[[str, str], dict[str, str]]
    ) -> None:
        wanted, found = settings("worker", "a"), settings("driver", "b")
        for compare in compared(monkeypatch, tmp_path, {**wanted, **LOGIN}, {**found, **LOGIN}):
            compare()


def test_a_network_that_spark_does_not_encrypt_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    connections, remote = {Role.VERIFY: KafkaConnection(KAFKA)}, {"conn_type": "spark", "host": "spark://m:7077"}
    encrypted = {"spark_conf": {"spark.authenticate": "true", "spark.network.crypto.enabled": "true"}}
    for connection, changes, hint in [(remote, {}, "spark://m:7077"), (LOCAL, {}, ""), (remote, encrypted, "")]:
        spark(monkeypatch, connection)
        application = load_application(write_application(tmp_path, **changes))
        told = require_kafka_for_spark(application, connections, ONE_SPARK)
        assert (hint in told) if hint else not told


def test_settings_of_a_pipelines_client_count_for_its_network(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    spark(monkeypatch, {"conn_type": "spark", "host": "spark://m:7077"})
    told: list[str] = []
    monkeypatch.setattr(process, "require_kafka_for_spark", lambda *of: told.append(require_kafka_for_spark(*of)))
    monkeypatch.setattr(process, "generation_of", fail)
    on, off = ({"spark.authenticate": of, "spark.network.crypto.enabled": of} for of in ("true", "false"))
    for shared, own in [({}, [on, on]), ({}, [on, {}]), (on, [{}, off])]:
        clients = [
            {"client.id": f"c{n}", "state.dir": str(tmp_path / f"c{n}"), "spark_conf": conf}
            for n, conf in enumerate(own)
        ]
        changes: dict[str, Any] = {"state.dir": None, "spark_conf": shared, "clients": clients}
        task = AssignOperator(task_id="assign", application_file=str(write_pipeline(tmp_path, **changes)))
        context: Any = {"dag_run": SimpleNamespace(dag_id="process_words", run_id="manual__1"), "params": {}}
        with pytest.raises(AssertionError, match="asked no more"):
            task.execute(context)
    assert [bool(hint) for hint in told] == [False, True, True]


def fail(*_: object) -> None:
    """Stand for the work behind the checks."""
    raise AssertionError("asked no more")
