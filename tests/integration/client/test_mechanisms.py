"""One Kafka connection works for three clients with every mechanism: librdkafka, kafka-python and Java.

All log in to the same broker. The Java client is that of Spark's connector, whose jars are older than the
broker's.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from kafka_rescale.core.errors import InvalidInput, Outage
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client import signed_token
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.writing.transactional_writer import TransactionalWriter

from testbed.broker import EmbeddedBroker
from testbed.broker_config import to_properties_file
from testbed.broker_security import BrokerSecurity
from testbed.jars import ensure_jars, require_java
from testbed.processes import wait_until
from tests.support.signed_tokens import HANDLER, SECRET, URL, compiled, jars_of_spark, write_signer
from tests.support.token_issuer import TokenIssuer, token_issuer

pytestmark = pytest.mark.integration

PASSWORD = 'a "quoted" \\ s3cret'
PASSWORDS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
FUNCTION, SIGNER = "OAUTHBEARER by a function", "OAUTHBEARER by Amazon's signer"
MECHANISMS = (*PASSWORDS, "OAUTHBEARER", FUNCTION, SIGNER, "certificate", "certificate and key")
MSK = "b-1.demo.abcde1.c2.kafka.eu-west-1.amazonaws.com:9098"
"""A host name of Amazon's. No broker answers there in this test."""


@dataclass(frozen=True)
class Guarded:
    """A broker, an issuer of tokens, and a connection for each mechanism."""

    broker: EmbeddedBroker
    issuer: TokenIssuer
    settings: Mapping[str, dict[str, str]]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    directory = tmp_path_factory.mktemp("mechanisms")
    with token_issuer({"us": PASSWORD}) as issuer, _signing(directory, issuer):
        security = BrokerSecurity(directory / "certificates", {"alice": PASSWORD}, issuer.jwks_url)
        with EmbeddedBroker(directory / "broker", heap="384m", security=security) as broker:
            servers = {"bootstrap.servers": broker.bootstrap_servers}
            authority = {"ssl.ca.location": str(security.certificates.authority)}
            settings = {name: {**servers, **security.login("alice", name)} for name in PASSWORDS}
            settings["OAUTHBEARER"] = {**servers, **authority, **issuer.settings("us")}
            signed = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER", **authority}
            java = {"sasl.login.callback.handler.class": HANDLER}
            settings[FUNCTION] = {**servers, **signed, **java, "oauth_cb": "tests.support.signed_tokens.oauth_cb"}
            amazons = f"{broker.bootstrap_servers},{MSK}"
            settings[SIGNER] = {**signed, **java, "bootstrap.servers": amazons}
            settings["certificate"] = broker.certified_config("alice")
            settings["certificate and key"] = {
                **settings["certificate"],
                **_apart(directory, settings["certificate"]),
            }
            yield Guarded(broker, issuer, settings)


@contextmanager
def _signing(directory: Path, issuer: TokenIssuer) -> Iterator[None]:
    """Put into the environment what signers need, and let Amazon's signer be importable."""
    write_signer(directory)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(URL, f"{issuer.url}/token")
        patch.setenv(SECRET, f"us:{PASSWORD}")
        patch.syspath_prepend(directory)
        yield
    sys.modules.pop("aws_msk_iam_sasl_signer", None)
    signed_token._tokens.cache_clear()


def _apart(directory: Path, settings: Mapping[str, str]) -> dict[str, str]:
    """Split one file into two: the key and the certificate."""
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
    jars = f"{ensure_jars('connector')}/*:{jars_of_spark()}/*"
    command = [require_java(), "-cp", f"{compiled(tmp_path)}:{jars}", str(source), *map(str, files)]
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


def test_an_issuer_of_tokens_that_refuses_for_a_moment_is_waited_for(guarded: Guarded) -> None:
    connection, issuer = KafkaConnection(guarded.settings["OAUTHBEARER"]), guarded.issuer
    before = len(issuer.asked)
    issuer.is_confused = True
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(ClusterAdmin(connection).cluster_id)
        written = pool.submit(TransactionalWriter, connection, "nobody-may")
        wait_until(lambda: len(issuer.asked) > before + 2, timeout=60, what="clients to ask for tokens")
        assert not asked.done()
        assert not written.done()
        issuer.is_confused = False
        assert asked.result() == ClusterAdmin(KafkaConnection(guarded.broker.internal_config)).cluster_id()
        # It is let in, and only then not allowed to write.
        with pytest.raises(InvalidInput, match="TRANSACTIONAL_ID_AUTHORIZATION_FAILED"):
            written.result()


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
