"""A transactional producer's first call, which fences all older producers, and the errors of its calls."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from kafka_rescale.core.errors import ClusterOutage, RescaleError
from kafka_rescale.kafka.client.failures import ConnectionTrouble, fatal_error, to_error

ABORT_SECONDS = 20.0


def begin_transactions(
    settings: Mapping[str, Any],
    what: str,
    trouble: ConnectionTrouble,
    *,
    first_seconds: float,
    longest_seconds: float,
    seconds: float,
) -> Producer:
    """Return a producer that has fenced all others.

    If the coordinator is down, a producer that waits for it may miss that another broker has taken over. A new
    producer asks for the coordinator anew.

    :param settings: the settings of the producer, with ``trouble`` as ``error_cb``.
    :param what: what the producer is used for, for errors.
    :param first_seconds: how long the first producer has to find its coordinator. Each later one has twice the
        time.
    :param longest_seconds: the most that a producer has.
    :param seconds: how long to try.
    :raises ClusterOutage: the transaction coordinator doesn't answer.
    """
    deadline, patience = time.monotonic() + seconds, first_seconds
    while True:
        trouble.forget()
        try:
            producer = Producer(settings)
        except KafkaException as error:
            raise to_error(error.args[0], what) from None
        try:
            producer.init_transactions(patience)
        except KafkaException as error:
            reason = reason_of(producer, error, what, trouble)
            if not isinstance(reason, ClusterOutage) or time.monotonic() > deadline:
                raise reason from None
            patience = max(first_seconds, min(2 * patience, longest_seconds, deadline - time.monotonic()))
        else:
            return producer


def reason_of(producer: Producer, error: KafkaException, what: str, trouble: ConnectionTrouble) -> RescaleError:
    """Return the error to raise for a call of a producer that has failed.

    :param what: what the producer is used for.
    """
    # Serves the error callback; raises the fatal error again if there was one.
    with contextlib.suppress(KafkaException):
        producer.poll(0)
    reason: KafkaError = error.args[0]
    if reason.code() == KafkaError._FATAL:
        # produce() only says that there was a fatal error.
        reason = fatal_error(producer, ABORT_SECONDS) or reason
    return trouble.reason_of(to_error(reason, what))
