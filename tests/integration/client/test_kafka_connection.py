"""Connections that fail on a real broker: there is one clear message, without a secret."""

from __future__ import annotations

import logging
import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from kafka_rescale.core.errors import InvalidInput, NotLetIn, Outage
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.control_topic import ControlTopic

from testbed.broker import EmbeddedBroker
from testbed.jars import java_command

pytestmark = pytest.mark.integration

PASSWORD = "s3cret-of-alice"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(tmp_path_factory.mktemp("sasl"), heap="384m", sasl_users={"alice": PASSWORD}) as running:
        yield running


@pytest.fixture
def login(guarded: EmbeddedBroker) -> dict[str, str]:
    return guarded.client_config()


def test_everything_works_with_a_login(login: dict[str, str], unique: str) -> None:
    connection = KafkaConnection(login)
    connection.check()
    admin = ClusterAdmin(connection)
    assert admin.ensure_topic(unique, 1, 1, {})
    assert admin.remove_members(unique) == ()
    assert ControlTopic(connection, unique).update(lambda _: {"report": {"a": 1}}).report == {"a": 1}


WRONG = {
    "Invalid username or password": {"sasl.password": "wr0ng-s3cret"},
    "Unsupported SASL mechanism": {"sasl.mechanism": "SCRAM-SHA-256"},
}


def test_wrong_credentials_are_told_by_every_client(login: dict[str, str], unique: str) -> None:
    """A request waits, as it may have met a moment in which an issuer of tokens is away. A check does not wait."""
    connections = {reason: KafkaConnection({**login, **change}) for reason, change in WRONG.items()}
    with ThreadPoolExecutor() as pool:
        asked = {
            reason: [
                pool.submit(of.check),
                pool.submit(ClusterAdmin(of).cluster_id),
                pool.submit(ControlTopic(of, unique).read),
            ]
            for reason, of in connections.items()
        }
    for reason, answers in asked.items():
        refused = [each.exception() for each in answers]
        assert [type(error) for error in refused] == [InvalidInput, NotLetIn, NotLetIn]
        for error in refused:
            assert reason in str(error)
            assert "s3cret" not in str(error)


def test_a_login_missing_altogether_is_an_outage_that_names_the_protocol(login: dict[str, str]) -> None:
    connection = KafkaConnection({"bootstrap.servers": login["bootstrap.servers"]})
    with pytest.raises(Outage, match=r"security\.protocol"):
        connection.check(seconds=1)


def test_a_port_that_nobody_listens_on_is_an_outage() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound but not listening, so that no other process can listen there
        connection = KafkaConnection({"bootstrap.servers": f"127.0.0.1:{taken.getsockname()[1]}"})
        with pytest.raises(Outage, match=r"Connection refused.*Check bootstrap\.servers"):
            connection.check(seconds=1)


def test_a_setting_that_librdkafka_refuses_is_invalid_input(client: dict[str, str]) -> None:
    with pytest.raises(InvalidInput, match=r"socket\.timeout\.ms"):
        KafkaConnection({**client, "socket.timeout.ms": "soon"}).check()


def test_librdkafka_writes_to_pythons_logging_and_not_to_stderr(
    login: dict[str, str], caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    with pytest.raises(InvalidInput):
        KafkaConnection({**login, "sasl.password": "wrong"}).check()
    assert any(record.name == "kafka_rescale.librdkafka" for record in caplog.records)
    # A client of another test, whose broker has ended, may still write there.
    told = [line for line in capfd.readouterr().err.splitlines() if login["bootstrap.servers"] in line]
    assert [line for line in told if "rdkafka#" in line] == []
    assert PASSWORD not in caplog.text


# In `make test`, test_mechanisms.py::test_java_is_let_in_by_the_mapped_settings has quotes and a backslash.
@pytest.mark.parametrize(
    "password",
    [
        pytest.param('with "quotes" inside', marks=pytest.mark.slow),
        pytest.param("back\\slash", marks=pytest.mark.slow),
        "semi;colon 'and' $more",
    ],
)
def test_java_reads_the_password_that_was_meant(password: str, tmp_path: Path) -> None:
    config = {"bootstrap.servers": "a:9092", "security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}
    config |= {"sasl.username": "alice", "sasl.password": password}
    jaas = KafkaConnection(config).java()["sasl.jaas.config"]
    assert _java_parses(jaas, tmp_path) == password


def _java_parses(jaas: str, directory: Path) -> str:
    """Return the password that Kafka's own Java client finds in a JAAS line."""
    source = directory / "Jaas.java"
    source.write_text(
        """
        import java.util.Map;
        import org.apache.kafka.common.config.types.Password;
        import org.apache.kafka.common.security.JaasContext;
        public class Jaas {
            public static void main(String[] args) {
                var context = JaasContext.loadClientContext(Map.of("sasl.jaas.config", new Password(args[0])));
                System.out.print(context.configurationEntries().get(0).getOptions().get("password"));
            }
        }
        """
    )
    command = java_command(str(source), jaas)
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
