"""The same connection in the settings of librdkafka, Java and kafka-python. No secret is ever shown."""

from __future__ import annotations

import json
import pickle
import re
from pathlib import Path

import pytest
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.kafka.client.client_settings import CONNECTION_KEYS, JAVA_NAMES, OWNED_KEYS, TUNING_KEYS
from kafka_rescale.kafka.client.connection import RESILIENT, KafkaConnection
from kafka_rescale.kafka.client.settings_files import CONFIG_FILE_VARIABLE, CONFIG_VARIABLE

SERVERS = {"bootstrap.servers": "a:9092,b:9092"}
LOGIN = {
    **SERVERS,
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "alice",
    "sasl.password": "s3cret",
}
OAUTH = {
    **SERVERS,
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.method": "oidc",
    "sasl.oauthbearer.client.id": "us",
    "sasl.oauthbearer.client.secret": "s3cret",
    "sasl.oauthbearer.scope": "kafka",
    "sasl.oauthbearer.token.endpoint.url": "https://issuer/token",
}
PKCS8 = "-----BEGIN PRIVATE KEY-----\n…\n-----END PRIVATE KEY-----\n"


class TestSettings:
    @pytest.mark.parametrize(
        ("config", "reason"),
        [
            ({}, "no bootstrap.servers"),
            ({"bootstrap.servers": " "}, "no bootstrap.servers"),
            ({**SERVERS, "oauth_cb": print}, "for a callback, the name of a function"),
            ({**SERVERS, "sasl.password": {"nested": 1}}, "found a dict"),
        ],
    )
    def test_what_cannot_be_used_is_refused(self, config: dict[str, str], reason: str) -> None:
        with pytest.raises(InvalidInput, match=reason):
            KafkaConnection(config)

    def test_numbers_and_booleans_of_json_become_librdkafka_text(self) -> None:
        connection = KafkaConnection({**SERVERS, "socket.timeout.ms": 5, "log.queue": True})  # type: ignore[dict-item]
        assert (connection.config["socket.timeout.ms"], connection.config["log.queue"]) == ("5", "true")

    def test_a_secret_is_never_shown(self) -> None:
        connection = KafkaConnection(LOGIN)
        for text in (repr(connection), str(connection), f"{connection}", repr([connection])):
            assert "s3cret" not in text
            assert "a:9092" in text

    def test_it_travels_to_executors(self) -> None:
        connection = KafkaConnection(LOGIN)
        assert pickle.loads(pickle.dumps(connection)) == connection
        assert pickle.loads(pickle.dumps(connection.client())) == connection.client()

    def test_a_client_is_not_given_what_belongs_to_another_program(self) -> None:
        shared = {
            **SERVERS,
            "group.id": "theirs",
            "enable.auto.commit": "true",
            "isolation.level": "read_uncommitted",
        }
        client = KafkaConnection(shared).client(**{"group.id": "ours"})
        assert client.pop("logger").name == "kafka_rescale.librdkafka"
        assert client == {**SERVERS, **RESILIENT, "group.id": "ours"}

    def test_a_connection_may_decide_otherwise_how_brokers_are_found_again(self) -> None:
        client = KafkaConnection({**SERVERS, "reconnect.backoff.max.ms": "7"}).client()
        assert client["reconnect.backoff.max.ms"] == "7"

    def test_every_key_has_one_meaning(self) -> None:
        assert not TUNING_KEYS & OWNED_KEYS
        assert not CONNECTION_KEYS & (TUNING_KEYS | OWNED_KEYS)


class TestSettingsThatAreNotKnown:
    """No connection has any: every task makes a client of librdkafka, and few tasks check the other clients."""

    CODE = ("plugin.library.paths", "ssl.engine.location", "ssl.providers")
    """Settings by which librdkafka loads native code."""

    @pytest.mark.parametrize("key", [*CODE, "ssl.ca.pem", "sasl.oauthbearer.x", "ssl.crl.location", "new.in.3"])
    def test_each_is_refused_by_name(self, key: str) -> None:
        for made in (KafkaConnection, lambda settings: KafkaConnection.read(settings, "Kafka connection")):
            with pytest.raises(
                InvalidInput, match=rf"^Kafka connection, settings '{re.escape(key)}': "
            ) as refused:
                made({**SERVERS, key: "s3cret"})
            assert "s3cret" not in str(refused.value)

    def test_all_of_them_are_told_at_once(self) -> None:
        with pytest.raises(InvalidInput, match=r"x, settings 'ssl\.ca\.pem', 'plugin\.x': found no setting with"):
            KafkaConnection.read({**SERVERS, "ssl.ca.pem": "x", "plugin.x": "y"}, "x")


