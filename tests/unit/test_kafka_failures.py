"""Error codes of brokers and librdkafka, and what a person is told."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError
from kafka_rescale.core.errors import Fenced, InvalidInput, Outage, RescaleError, UnsafeState
from kafka_rescale.kafka.failures import ConnectionTrouble, typed
from kafka_rescale.kafka.waiting import poll_until


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (KafkaError._TIMED_OUT, Outage),
        (KafkaError._ALL_BROKERS_DOWN, Outage),
        (KafkaError.UNKNOWN, Outage),
        (KafkaError.COORDINATOR_LOAD_IN_PROGRESS, Outage),
        (KafkaError._FENCED, Fenced),
        (KafkaError.INVALID_PRODUCER_EPOCH, Fenced),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, InvalidInput),
        (KafkaError.NON_EMPTY_GROUP, UnsafeState),
        (KafkaError.INVALID_CONFIG, UnsafeState),
        (KafkaError.POLICY_VIOLATION, UnsafeState),
    ],
)
def test_every_code_has_a_kind_that_decides_about_a_retry(code: int, kind: type[RescaleError]) -> None:
    error = typed(KafkaError(code), "topic 'orders'")
    assert type(error) is kind
    assert str(error).startswith("topic 'orders': found ")


class TestConnectionTrouble:
    def test_refused_credentials_are_told_from_an_outage(self) -> None:
        trouble = ConnectionTrouble("a:9092")
        trouble(KafkaError(KafkaError._TRANSPORT, "connection refused"))
        trouble(KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down"))
        trouble.raise_if_refused()
        assert "found connection refused" in str(trouble.outage())

        trouble(KafkaError(KafkaError._AUTHENTICATION, "Invalid username or password"))
        with pytest.raises(InvalidInput, match=r"a:9092: found Invalid username or password.*sasl\.password"):
            trouble.raise_if_refused()

    def test_a_refusal_that_is_over_is_forgotten(self) -> None:
        trouble = ConnectionTrouble("a:9092")
        trouble(KafkaError(KafkaError._AUTHENTICATION, "no"))
        trouble.forget()
        trouble.raise_if_refused()
        assert "found no answer" in str(trouble.outage())

    def test_a_setting_that_librdkafka_does_not_know_is_named_but_never_its_value(self) -> None:
        error = ConnectionTrouble("a:9092").unusable(ValueError("sasl.password=s3cret"))
        assert "s3cret" not in str(error)


class TestWaiting:
    def test_the_first_true_value_is_returned(self) -> None:
        answers = iter([0, "", "found"])
        assert poll_until(lambda: next(answers), seconds=60, otherwise=_outage) == "found"

    def test_it_is_asked_at_least_once_and_not_for_ever(self) -> None:
        asked: list[int] = []
        with pytest.raises(Outage):
            poll_until(lambda: asked.append(1), seconds=0, otherwise=_outage)
        assert asked == [1]


def _outage() -> Outage:
    return Outage("x", found="nothing", expected="something", remedy="wait")
