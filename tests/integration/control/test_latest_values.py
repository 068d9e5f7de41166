"""What has been read of a compacted topic is not read again, and a topic that was created anew is read anew."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, Message
from kafka_rescale.core.errors import ClusterOutage
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.reading import log_reader
from kafka_rescale.kafka.reading.log_reader import LatestValues
from kafka_rescale.kafka.writing.transactional_writer import TransactionalWriter

pytestmark = pytest.mark.integration
Write = Callable[..., None]


@pytest.fixture
def connection(client: dict[str, str]) -> KafkaConnection:
    return KafkaConnection(dict(client))


@pytest.fixture
def write(connection: KafkaConnection, unique: str) -> Write:
    admin = ClusterAdmin(connection)
    admin.ensure_topic(unique, 1, 1, {"cleanup.policy": "compact"})
    writer = TransactionalWriter(connection, unique)

    def written(**values: str | None) -> None:
        writer.write(unique, {f"a/{key}": None if v is None else v.encode() for key, v in values.items()})

    return written


def end_of(connection: KafkaConnection, topic: str) -> int:
    return ClusterAdmin(connection).end_offsets([topic], read_committed=False)[topic][0]


def read(values: LatestValues, connection: KafkaConnection, topic: str) -> dict[str, bytes]:
    return values.up_to(end_of(connection, topic), seconds=30)


def test_each_reading_begins_at_the_last_record_of_the_one_before(
    connection: KafkaConnection, unique: str, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[int] = []
    real = LatestValues._take

    def noted(self: LatestValues, message: Message) -> None:
        taken.append(message.offset() or 0)
        real(self, message)

    monkeypatch.setattr(LatestValues, "_take", noted)
    values = LatestValues(connection, unique, "a/")
    assert read(values, connection, unique) == {}
    for number in range(20):
        write(x=str(number), y=None if number % 2 else "there")
    assert read(values, connection, unique) == {"a/x": b"19"}
    assert len(taken) == 40
    assert read(values, connection, unique) == {"a/x": b"19"}
    write(y="back")
    assert read(values, connection, unique) == {"a/x": b"19", "a/y": b"back"}
    assert len(taken) == 41


@pytest.mark.parametrize("more", [0, 5])
def test_a_topic_that_was_created_anew_is_read_anew(
    connection: KafkaConnection, unique: str, write: Write, more: int
) -> None:
    values = LatestValues(connection, unique, "a/")
    write(old="1", both="1")
    write(old="2")
    assert read(values, connection, unique) == {"a/old": b"2", "a/both": b"1"}
    admin = ClusterAdmin(connection)
    admin.delete_topics([unique])
    admin.ensure_topic(unique, 1, 1, {"cleanup.policy": "compact"})
    for _ in range(1 + more):
        write(both="new")
    # With more records than before, the end alone does not tell it.
    assert read(values, connection, unique) == {"a/both": b"new"}


def test_a_client_that_stands_still_is_replaced(
    connection: KafkaConnection, unique: str, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = LatestValues(connection, unique, "a/")
    write(x="1")
    assert read(values, connection, unique) == {"a/x": b"1"}
    opened: list[Consumer] = []

    class Counted(Consumer):
        def __init__(self, *settings: object) -> None:
            super().__init__(*settings)
            opened.append(self)

    class Still:
        """A client as it was seen behind a frozen broker: it is assigned, and nothing comes."""

        assign = unassign = close = staticmethod(lambda *_: None)

        def poll(self, seconds: float) -> None:
            return None

    monkeypatch.setattr(log_reader, "Consumer", Counted)
    monkeypatch.setattr(log_reader, "PATIENCE_SECONDS", 0.3)
    values._consumer = Still()  # type: ignore[assignment]
    write(x="2")
    assert read(values, connection, unique) == {"a/x": b"2"}
    assert len(opened) == 1


def test_an_end_that_is_not_reached_ends_with_the_offsets(
    connection: KafkaConnection, unique: str, write: Write
) -> None:
    write(x="1")
    values = LatestValues(connection, unique, "a/")
    with pytest.raises(ClusterOutage, match=rf"topic '{unique}'.*nothing to read from offset .* to read up to 99"):
        values.up_to(99, seconds=1)
    assert read(values, connection, unique) == {"a/x": b"1"}