class TestFilesThatAreNamed:
    LOCATIONS = ("ssl.ca.location", "ssl.certificate.location", "ssl.key.location", "https.ca.location")

    @pytest.mark.parametrize("key", LOCATIONS)
    def test_every_one_has_to_be_there(self, tmp_path: Path, key: str) -> None:
        with pytest.raises(InvalidInput) as refused:
            KafkaConnection.read({**SERVERS, key: f"{tmp_path}/absent.pem"}, "Airflow connection 'x'")
        assert str(refused.value) == (
            f"Airflow connection 'x', {key}: found {tmp_path}/absent.pem: No such file or directory; expected a "
            "file that can be read here. Mount it at this path wherever tasks and Spark's drivers run, or correct "
            "the path."
        )

    def test_one_that_is_of_no_use_is_not_looked_for(self) -> None:
        with pytest.raises(
            InvalidInput, match=r"x, settings 'ssl\.crl\.location': found no setting with the same"
        ):
            KafkaConnection.read({**SERVERS, "ssl.crl.location": "/absent.pem"}, "x")

    def test_a_directory_is_no_file(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidInput, match="Is a directory"):
            KafkaConnection.read({**SERVERS, "ssl.ca.location": str(tmp_path)}, "x")

    def test_one_that_is_there_is_no_trouble(self, tmp_path: Path) -> None:
        (tmp_path / "ca.pem").touch()
        settings = {**SERVERS, "ssl.ca.location": f"{tmp_path}/ca.pem", "ssl.key.location": ""}
        assert KafkaConnection.read(settings, "x").config == settings


JAVA = {
    **SERVERS,
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": 'org.apache.kafka.….PlainLoginModule required username="u" password="s3cret";',
    "ssl.truststore.location": "/absent.jks",
    "ssl.truststore.password": "s3cret",
    "acks": "all",
}


class TestSettingsOfOtherClients:
    """All of them are reported at once, before any file is looked for. Values are not shown."""

    def told(self, settings: dict[str, str]) -> str:
        with pytest.raises(InvalidInput) as refused:
            KafkaConnection.read(settings, "--config x")
        assert "s3cret" not in str(refused.value)
        for words in (KafkaConnection.java, KafkaConnection.kafka_python):
            with pytest.raises(InvalidInput) as likewise:
                words(KafkaConnection(settings))
            assert str(likewise.value) == str(refused.value).replace("--config x", "Kafka connection", 1)
        return str(refused.value)

    def test_those_of_java_clients_have_other_names_here(self) -> None:
        assert self.told(JAVA) == (
            "--config x: found settings of Java clients (sasl.jaas.config, ssl.truststore.location, "
            "ssl.truststore.password); expected librdkafka's settings: sasl.username and sasl.password instead of "
            "sasl.jaas.config; ssl.ca.location (a PEM file) instead of ssl.truststore.location. `keytool "
            "-importkeystore` makes a PKCS#12 file from a JKS file, and `openssl pkcs12` makes PEM files from "
            "that. Replace these settings, and remove those without a replacement."
        )
        assert "ssl.certificate.location and ssl.key.location (PEM files) instead of ssl.keystore.location" in (
            self.told({**SERVERS, "security.protocol": "SSL", "ssl.keystore.location": "/absent.jks"})
        )
        assert "client.id and sasl.oauthbearer.client.secret instead of sasl.jaas.config" in (
            self.told({**OAUTH, "sasl.jaas.config": "s3cret"})
        )
        assert self.told({**SERVERS, "key.serializer": "org.apache.….StringSerializer"}) == (
            "--config x: found settings of Java clients (key.serializer); expected librdkafka's settings: none of "
            "these. Replace these settings, and remove those without a replacement."
        )

    def test_kerberos_is_told_as_the_mechanism_alone_is(self) -> None:
        kerberos = {
            **SERVERS,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanisms": "GSSAPI",
            "sasl.kerberos.service.name": "kafka",
            "sasl.kerberos.keytab": "/absent.keytab",
        }
        assert self.told(kerberos) == (
            "--config x: found sasl.mechanism 'GSSAPI' and settings of Kerberos (sasl.kerberos.service.name, "
            "sasl.kerberos.keytab); expected one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER as "
            "sasl.mechanism. Use a user with a password, a client of a token issuer, or a function that signs "
            "tokens (oauth_cb); others are not supported. Replace these settings, and remove those without a "
            "replacement."
        )
        assert "found sasl.mechanism 'GSSAPI' and settings of Java clients (sasl.jaas.config, " in (
            self.told({key: value for key, value in JAVA.items() if key != "sasl.mechanism"})
        )
        assert "expected settings of the mechanism that is used" in (
            self.told({**LOGIN, "sasl.kerberos.service.name": "kafka"})
        )

    def test_no_name_of_librdkafka_is_taken_for_one_of_theirs(self) -> None:
        assert not JAVA_NAMES.keys() & (CONNECTION_KEYS | TUNING_KEYS | OWNED_KEYS)


