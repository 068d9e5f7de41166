"""The class of each error code. Errors of the classes in ``OUTAGES`` may pass; the other classes are final."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import KafkaError

from kafka_rescale.kafka.client.broker_errors import BROKER_ERRORS
from kafka_rescale.kafka.client.error_class import ErrorClass
from kafka_rescale.kafka.client.local_errors import LOCAL_ERRORS

REASONS: Mapping[str, tuple[ErrorClass, str]] = {
    name: (kind, reason)
    for table in (LOCAL_ERRORS, BROKER_ERRORS)
    for kind, reasons in table.items()
    for name, reason in reasons.items()
}
"""Class and reason by the name of the code."""

OUTAGES = frozenset({ErrorClass.NOT_NOW, ErrorClass.NO_ANSWER, ErrorClass.CREDENTIALS})


def class_of(error: KafkaError) -> ErrorClass:
    """Return the class of an error.

    A transactional call may mark an error as one after which the call can be repeated. If the code alone says that
    a thing is absent, that brokers refuse it, or that it is a mistake, such an error counts as an outage instead.
    """
    found = class_of_code(error.code(), repeatable=error.retriable())
    doubtful = {ErrorClass.ABSENT, ErrorClass.REFUSED, ErrorClass.MISTAKE}
    return ErrorClass.NOT_NOW if error.retriable() and found in doubtful else found


def class_of_code(code: int, *, repeatable: bool) -> ErrorClass:
    """Return the class of a code.

    :param code: negative codes are the client library's, positive codes the Kafka protocol's.
    :param repeatable: whether a client says that the request may be repeated. This only counts for a code that is
        newer than the table.
    """
    if (known := REASONS.get(KafkaError(code).name())) is not None:
        return known[0]
    # A code of the client library itself does not mean that brokers refuse the request.
    if code < 0:
        return ErrorClass.NO_ANSWER
    return ErrorClass.NOT_NOW if repeatable else ErrorClass.REFUSED


def is_outage(error: KafkaError) -> bool:
    """Return whether the same request may succeed when the brokers are well again."""
    return class_of(error) in OUTAGES


def may_pass(error: KafkaError) -> bool:
    """Return whether a consumer of a topic that is known to exist may go on by itself.

    This is so after an outage. It is also so if a broker doesn't know the topic, which may have just started.
    """
    return class_of(error) in OUTAGES | {ErrorClass.ABSENT}
