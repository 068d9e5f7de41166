"""Where the command line gets its Kafka settings, and the one line that it prints if they can't be used."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.airflow.hooks.rescale import KafkaRescaleHook, kafka_connection
from kafka_rescale.cli.exit_codes import OUTAGE, REFUSED
from kafka_rescale.cli.main import main
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.settings_files import CONFIG_FILE_VARIABLE, CONFIG_VARIABLE
from kafka_rescale.kafka.client.signed_token import HANDLER, KNOWN_HANDLERS

from tests.support.application_files import write_application
from tests.support.words_pipeline import write_pipeline

Captured = pytest.CaptureFixture[str]
AIRFLOW = "AIRFLOW_CONN_KAFKA_DEFAULT"
NOWHERE = {"bootstrap.servers": "localhost:1"}
WITH_CALLBACK = {
    **NOWHERE,
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "OAUTHBEARER",
    "oauth_cb": "os.getcwd",
}
NO_CA = {**NOWHERE, "security.protocol": "SSL", "ssl.ca.location": "/absent/ca.pem"}


@pytest.fixture(autouse=True)
def _nothing_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (CONFIG_FILE_VARIABLE, CONFIG_VARIABLE, AIRFLOW):
        monkeypatch.delenv(name, raising=False)


def line(capsys: Captured, code: int, *arguments: str) -> str:
    """Return the only line that a command prints."""
    assert main(list(arguments)) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    (only,) = captured.err.splitlines()
    return only


@pytest.mark.parametrize("write", [write_application, write_pipeline])
def test_a_connection_that_airflow_does_not_know(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured, write: Any
) -> None:
    from airflow.sdk import BaseHook
    from airflow.sdk.exceptions import AirflowNotFoundException

    def unknown(conn_id: str) -> None:
        raise AirflowNotFoundException(conn_id)

    monkeypatch.setattr(BaseHook, "get_connection", unknown)
    file = str(write(tmp_path, kafka_conn_id="kafka_typo"))
    assert line(capsys, REFUSED, "status", file) == (
        "Kafka connection 'kafka_typo': found no such connection in Airflow, no --config, and no settings in the "
        "environment; expected librdkafka settings such as bootstrap.servers. Use --config FILE, set "
        f"{CONFIG_FILE_VARIABLE} or AIRFLOW_CONN_KAFKA_TYPO, or correct `kafka_conn_id`."
    )


def test_airflow_that_can_not_be_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    from airflow.sdk import BaseHook

    def down(conn_id: str) -> None:
        raise OSError("secret in a URL")

    monkeypatch.setattr(BaseHook, "get_connection", down)
    told = line(capsys, REFUSED, "status", str(write_application(tmp_path)))
    assert "found no Airflow here (OSError), no --config" in told
    assert "secret" not in told


def settings(directory: Path, monkeypatch: pytest.MonkeyPatch, origin: str, config: dict[str, str]) -> list[str]:
    """Put settings where a command finds them, and return its options."""
    file = directory / "settings.json"
    file.write_text(json.dumps(config))
    if origin == "file":
        return ["--config", str(file)]
    if origin == "variable":
        monkeypatch.setenv(CONFIG_FILE_VARIABLE, str(file))
    elif origin == "text":
        monkeypatch.setenv(CONFIG_VARIABLE, json.dumps(config))
    else:
        monkeypatch.setenv(AIRFLOW, json.dumps({"conn_type": "kafka", "extra": config}))
    return []


ORIGINS = {
    "file": "--config DIRECTORY/settings.json",
    "variable": f"{CONFIG_FILE_VARIABLE}=DIRECTORY/settings.json",
    "text": CONFIG_VARIABLE,
    "airflow": f"environment variable {AIRFLOW}",
}


@pytest.mark.parametrize("origin", ORIGINS)
@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({}, ": found no bootstrap.servers; expected librdkafka settings such as"),
        (NO_CA, ", ssl.ca.location: found /absent/ca.pem: No such file or directory; expected a file that"),
    ],
    ids=["no server", "no such certificate"],
)
def test_settings_that_can_not_be_used_are_told_with_where_they_are(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Captured,
    origin: str,
    config: dict[str, str],
    told: str,
) -> None:
    options = settings(tmp_path, monkeypatch, origin, config)
    said = line(capsys, REFUSED, "status", str(write_application(tmp_path)), *options)
    assert said.replace(str(tmp_path), "DIRECTORY").startswith(ORIGINS[origin] + told)


def test_the_hook_of_the_dags_checks_them_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(AIRFLOW, json.dumps({"conn_type": "kafka", "extra": NO_CA}))
    with pytest.raises(
        InvalidInput, match=r"Airflow connection 'kafka_default', ssl\.ca\.location: found /absent"
    ):
        KafkaRescaleHook(kafka_config_id="kafka_default").connection()


@pytest.mark.parametrize("write", [write_application, write_pipeline])
def test_nobody_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured, write: Any) -> None:
    monkeypatch.setattr(KafkaConnection.check, "__defaults__", (1.0,))
    options = settings(tmp_path, monkeypatch, "file", NOWHERE)
    told = line(capsys, OUTAGE, "status", str(write(tmp_path)), *options)
    assert told.startswith("Kafka connection to localhost:1: found ")
    assert "; expected a broker that answers. Check bootstrap.servers" in told


def test_a_missing_file_is_told_as_one(tmp_path: Path, capsys: Captured) -> None:
    told = line(capsys, REFUSED, "status", str(write_application(tmp_path)), "--config", f"{tmp_path}/absent")
    assert f"--config {tmp_path}/absent: found No such file or directory; expected JSON or lines" in told


class TestACallback:
    """A person who may edit connections in Airflow may not run code.

    The list of Airflow's own Kafka hook applies here too.
    """

    @pytest.fixture(autouse=True)
    def _connection(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(AIRFLOW, json.dumps({"conn_type": "kafka", "extra": WITH_CALLBACK}))

    def test_that_airflow_does_not_list_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("AIRFLOW__APACHE_KAFKA__CALLBACK_ALLOWLIST", "some.other, some.more")
        with pytest.raises(InvalidInput) as refused:
            KafkaRescaleHook(kafka_config_id="kafka_default").connection()
        assert str(refused.value).startswith(
            "Airflow connection 'kafka_default', oauth_cb: found 'os.getcwd'; expected a function in "
            "[apache_kafka] callback_allowlist, which has some.other, some.more. Add it there"
        )

    def test_that_airflow_lists_may_be_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("AIRFLOW__APACHE_KAFKA__CALLBACK_ALLOWLIST", "some.other,os.getcwd")
        found = KafkaRescaleHook(kafka_config_id="kafka_default").connection()
        assert found.config["oauth_cb"] == "os.getcwd"

    def test_a_java_class_that_airflow_does_not_list_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("AIRFLOW__APACHE_KAFKA__CALLBACK_ALLOWLIST", "os.getcwd")
        with pytest.raises(InvalidInput) as refused:
            kafka_connection({**WITH_CALLBACK, HANDLER: "com.example.Tokens"}, "k")
        assert str(refused.value).startswith(
            f"Airflow connection 'k', {HANDLER}: found 'com.example.Tokens'; expected a class in [apache_kafka] "
            "callback_allowlist, which has os.getcwd, or one of software.amazon.msk."
        )

    def test_one_that_airflow_lists_or_everybody_knows_may_be_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("AIRFLOW__APACHE_KAFKA__CALLBACK_ALLOWLIST", "os.getcwd,com.example.Tokens")
        for named in ("com.example.Tokens", *KNOWN_HANDLERS):
            found = kafka_connection({**WITH_CALLBACK, HANDLER: named}, "k")
            assert found.java()[HANDLER] == named

    @pytest.mark.parametrize("code", ["plugin.library.paths", "ssl.engine.location", "ssl.providers"])
    @pytest.mark.parametrize("shared", [NOWHERE, WITH_CALLBACK])
    def test_native_code_that_librdkafka_would_load_is_refused_as_well(
        self, monkeypatch: pytest.MonkeyPatch, shared: dict[str, str], code: str
    ) -> None:
        monkeypatch.setenv("AIRFLOW__APACHE_KAFKA__CALLBACK_ALLOWLIST", "os.getcwd")
        with pytest.raises(InvalidInput, match=f"Airflow connection 'k', settings '{code}': found no setting"):
            kafka_connection({**shared, code: "x"}, "k")

    def test_from_airflows_database_the_shell_refuses_it_as_well(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
    ) -> None:
        from airflow.sdk import BaseHook

        monkeypatch.delenv(AIRFLOW)
        monkeypatch.setattr(
            BaseHook, "get_connection", lambda conn_id: SimpleNamespace(extra_dejson=WITH_CALLBACK)
        )
        told = line(capsys, REFUSED, "status", str(write_application(tmp_path)))
        assert "oauth_cb: found 'os.getcwd'; expected a function in [apache_kafka] callback_allowlist" in told
