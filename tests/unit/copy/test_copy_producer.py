"""An error that the client library has lost, when a fatal error meets delivery reports, is still found."""

from __future__ import annotations

from threading import Event
from types import SimpleNamespace
from typing import Any, ClassVar
from unittest.mock import Mock

import pytest
from confluent_kafka import KafkaError, KafkaException
from kafka_rescale.core.errors import Fenced, Outage
from kafka_rescale.kafka.client.bounded_call import StuckCall
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.failures import Rewound
from kafka_rescale.kafka.writing import begin
from kafka_rescale.kafka.writing import producer as copy_producer
from kafka_rescale.kafka.writing.producer import UnitProducer


class Client:
    """A producer of the library. It reports a lost error only when it aborts."""

    refusal: KafkaError | None = None
    lost: KafkaError | None = None

    def __init__(self, _: dict[str, Any]) -> None:
        self.calls: list[str] = []

    def init_transactions(self, _: float) -> None: ...

    def begin_transaction(self) -> None:
        self.calls.append("begin")

    def abort_transaction(self, _: float) -> None:
        self.calls.append("abort")
        if self.lost is not None:
            raise KafkaException(self.lost)

    def produce(self, *_: Any, **__: Any) -> None:
        if self.refusal is not None:
            raise KafkaException(self.refusal)

    def poll(self, _: float) -> None:
        raise SystemError("<method 'poll' of 'cimpl.Producer' objects> returned NULL without setting an exception")


@pytest.fixture
def producer(monkeypatch: pytest.MonkeyPatch) -> UnitProducer:
    monkeypatch.setattr(begin, "Producer", Client)
    return UnitProducer(KafkaConnection({"bootstrap.servers": "nowhere:9092"}), "a unit", "id", 1_000)


def test_a_lost_fatal_error_is_asked_for_again(producer: UnitProducer, monkeypatch: pytest.MonkeyPatch) -> None:
    fenced = KafkaError(KafkaError._FENCED, "This instance has been fenced by a newer instance", True)
    monkeypatch.setattr(Client, "lost", fenced)
    with pytest.raises(Fenced), producer.transaction():
        pass


def test_where_nothing_was_fatal_the_transaction_is_aborted_and_begun_again(producer: UnitProducer) -> None:
    for _ in range(2):
        with pytest.raises(Rewound, match="an error that the client library has lost"), producer.transaction():
            pass
    client: Any = producer._producer
    assert client.calls == ["begin", "abort"] * 2


class Late(Client):
    """A producer that learns of a new partition only by the third answer."""

    answers = 0

    def produce(self, *_: Any, **__: Any) -> None:
        if self.answers < 3:
            raise KafkaException(KafkaError(KafkaError._UNKNOWN_PARTITION))
        self.calls.append("produce")

    def list_topics(self, topic: str, timeout: float) -> Any:
        self.answers += 1
        partitions = range(8 if self.answers == 3 else 4)
        return SimpleNamespace(topics={topic: SimpleNamespace(partitions=dict.fromkeys(partitions))})

    def poll(self, _: float) -> None: ...


def late(monkeypatch: pytest.MonkeyPatch) -> UnitProducer:
    monkeypatch.setattr(begin, "Producer", Late)
    return UnitProducer(KafkaConnection({"bootstrap.servers": "nowhere:9092"}), "a unit", "id", 1_000)


def test_a_partition_that_does_not_show_yet_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    producer = late(monkeypatch)
    with producer.transaction():
        producer.produce("t", b"v", b"k", 7, timestamp=1)
    client: Any = producer._producer
    assert client.calls == ["begin", "produce"]


def test_one_that_never_shows_is_an_outage_that_is_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copy_producer, "PARTITION_SECONDS", 0.0)
    producer = late(monkeypatch)
    told = "Timed out after 0 s waiting for every broker to show partition 7 of topic 't'"
    with pytest.raises(Outage, match=told), producer.transaction():
        producer.produce("t", b"v", b"k", 7, timestamp=1)


@pytest.mark.parametrize("code", [KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH])
@pytest.mark.parametrize(
    ("seconds", "error", "found"), [(59, Fenced, "newest attempt"), (61, Outage, "open for 61 s, and was aborted")]
)
def test_a_transaction_that_was_open_for_too_long_is_not_told_to_be_fenced(
    producer: UnitProducer,
    monkeypatch: pytest.MonkeyPatch,
    code: int,
    seconds: int,
    error: type[Exception],
    found: str,
) -> None:
    times = iter([0.5, 0.5 + seconds])
    monkeypatch.setattr(copy_producer, "time", SimpleNamespace(monotonic=lambda: next(times)))

    def write() -> None:
        with producer.transaction():
            producer.produce("t", b"v", b"k", 0, timestamp=1)
            monkeypatch.setattr(Client, "refusal", KafkaError(code, "an older epoch", True))
            producer.produce("t", b"v", b"k", 0, timestamp=1)

    with pytest.raises(error, match=found):
        write()


class Forgotten(Client):
    """A producer whose transactional id the brokers have forgotten. After an abort it has a new id."""

    def produce(self, *_: Any, **__: Any) -> None:
        if "abort" not in self.calls:
            raise KafkaException(KafkaError(KafkaError.INVALID_PRODUCER_ID_MAPPING, "expired", False, False, True))

    def poll(self, _: float) -> None: ...


def test_an_id_that_brokers_have_forgotten_is_no_sign_of_a_newer_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(begin, "Producer", Forgotten)
    producer = UnitProducer(KafkaConnection({"bootstrap.servers": "nowhere:9092"}), "a unit", "id", 1_000)
    with pytest.raises(Rewound, match="expired"), producer.transaction():
        producer.produce("t", b"v", b"k", 0, timestamp=1)
    with producer.transaction():
        producer.produce("t", b"v", b"k", 0, timestamp=1)
    client: Any = producer._producer
    assert client.calls == ["begin", "abort", "begin"]


class Hanging(Client):
    """A producer whose commit never returns, as with a coordinator that the library has dropped."""

    over = Event()

    def poll(self, _: float) -> None: ...

    def flush(self, _: float) -> int:
        return 0

    def send_offsets_to_transaction(self, *_: Any) -> None:
        self.over.wait()


def test_a_commit_that_never_returns_is_given_up_and_the_producer_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(begin, "Producer", Hanging)
    connection = KafkaConnection({"bootstrap.servers": "nowhere:9092"})
    producer, consumer = UnitProducer(connection, "a unit", "id", 1_000, 0.1), Mock()
    with pytest.raises(StuckCall, match="a unit: found send_offsets_to_transaction without an answer"):
        producer.commit([], consumer)
    with pytest.raises(StuckCall), producer.transaction():
        pytest.fail("an abandoned producer was used again")
    producer.abort()
    Hanging.over.set()
    client: Any = producer._producer
    assert client.calls == ["begin"]


class WithoutCoordinator(Client):
    """A client that waits in vain for a coordinator that has moved. The third one finds it."""

    begun: ClassVar[list[float]] = []

    def init_transactions(self, seconds: float) -> None:
        self.begun.append(seconds)
        if len(self.begun) < 3:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))

    def poll(self, _: float) -> None:
        """Nothing has happened."""


def test_a_producer_that_does_not_find_its_coordinator_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(begin, "Producer", WithoutCoordinator)
    UnitProducer(KafkaConnection({"bootstrap.servers": "nowhere:9092"}), "a unit", "id", 1_000)
    assert WithoutCoordinator.begun == [10.0, 20.0, 20.0]
