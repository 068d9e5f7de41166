"""One Kafka connection, three clients, every mechanism: the same broker lets librdkafka, kafka-python and Java in.

The Java client is that of Spark's connector, whose jars are older than the broker's.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from kafka_rescale.core.errors import InvalidInput, Outage
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection

from testbed.broker import EmbeddedBroker
from testbed.broker_config import to_properties_file
from testbed.broker_security import BrokerSecurity
from testbed.jars import ensure_jars, require_java
from tests.support.token_issuer import token_issuer

pytestmark = pytest.mark.integration

PASSWORD = 'a "quoted" \\ s3cret'
PASSWORDS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
MECHANISMS = (*PASSWORDS, "OAUTHBEARER", "certificate", "certificate and key")


@dataclass(frozen=True)
class Guarded:
    """A broker, and a connection per mechanism."""

    broker: EmbeddedBroker
    settings: Mapping[str, dict[str, str]]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    directory = tmp_path_factory.mktemp("mechanisms")
    with token_issuer({"us": PASSWORD}) as issuer:
        security = BrokerSecurity(directory / "certificates", {"alice": PASSWORD}, issuer.jwks_url)
        with EmbeddedBroker(directory / "broker", heap="384m", security=security) as broker:
            servers = {"bootstrap.servers": broker.bootstrap_servers}
            authority = {"ssl.ca.location": str(security.certificates.authority)}
            settings = {name: {**servers, **security.login("alice", name)} for name in PASSWORDS}
            settings["OAUTHBEARER"] = {**servers, **authority, **issuer.settings("us")}
            settings["certificate"] = broker.certified_config("alice")
            settings["certificate and key"] = {
                **settings["certificate"],
                **_apart(directory, settings["certificate"]),
            }
            yield Guarded(broker, settings)


def _apart(directory: Path, settings: Mapping[str, str]) -> dict[str, str]:
    """The key and the certificate of one file as two files."""
    key, mark, certificate = Path(settings["ssl.certificate.location"]).read_text().partition("-----BEGIN CERT")
    files = {"ssl.key.location": key, "ssl.certificate.location": mark + certificate}
    for name, text in files.items():
        (directory / name).write_text(text)
    return {name: str(directory / name) for name in files}


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_librdkafka_and_kafka_python_are_let_in(guarded: Guarded, mechanism: str) -> None:
    connection = KafkaConnection(guarded.settings[mechanism])
    connection.check()
    admin = ClusterAdmin(connection)
    assert admin.cluster_id() == ClusterAdmin(KafkaConnection(guarded.broker.internal_config)).cluster_id()
    with pytest.raises(InvalidInput, match=r"GROUP_AUTHORIZATION_FAILED|GroupAuthorizationFailed"):
        admin.describe_group("nobody-may")


def test_java_is_let_in_by_the_mapped_settings(guarded: Guarded, tmp_path: Path) -> None:
    files = []
    for name, settings in guarded.settings.items():
        files.append(tmp_path / f"{name}.properties")
        text = to_properties_file({k: v.replace("\n", "\\n") for k, v in KafkaConnection(settings).java().items()})
        files[-1].write_text(text.replace("\\\\n", "\\n"))
    source = tmp_path / "Connects.java"
    source.write_text(CONNECTS)
    jars = f"{ensure_jars('connector')}/*:{_spark_jars()}/*"
    command = [require_java(), "-cp", jars, str(source), *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    cluster = ClusterAdmin(KafkaConnection(guarded.broker.internal_config)).cluster_id()
    assert done.stdout.split() == [cluster] * len(MECHANISMS)


@pytest.mark.parametrize(
    ("mechanism", "change", "reason"),
    [
        ("SCRAM-SHA-512", {"sasl.password": "wr0ng-s3cret"}, "Authentication failed"),
        ("OAUTHBEARER", {"sasl.oauthbearer.client.secret": "wr0ng-s3cret"}, "401|token"),
        ("SCRAM-SHA-512", {"ssl.ca.location": ""}, "certificate verify failed|self.signed"),
    ],
)
def test_wrong_settings_are_told_without_a_secret(
    guarded: Guarded, mechanism: str, change: dict[str, str], reason: str
) -> None:
    settings = {k: v for k, v in {**guarded.settings[mechanism], **change}.items() if v}
    with pytest.raises((InvalidInput, Outage), match=reason) as refused:
        KafkaConnection(settings).check()
    assert "s3cret" not in str(refused.value)


def _spark_jars() -> Path:
    """Spark brings Jackson and the log that the connector's client needs."""
    import pyspark

    return Path(pyspark.__file__).parent / "jars"


CONNECTS = """
import java.io.FileReader;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
public class Connects {
    public static void main(String[] files) throws Exception {
        for (String file : files) {
            Properties settings = new Properties();
            try (FileReader reader = new FileReader(file)) {
                settings.load(reader);
            }
            settings.put("request.timeout.ms", "10000");
            settings.put("default.api.timeout.ms", "20000");
            try (Admin admin = Admin.create(settings)) {
                System.out.println(admin.describeCluster().clusterId().get());
            }
        }
    }
}
"""