class TestEnvironment:
    def test_the_file_wins_over_the_text(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        (tmp_path / "config.json").write_text(json.dumps(LOGIN))
        monkeypatch.setenv(CONFIG_VARIABLE, json.dumps(SERVERS))
        assert KafkaConnection.from_environment().config == SERVERS
        monkeypatch.setenv(CONFIG_FILE_VARIABLE, str(tmp_path / "config.json"))
        assert KafkaConnection.from_environment().config == LOGIN

    @pytest.mark.parametrize(
        ("text", "found"),
        [
            ("", "found nothing"),
            ("{'bootstrap.servers': 's3cret'", "JSONDecodeError"),
            ("[]", "JSON of type list"),
        ],
    )
    def test_what_is_no_json_object_is_refused_without_quoting_it(
        self, monkeypatch: pytest.MonkeyPatch, text: str, found: str
    ) -> None:
        monkeypatch.delenv(CONFIG_FILE_VARIABLE, raising=False)
        monkeypatch.setenv(CONFIG_VARIABLE, text)
        with pytest.raises(InvalidInput, match=found) as refused:
            KafkaConnection.from_environment()
        assert "s3cret" not in str(refused.value)

    def test_a_missing_file_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(CONFIG_FILE_VARIABLE, "/does/not/exist.json")
        with pytest.raises(InvalidInput, match=r"/does/not/exist\.json: found No such file"):
            KafkaConnection.from_environment()


class TestJava:
    def test_plaintext_needs_nothing_else(self) -> None:
        assert KafkaConnection(SERVERS).java() == {**SERVERS, "security.protocol": "PLAINTEXT"}

    @pytest.mark.parametrize(
        ("mechanism", "module"),
        [
            ("PLAIN", "org.apache.kafka.common.security.plain.PlainLoginModule"),
            ("SCRAM-SHA-256", "org.apache.kafka.common.security.scram.ScramLoginModule"),
            ("SCRAM-SHA-512", "org.apache.kafka.common.security.scram.ScramLoginModule"),
        ],
    )
    @pytest.mark.parametrize("key", ["sasl.mechanism", "sasl.mechanisms"])
    def test_a_login_becomes_a_jaas_line(self, key: str, mechanism: str, module: str) -> None:
        config = {k: v for k, v in LOGIN.items() if k != "sasl.mechanism"}
        java = KafkaConnection({**config, "security.protocol": "sasl_plaintext", key: mechanism}).java()
        assert java == {
            **SERVERS,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": f'{module} required username="alice" password="s3cret";',
        }

    @pytest.mark.parametrize(
        ("password", "quoted"), [('a"b', r'"a\"b"'), ("a\\b", r'"a\\b"'), ("a;b'c $d", '"a;b\'c $d"')]
    )
    def test_passwords_are_quoted(self, password: str, quoted: str) -> None:
        java = KafkaConnection({**LOGIN, "sasl.password": password}).java()
        assert java["sasl.jaas.config"].endswith(f" password={quoted};")

    def test_client_credentials_become_a_login_of_their_own(self) -> None:
        shared = {**OAUTH, "https.ca.location": "/issuer.pem", "sasl.oauthbearer.extensions": "pool=1, cluster=2"}
        assert KafkaConnection(shared).java() == {
            **SERVERS,
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.login.callback.handler.class": (
                "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
            ),
            "sasl.oauthbearer.token.endpoint.url": "https://issuer/token",
            "sasl.jaas.config": (
                "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
                'clientId="us" clientSecret="s3cret" scope="kafka" extension_pool="1" extension_cluster="2" '
                'ssl.truststore.type="PEM" ssl.truststore.location="/issuer.pem";'
            ),
            "ssl.endpoint.identification.algorithm": "https",
        }

    @pytest.mark.parametrize("lacking", ["client.id", "client.secret", "token.endpoint.url", "method"])
    def test_client_credentials_have_to_be_whole(self, lacking: str) -> None:
        config = {key: value for key, value in OAUTH.items() if not key.endswith(lacking)}
        for settings in (KafkaConnection(config).java, KafkaConnection(config).kafka_python):
            with pytest.raises(InvalidInput, match=rf"sasl\.oauthbearer\.{lacking}") as refused:
                settings()
            assert "s3cret" not in str(refused.value)

    def test_pem_files_become_stores(self) -> None:
        config = {
            **SERVERS,
            "security.protocol": "SSL",
            "ssl.ca.location": "/ca.pem",
            "ssl.key.password": "s3cret",
        }
        config |= {"ssl.certificate.location": "/client.pem", "ssl.key.location": "/client.pem"}
        assert KafkaConnection(config).java() == {
            **SERVERS,
            "security.protocol": "SSL",
            "ssl.endpoint.identification.algorithm": "https",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": "/ca.pem",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": "/client.pem",
            "ssl.key.password": "s3cret",
        }

    def test_a_key_in_a_file_of_its_own_is_passed_as_text(self, tmp_path: Path) -> None:
        (tmp_path / "key.pem").write_text(PKCS8)
        (tmp_path / "cert.pem").write_text("-----BEGIN CERTIFICATE-----")
        java = KafkaConnection(_with_files(tmp_path)).java()
        assert (java["ssl.keystore.key"], java["ssl.keystore.certificate.chain"]) == (
            PKCS8,
            "-----BEGIN CERTIFICATE-----",
        )

    def test_a_key_that_java_cannot_read_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "key.pem").write_text("-----BEGIN RSA PRIVATE KEY-----")
        (tmp_path / "cert.pem").write_text("-----BEGIN CERTIFICATE-----")
        with pytest.raises(InvalidInput, match="openssl pkcs8 -topk8"):
            KafkaConnection(_with_files(tmp_path)).java()
        with pytest.raises(InvalidInput, match=r"absent\.pem: No such file"):
            KafkaConnection({**_with_files(tmp_path), "ssl.key.location": "/absent.pem"}).java()

    def test_host_names_are_checked_unless_switched_off(self) -> None:
        config = {**SERVERS, "security.protocol": "SSL", "ssl.endpoint.identification.algorithm": "none"}
        assert KafkaConnection(config).java()["ssl.endpoint.identification.algorithm"] == ""

    def test_tuning_of_librdkafka_is_dropped(self) -> None:
        config = {**SERVERS, **dict.fromkeys(TUNING_KEYS | OWNED_KEYS, "1")}
        assert KafkaConnection(config).java() == {**SERVERS, "security.protocol": "PLAINTEXT"}

    @pytest.mark.parametrize(
        ("change", "reason"),
        [
            ({"sasl.mechanism": "GSSAPI"}, "found 'GSSAPI'"),
            ({"security.protocol": "TLS"}, "found 'TLS'"),
            ({"enable.ssl.certificate.verification": "false"}, r"ssl\.ca\.location"),
        ],
    )
    def test_what_java_cannot_do_is_refused(self, change: dict[str, str], reason: str) -> None:
        with pytest.raises(InvalidInput, match=reason):
            KafkaConnection({**LOGIN, **change}).java()


class TestKafkaPython:
    def test_a_login_over_ssl(self) -> None:
        config = {**LOGIN, "ssl.ca.location": "/ca.pem", "linger.ms": "5", "group.id": "theirs"}
        assert KafkaConnection(config).kafka_python() == {
            "bootstrap_servers": ["a:9092", "b:9092"],
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "PLAIN",
            "sasl_plain_username": "alice",
            "sasl_plain_password": "s3cret",
            "ssl_check_hostname": True,
            "ssl_cafile": "/ca.pem",
        }

    def test_client_credentials_give_tokens_by_a_provider(self) -> None:
        settings = KafkaConnection(OAUTH).kafka_python()
        assert settings["sasl_mechanism"] == "OAUTHBEARER"
        assert "s3cret" not in repr(settings)


def _with_files(directory: Path) -> dict[str, str]:
    files = {"ssl.certificate.location": "cert.pem", "ssl.key.location": "key.pem"}
    return {**SERVERS, "security.protocol": "SSL", **{key: str(directory / name) for key, name in files.items()}}
