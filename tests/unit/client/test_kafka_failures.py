"""Error codes of brokers and librdkafka, and the messages for people."""

from __future__ import annotations

import re

import pytest
from confluent_kafka import KafkaError
from kafka_rescale.core.errors import (
    ClusterOutage,
    Fenced,
    InvalidInput,
    NotLetIn,
    Outage,
    RescaleError,
    UnsafeState,
)
from kafka_rescale.kafka.client.error_class import ErrorClass
from kafka_rescale.kafka.client.error_classes import OUTAGES, REASONS, class_of, class_of_code
from kafka_rescale.kafka.client.failures import ConnectionTrouble, to_error
from kafka_rescale.kafka.client.waiting import poll_until


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (KafkaError._TIMED_OUT, ClusterOutage),
        (KafkaError._ALL_BROKERS_DOWN, ClusterOutage),
        (KafkaError._DESTROY_BROKER, ClusterOutage),
        (KafkaError.UNKNOWN, ClusterOutage),
        (KafkaError.COORDINATOR_LOAD_IN_PROGRESS, ClusterOutage),
        (KafkaError.NOT_ENOUGH_REPLICAS, ClusterOutage),
        (KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND, ClusterOutage),
        (KafkaError.KAFKA_STORAGE_ERROR, ClusterOutage),
        (KafkaError.INVALID_TXN_STATE, ClusterOutage),
        # No sign of a newer attempt: brokers also forget an id that was not used for a week.
        (KafkaError.INVALID_PRODUCER_ID_MAPPING, ClusterOutage),
        (KafkaError._FENCED, Fenced),
        (KafkaError.INVALID_PRODUCER_EPOCH, Fenced),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, InvalidInput),
        (KafkaError._AUTHENTICATION, NotLetIn),
        (KafkaError.NON_EMPTY_GROUP, UnsafeState),
        (KafkaError._STATE, UnsafeState),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, UnsafeState),
        (KafkaError.INVALID_CONFIG, UnsafeState),
        (KafkaError.POLICY_VIOLATION, UnsafeState),
    ],
)
def test_every_code_has_a_kind_that_decides_about_a_retry(code: int, kind: type[RescaleError]) -> None:
    error = to_error(KafkaError(code), "topic 'orders'")
    assert type(error) is kind
    assert str(error).startswith("topic 'orders': found ")


CODES = {name: code for name, code in vars(KafkaError).items() if isinstance(code, int)}


def test_the_client_library_has_no_code_without_a_class_and_a_reason() -> None:
    assert len(CODES) > 150
    assert {name for name in CODES if name not in REASONS} == set()
    assert [name for name, (_, reason) in REASONS.items() if not reason] == []


@pytest.mark.parametrize("name", CODES)
def test_every_code_becomes_an_error_or_is_an_event(name: str) -> None:
    kind, error = REASONS[name][0], to_error(KafkaError(CODES[name]), "topic 'orders'")
    assert isinstance(error, ClusterOutage) == (kind in OUTAGES)
    assert isinstance(error, Fenced) == (kind is ErrorClass.FENCED)


def test_a_code_that_is_newer_than_the_table_is_an_outage_only_if_nobody_objects() -> None:
    assert class_of_code(-77, repeatable=False) is ErrorClass.NO_ANSWER
    assert class_of_code(999, repeatable=False) is ErrorClass.REFUSED
    assert class_of_code(999, repeatable=True) is ErrorClass.NOT_NOW


def test_a_transactional_call_that_may_be_repeated_is_an_outage() -> None:
    repeatable = KafkaError(KafkaError._STATE, "in progress", False, True)
    assert repeatable.retriable()
    assert class_of(repeatable) is ErrorClass.NOT_NOW


class TestConnectionTrouble:
    def test_refused_credentials_are_told_from_an_outage(self) -> None:
        trouble = ConnectionTrouble("a:9092")
        trouble(KafkaError(KafkaError._TRANSPORT, "connection refused"))
        trouble(KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down"))
        assert trouble.refusal is None
        assert "found connection refused" in str(trouble.outage())

        trouble(KafkaError(KafkaError._AUTHENTICATION, "Invalid username or password"))
        refusal = str(trouble.refusal)
        assert re.search(r"a:9092: found Invalid username or password.*sasl\.password", refusal), refusal

    def test_a_refusal_that_is_over_is_forgotten(self) -> None:
        trouble = ConnectionTrouble("a:9092")
        trouble(KafkaError(KafkaError._AUTHENTICATION, "no"))
        trouble.forget()
        assert trouble.refusal is None
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
