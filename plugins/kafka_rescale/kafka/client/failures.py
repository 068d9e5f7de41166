"""From librdkafka's error codes to errors that a person can act on."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

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
from kafka_rescale.kafka.client.error_classes import OUTAGES, class_of
from kafka_rescale.kafka.client.library_logs import without_answer

LOG_TRUNCATION = "log truncation detected"
"""librdkafka's text if it finds a truncated log (KIP-320). The code alone does not tell this: if no reset is
allowed, the code only says that there was no reset."""


def named_reason(error: KafkaError) -> str:
    """Return the name and the text of an error, for people."""
    return f"{error.name()} ({without_answer(error.str())})"


def to_error(error: KafkaError, what: str) -> RescaleError:
    """Return the error to raise for an answer of a broker or of librdkafka.

    :param what: the thing concerned, for example ``topic 'orders'``.
    """
    kind, found = class_of(error), named_reason(error)
    if kind is ErrorClass.CREDENTIALS:
        return not_let_in(what, found)
    if kind in OUTAGES:
        return ClusterOutage(
            what, found=found, expected="an answer of the brokers in time", remedy="Run again when they are up."
        )
    if kind is ErrorClass.FORBIDDEN:
        return InvalidInput(
            what,
            found=found,
            expected="permission for the user of the Kafka connection",
            remedy="Grant the ACLs that the documentation lists, then run again.",
        )
    if kind is ErrorClass.FENCED:
        return Fenced(
            what,
            found=found,
            expected="to be the newest attempt",
            remedy="Nothing to do here: the newer attempt goes on.",
        )
    if kind is ErrorClass.GROUP_IN_USE:
        return UnsafeState(
            what,
            found=f"live members ({error.name()})",
            expected="a group without members",
            remedy="Stop every instance that uses this group, then run again.",
        )
    return _refused(kind, what, found)


def _refused(kind: ErrorClass, what: str, found: str) -> UnsafeState:
    if kind in {ErrorClass.MISTAKE, ErrorClass.EVENT}:
        return UnsafeState(
            what,
            found=found,
            expected="a request that the client library and the brokers understand",
            remedy="Report this: it is a mistake of Kafka Rescale, or of a setting of the connection.",
        )
    return UnsafeState(
        what,
        found=found,
        expected="the brokers to accept the request",
        remedy="Mend what the brokers object to, then run again.",
    )


def is_about_size(error: RescaleError) -> bool:
    """Return whether brokers have refused a batch because of its size."""
    return error.found.startswith(("MSG_SIZE_TOO_LARGE", "RECORD_LIST_TOO_LARGE"))


def not_let_in(what: str, found: str) -> NotLetIn:
    """Return the error for a client that brokers don't let in.

    :param what: the thing that was asked for.
    :param found: the brokers' reason.
    """
    return NotLetIn(
        what,
        found=found,
        expected="credentials and certificates that the brokers accept",
        remedy="Correct sasl.mechanism, sasl.username, sasl.password or ssl.* in the connection. If it "
        "has tokens, look at their issuer.",
    )


def fatal_error(producer: Producer, seconds: float) -> KafkaError | None:
    """Abort a producer's transaction. If that fails, return the error; None if it does not fail.

    After a fatal error, every later call on transactions reports it again. So if the producer has had a fatal
    error, this returns it. Callbacks don't get a fatal error: the library raises it from the call that serves the
    callbacks.

    :param seconds: how long the abort may take.
    """
    try:
        producer.abort_transaction(seconds)
    except KafkaException as error:
        failure: KafkaError = error.args[0]
        return failure
    return None


class Rewound(Outage):
    """The transaction was aborted. The unit must be read again from its committed position.

    :param reason: why it was aborted. It is the error to raise if this happens again and again.
    """

    def __init__(self, reason: RescaleError) -> None:
        super().__init__(reason.what, found=reason.found, expected=reason.expected, remedy=reason.remedy)
        self.reason = reason


class ConnectionTrouble:
    """An ``error_cb`` that remembers why there is no connection.

    librdkafka retries wrong credentials for ever, and the call itself only reports a timeout. So a refusal is only
    the reason that a call gives which has waited in vain.

    :param servers: ``bootstrap.servers``, for the messages.
    """

    def __init__(self, servers: str) -> None:
        self._servers = servers
        self._refusal: KafkaError | None = None
        self._last: KafkaError | None = None

    def __call__(self, error: KafkaError) -> None:
        """Note an error; librdkafka calls this from within ``poll``."""
        if class_of(error) is ErrorClass.CREDENTIALS:
            self._refusal = error
        elif error.code() != KafkaError._ALL_BROKERS_DOWN:
            self._last = error

    def forget(self) -> None:
        """Forget earlier errors, so that they are not taken for the reason of a later failure."""
        self._refusal = self._last = None

    def forget_up_to_now(self, client: Any) -> None:
        """Hear what a client has to tell from before, and forget it: it is not the reason of what comes.

        librdkafka tells an event only at the next poll, which may come days after it.

        :param client: a client of confluent-kafka that has this object as its ``error_cb``.
        """
        # A fatal error is raised again by the next call.
        with suppress(KafkaException):
            client.poll(0)
        self.forget()

    @property
    def refusal(self) -> NotLetIn | None:
        """The error for a broker that answered, but refused this client, with its reason; None if none did."""
        if self._refusal is None:
            return None
        return not_let_in(f"Kafka connection to {self._servers}", without_answer(self._refusal.str()))

    def reason_of(self, failure: RescaleError) -> RescaleError:
        """Return why a call has failed: the refusal, if it was an outage, and brokers have refused this client."""
        return (self.refusal or failure) if isinstance(failure, ClusterOutage) else failure

    def outage(self) -> ClusterOutage:
        """Return the error for a cluster that doesn't answer."""
        return ClusterOutage(
            f"Kafka connection to {self._servers}",
            found=without_answer(self._last.str()) if self._last else "no answer",
            expected="a broker that answers",
            remedy="Check bootstrap.servers and security.protocol of the connection, the network and the brokers.",
        )

    def unusable(self, error: Exception) -> InvalidInput:
        """Return the error for settings that librdkafka itself refuses."""
        reason = (
            without_answer(error.args[0].str())
            if error.args and isinstance(error.args[0], KafkaError)
            else type(error).__name__
        )
        return InvalidInput(
            f"Kafka connection to {self._servers}",
            found=reason,
            expected="settings that librdkafka knows",
            remedy="Correct the setting in the connection.",
        )
