"""Credentials that are refused for a moment are waited out, and are not the reason of a later failure.

An issuer of tokens that does not answer once is enough for such a refusal. librdkafka tells it at the next poll.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from itertools import cycle
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from kafka_rescale.core.errors import ClusterOutage, Fenced, NotLetIn
from kafka_rescale.kafka.admin.calls import AdminCalls
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.reading import log_reader
from kafka_rescale.kafka.reading.log_reader import LatestValues
from kafka_rescale.kafka.writing.producer import UnitProducer
from kafka_rescale.kafka.writing.transactional_writer import TransactionalWriter

REFUSED = KafkaError(KafkaError._AUTHENTICATION, "the issuer of tokens did not answer")
CONNECTION = KafkaConnection({"bootstrap.servers": "127.0.0.1:9"})


def answered(value: object = None) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(value)
    return future


class Told:
    """A client that tells the refusal at some of its polls."""

    def __init__(self, hear: Callable[[KafkaError], None], at: Iterator[bool]) -> None:
        self._hear, self._at = hear, at

    def poll(self, _: float = 0) -> None:
        if next(self._at, False):
            self._hear(REFUSED)


def test_a_request_that_is_answered_has_not_failed_for_an_old_refusal() -> None:
    calls = AdminCalls(CONNECTION)
    calls._started = Told(calls._trouble, iter([True]))  # type: ignore[assignment]
    assert calls._once(lambda *_: {"": answered("offsets")}) == {"": "offsets"}


def test_a_request_that_is_answered_has_not_failed_for_a_refusal_of_another_connection() -> None:
    calls = AdminCalls(CONNECTION)
    calls._started = Told(calls._trouble, iter([False, True]))  # type: ignore[assignment]
    assert calls._once(lambda *_: {"": answered("offsets")}) == {"": "offsets"}


def test_a_request_that_meets_a_refusal_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Future[Any]] = [failed(KafkaError._TIMED_OUT), answered("offsets")]
    assert calls_that_are_refused(monkeypatch)._read(lambda *_: {"": asked.pop(0)}, "offsets") == {"": "offsets"}


def test_a_request_that_is_refused_to_the_end_fails_for_that_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = calls_that_are_refused(monkeypatch)
    with pytest.raises(NotLetIn, match="did not answer"):
        calls._read(lambda *_: {"": failed(KafkaError._TIMED_OUT)}, "offsets", seconds=0)


def calls_that_are_refused(monkeypatch: pytest.MonkeyPatch) -> AdminCalls:
    """Requests whose clients tell of a refusal at each poll."""
    calls = AdminCalls(CONNECTION)
    monkeypatch.setattr(AdminCalls, "_client", Told(calls._trouble, cycle([True])))
    return calls


def failed(code: int) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_exception(KafkaException(KafkaError(code)))
    return future


def test_a_client_that_another_thread_replaces_is_still_there_for_this_one() -> None:
    class Replaced(AdminCalls):
        looks = 0

        @property
        def _started(self) -> Any:
            """Return the client once; then another thread wants a new client."""
            self.looks += 1
            return "client" if self.looks == 1 else None

        @_started.setter
        def _started(self, _: object) -> None:
            """Nobody looks at what is set."""

    assert Replaced(CONNECTION)._client == "client"


def writer_with(failure: KafkaError, at: list[bool]) -> TransactionalWriter:
    """A writer whose next commit fails, and whose producer tells the refusal at some polls."""
    writer = TransactionalWriter.__new__(TransactionalWriter)
    writer._what, writer._ended = "control topic", None
    writer._trouble = AdminCalls(CONNECTION)._trouble

    class Failing(Told):
        def begin_transaction(self) -> None:
            """Begin."""

        def commit_transaction(self, _: float) -> None:
            raise KafkaException(failure)

    writer._producer = Failing(writer._trouble, iter(at))  # type: ignore[assignment]
    return writer


@pytest.mark.parametrize(
    ("at", "expected"), [([True, False], ClusterOutage), ([False, True], NotLetIn)], ids=["old", "new"]
)
def test_a_write_fails_for_an_outage_and_not_for_an_old_refusal(at: list[bool], expected: type[Exception]) -> None:
    with pytest.raises(ClusterOutage) as raised:
        writer_with(KafkaError(KafkaError._TRANSPORT), at).write("control", {})
    assert type(raised.value) is expected


def test_a_writer_that_is_fenced_says_so_whatever_it_has_heard_of_credentials() -> None:
    with pytest.raises(Fenced):
        writer_with(KafkaError(KafkaError._FENCED), [False, True]).write("control", {})


class Record:
    """A record at some offset."""

    def __init__(self, offset: int) -> None:
        self._offset = offset

    def offset(self) -> int:
        return self._offset

    def timestamp(self) -> tuple[int, int]:
        return 1, 1_000 + self._offset

    def key(self) -> bytes:
        return f"a/{self._offset}".encode()

    def value(self) -> bytes:
        return b"there"

    def error(self) -> None:
        return None


def test_a_reading_waits_through_silence_in_spite_of_an_old_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    refused, silent = object(), None
    # The first reading, then what the idle client has heard of, then silence, and the rest.
    script: list[object] = [Record(0), Record(1), refused, silent, Record(1), Record(2)]

    class Consumer:
        def __init__(self, settings: dict[str, Any]) -> None:
            self._hear = settings["error_cb"]

        def assign(self, _: object) -> None:
            """Begin to read."""

        unassign = close = lambda self: None

        def poll(self, _: float) -> object:
            if (found := script.pop(0)) is not refused:
                return found
            self._hear(REFUSED)
            return None

    monkeypatch.setattr(log_reader, "Consumer", Consumer)
    values = LatestValues(CONNECTION, "control", "a/")
    assert values.up_to(2, seconds=30) == {"a/0": b"there", "a/1": b"there"}
    assert values.up_to(3, seconds=30).keys() == {"a/0", "a/1", "a/2"}
    assert not script


def test_a_copy_fails_for_an_outage_and_not_for_a_refusal_from_before_its_last_commit() -> None:
    failures: list[KafkaError] = []

    class Copying(Told):
        def begin_transaction(self) -> None:
            """Begin."""

        def flush(self, _: float) -> int:
            self.poll()
            return 0

        def send_offsets_to_transaction(self, *_: object) -> None:
            """Add the positions."""

        def commit_transaction(self, _: float) -> None:
            if failures:
                raise KafkaException(failures[0])

    producer = UnitProducer.__new__(UnitProducer)
    producer._what, producer._call_seconds = "copy of totals-0", 10.0
    producer._open = producer._is_abandoned = False
    producer._trouble = AdminCalls(CONNECTION)._trouble
    producer._producer = Copying(producer._trouble, iter([True]))  # type: ignore[assignment]
    group: Any = SimpleNamespace(consumer_group_metadata=lambda: "group")
    producer.commit([], group)
    failures.append(KafkaError(KafkaError._TRANSPORT))
    with pytest.raises(ClusterOutage):
        producer.commit([], group)
