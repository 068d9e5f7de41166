"""Bounded calls of confluent-kafka's AdminClient; every answer is a value or a typed error."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, wait
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from kafka_rescale.core.errors import Outage
from kafka_rescale.kafka.connection import KafkaConnection
from kafka_rescale.kafka.failures import TRANSIENT, UNKNOWN_OUTCOME, ConnectionTrouble, typed
from kafka_rescale.kafka.waiting import poll_until

REQUEST_SECONDS = 15.0
SETTLE_SECONDS = 30.0
"""How long metadata may be stale and coordinators may be moving."""

ATTEMPTS = 3

K = TypeVar("K")
V = TypeVar("V")


class AdminCalls:
    """What the parts of ``ClusterAdmin`` share.

    :param connection: how to reach the cluster; the client is started at the first call.
    """

    def __init__(self, connection: KafkaConnection) -> None:
        self.connection = connection
        self._trouble = ConnectionTrouble(connection.servers)
        self._started: AdminClient | None = None

    @property
    def _client(self) -> AdminClient:
        if self._started is None:
            try:
                self._started = AdminClient(self.connection.client(error_cb=self._trouble))
            except (KafkaException, TypeError, ValueError) as error:
                raise self._trouble.unusable(error) from None
        return self._started

    def _once(self, futures: Mapping[K, Future[V]]) -> dict[K, V | KafkaError]:
        """Return every answer; one that doesn't come in time is a ``KafkaError`` of unknown outcome."""
        self._trouble.forget()
        deadline = time.monotonic() + REQUEST_SECONDS + 5
        # In slices, to hear in time that the credentials are refused: the call itself would only time out.
        while wait(futures.values(), timeout=0.2).not_done and time.monotonic() < deadline:
            self._client.poll(0)
            self._trouble.raise_if_refused()
        self._client.poll(0)
        return {key: _answer(future) for key, future in futures.items()}

    def _settled(
        self, ask: Callable[[], Mapping[K, Future[V]]], what: str, again: Collection[int] = ()
    ) -> dict[K, V | KafkaError]:
        """Ask, for idempotent requests, until no answer says to ask again.

        :param again: codes that are transient here, because the thing is known to exist.
        :raises Outage: it still does after ``SETTLE_SECONDS``.
        """
        last: dict[K, V | KafkaError] = {}

        def settled() -> bool:
            last.clear()
            last.update(self._once(ask()))
            return not any(has_code(answer, *TRANSIENT, *again) for answer in last.values())

        def outage() -> Outage:
            error = next(a for a in last.values() if has_code(a, *TRANSIENT, *again))
            return Outage(what, found=str(error), expected="an answer in time", remedy="Run again.")

        poll_until(settled, seconds=SETTLE_SECONDS, otherwise=outage)
        return dict(last)

    def _read(
        self, ask: Callable[[], Mapping[K, Future[V]]], what: str, again: Collection[int] = ()
    ) -> dict[K, V]:
        """Like ``_settled``, where every error is one to raise."""
        return {
            key: value_of(answer, f"{what} {_name(key)}")
            for key, answer in self._settled(ask, what, again).items()
        }


def value_of(answer: V | KafkaError, what: str) -> V:
    """Return the answer.

    :raises RescaleError: the answer is an error.
    """
    if isinstance(answer, KafkaError):
        raise typed(answer, what)
    return answer


def is_unknown(answer: object) -> bool:
    """Whether a request may or may not have been carried out."""
    return isinstance(answer, KafkaError) and (answer.code() in UNKNOWN_OUTCOME or answer.code() in TRANSIENT)


def has_code(answer: object, *codes: int) -> bool:
    """Whether the answer is an error with one of these codes."""
    return isinstance(answer, KafkaError) and answer.code() in codes


def _name(key: object) -> str:
    if isinstance(key, TopicPartition):
        return f"{key.topic}-{key.partition}"
    return repr(getattr(key, "name", key))


def _answer(future: Future[Any]) -> Any:
    try:
        return future.result(timeout=0)
    except KafkaException as error:
        return error.args[0]
    except FutureTimeout:
        return KafkaError(KafkaError._TIMED_OUT)
