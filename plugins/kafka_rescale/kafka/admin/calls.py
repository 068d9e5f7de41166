"""Bounded calls of confluent-kafka's AdminClient; every answer is a value or a typed error."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, wait
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from kafka_rescale.core.errors import ClusterOutage
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.error_class import ErrorClass
from kafka_rescale.kafka.client.error_classes import class_of, is_outage
from kafka_rescale.kafka.client.failures import ConnectionTrouble, named_reason, to_error
from kafka_rescale.kafka.client.waiting import poll_until

FIRST_SECONDS, REQUEST_SECONDS = 2.0, 15.0
"""How long a client waits for an answer before a new client asks. The first client waits for ``FIRST_SECONDS``.
Each client after a client without an answer waits twice as long, up to ``REQUEST_SECONDS``."""

SETTLE_SECONDS = 30.0
"""How long metadata may be stale, coordinators may be moving, and brokers may be away."""

CHANGE_SECONDS = 60.0
"""How long a change of topics is tried. Brokers forward the change to the active controller. If that controller
is frozen, brokers wait for its answer for 30 s (``controller.socket.timeout.ms``). They do so although another
controller leads the quorum by then."""

ATTEMPTS = 3

K = TypeVar("K")
V = TypeVar("V")
Ask = Callable[[AdminClient, float], Mapping[K, Future[V]]]
"""Sends a request by a client. The number is how many seconds the request may take."""


class AdminCalls:
    """What the parts of ``ClusterAdmin`` share.

    librdkafka sends most requests to the broker that was named to it as the controller. Under KRaft, this may be
    any broker. If it dies or freezes, the client waits for it ("waiting for controller"), even if all other
    brokers live. A new client asks all bootstrap servers anew. So a client that has no answer in time is replaced.

    :param connection: how to reach the cluster; the client is started at the first call.
    """

    def __init__(self, connection: KafkaConnection) -> None:
        self.connection = connection
        self._trouble = ConnectionTrouble(connection.servers)
        self._started: AdminClient | None = None
        self._patience = FIRST_SECONDS

    @property
    def _client(self) -> AdminClient:
        # Another thread may want a new client meanwhile.
        client = self._started
        if client is None:
            try:
                client = self._started = AdminClient(self.connection.client(error_cb=self._trouble))
            except (KafkaException, TypeError, ValueError) as error:
                raise self._trouble.unusable(error) from None
        return client

    def _once(self, ask: Ask[K, V], limit: float = REQUEST_SECONDS) -> dict[K, V | KafkaError]:
        """Return every answer. A ``KafkaError`` of unknown outcome stands for an answer that doesn't come in time.

        :param limit: the most seconds to wait; a limit below ``FIRST_SECONDS`` counts as ``FIRST_SECONDS``. The
            wait is shorter if a new client is to ask before that; see ``FIRST_SECONDS``.
        """
        # Keep this reference to the end: the futures of a client that is garbage-collected never finish.
        client, seconds = self._client, min(self._patience, max(limit, FIRST_SECONDS))
        self._trouble.forget_up_to_now(client)
        began = time.monotonic()
        futures = ask(client, seconds)
        # Wait in slices, to hear whether the credentials are refused: the call itself only times out.
        while wait(futures.values(), timeout=0.2).not_done and time.monotonic() < began + seconds + 1:
            client.poll(0)
        client.poll(0)
        answers = {key: _answer(future) for key, future in futures.items()}
        if any(map(_is_silence, answers.values())):
            self._replace(client)
        else:
            # Give the next request twice the time that this request took. A request for thousands of partitions
            # always takes long. With less time, its first client would always be replaced.
            self._patience = min(REQUEST_SECONDS, max(FIRST_SECONDS, 2 * (time.monotonic() - began)))
        return answers

    def _ask_another(self) -> None:
        """Let the next request use a new client, because the answers of the present client are of no use."""
        self._started = None

    def _replace(self, client: AdminClient) -> None:
        """Let the next request use a new client, and give it more time."""
        self._patience = min(REQUEST_SECONDS, 2 * self._patience)
        if self._started is client:
            self._started = None

    def _settled(
        self, ask: Ask[K, V], what: str, again: Collection[int] = (), seconds: float = SETTLE_SECONDS
    ) -> dict[K, V | KafkaError]:
        """Ask, for idempotent requests, until no answer says to ask again.

        :param again: codes that are transient here, because the thing is known to exist.
        :param seconds: how long to ask.
        :raises ClusterOutage: the time is over, and an answer still says to ask again.
        """
        last: dict[K, V | KafkaError] = {}
        deadline = time.monotonic() + seconds

        def passes(answer: object) -> bool:
            return is_unknown(answer) or has_code(answer, *again)

        def settled() -> bool:
            last.clear()
            last.update(self._once(ask, deadline - time.monotonic()))
            return not any(map(passes, last.values()))

        def outage() -> ClusterOutage:
            if (refusal := self._trouble.refusal) is not None:
                return refusal
            error = next(answer for answer in last.values() if passes(answer))
            return ClusterOutage(
                what, found=named_reason(error), expected="an answer in time", remedy="Run again."
            )

        poll_until(settled, seconds=seconds, otherwise=outage)
        return dict(last)

    def _read(
        self, ask: Ask[K, V], what: str, again: Collection[int] = (), seconds: float = SETTLE_SECONDS
    ) -> dict[K, V]:
        """Like ``_settled``, but raise every error."""
        return {
            key: value_of(answer, f"{what} {_name(key)}".rstrip())
            for key, answer in self._settled(ask, what, again, seconds).items()
        }


def value_of(answer: V | KafkaError, what: str) -> V:
    """Return the answer.

    :raises RescaleError: the answer is an error.
    """
    if isinstance(answer, KafkaError):
        raise to_error(answer, what)
    return answer


def is_unknown(answer: object) -> bool:
    """Whether an answer is an outage.

    Either the request was not carried out, or it is unknown whether it was.
    """
    return isinstance(answer, KafkaError) and is_outage(answer)


def lacks_brokers(answer: object) -> bool:
    """Whether too few brokers are up to place the replicas.

    A broker that shuts down in order gets no replicas until it is back.
    """
    return has_code(answer, KafkaError.INVALID_REPLICATION_FACTOR)


def has_code(answer: object, *codes: int) -> bool:
    """Whether the answer is an error with one of these codes."""
    return isinstance(answer, KafkaError) and answer.code() in codes


def _is_silence(answer: object) -> bool:
    """Whether the client got no answer at all. Only then can a new client help."""
    return isinstance(answer, KafkaError) and answer.code() < 0 and class_of(answer) is ErrorClass.NO_ANSWER


def finished(call: Callable[[], V]) -> Future[V]:
    """Make a call that waits for its answer itself. Return its outcome as a future, as other requests do."""
    future: Future[V] = Future()
    try:
        future.set_result(call())
    except KafkaException as error:
        future.set_exception(error)
    return future


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
