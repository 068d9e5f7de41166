"""A token issuer that quotes the request in its answer. Neither an error nor a log shows the answer."""

from __future__ import annotations

import base64
import logging
from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from kafka_rescale.core.errors import InvalidInput, RescaleError
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.failures import ConnectionTrouble, to_error
from kafka_rescale.kafka.client.library_logs import LIBRDKAFKA_LOG

from testbed.processes import wait_until
from tests.support.token_issuer import TokenIssuer, token_issuer

SECRET = "s3cret"
QUOTED = base64.b64encode(f"us:{SECRET}".encode()).decode()
TOLD = (SECRET, QUOTED, "no such client", "invalid_client")


@pytest.fixture(scope="module")
def issuer() -> Iterator[TokenIssuer]:
    with token_issuer({"us": SECRET}, quotes="no such client, but you sent ") as running:
        running.is_confused = True
        yield running


@pytest.fixture
def connection(issuer: TokenIssuer) -> KafkaConnection:
    plain = {"bootstrap.servers": "127.0.0.1:1", **issuer.settings("us"), "security.protocol": "SASL_PLAINTEXT"}
    return KafkaConnection(plain)


def test_the_check_and_the_log_tell_the_code_alone(
    connection: KafkaConnection, issuer: TokenIssuer, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(InvalidInput, match="found Failed to acquire SASL OAUTHBEARER token; what") as refused:
        connection.check()
    assert f'Failed to retrieve OIDC token from "{issuer.url}/token" (401); what the issuer says' in caplog.text
    for text in TOLD:
        assert text not in str(refused.value)
        assert text not in caplog.text


def test_requests_do_not_tell_it_either(connection: KafkaConnection, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(RescaleError, match="Failed to acquire SASL OAUTHBEARER token") as refused:
        ClusterAdmin(connection).cluster_id()
    for text in TOLD:
        assert text not in str(refused.value)
        assert text not in caplog.text


def test_nor_does_a_client_without_a_function_for_errors(
    connection: KafkaConnection, caplog: pytest.LogCaptureFixture
) -> None:
    """librdkafka then writes the error to its log."""
    client = AdminClient(connection.client())

    def heard() -> bool:
        client.poll(0.1)
        return "OIDC" in caplog.text

    wait_until(heard, timeout=30, what="the issuer's answer")
    client.poll(1)
    for text in TOLD:
        assert text not in caplog.text


ANSWER = 'Failed to acquire SASL OAUTHBEARER token: {"error": "x",\n "error_description": "Basic s3cret (1)"}'


@pytest.mark.parametrize("code", [KafkaError._AUTHENTICATION, KafkaError._TRANSPORT, KafkaError._STATE])
def test_no_error_quotes_it(code: int) -> None:
    error, trouble = KafkaError(code, ANSWER), ConnectionTrouble("a:9092")
    trouble(error)
    unusable = trouble.unusable(KafkaException(error))
    for each in (to_error(error, "topic 'orders'"), trouble.refusal or trouble.outage(), unusable):
        assert "OAUTHBEARER token" in str(each)
        assert "s3cret" not in str(each)


def test_other_lines_of_the_library_stay_as_they_are(caplog: pytest.LogCaptureFixture) -> None:
    LIBRDKAFKA_LOG.log(logging.ERROR, "%s [%s] %s", "FAIL", "rdkafka#producer-1", "50% of it: refused (401)")
    assert caplog.messages == ["FAIL [rdkafka#producer-1] 50% of it: refused (401)"]
