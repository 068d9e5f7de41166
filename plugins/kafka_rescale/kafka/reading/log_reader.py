"""Reading a small compacted partition to its end."""

from __future__ import annotations

import time

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from kafka_rescale.core.errors import ClusterOutage
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.error_classes import is_outage
from kafka_rescale.kafka.client.failures import ConnectionTrouble, to_error

SETTINGS = {
    "group.id": "kafka-rescale-control",
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "isolation.level": "read_committed",
    "auto.offset.reset": "earliest",
    "fetch.wait.max.ms": 20,
}

# A number and not OFFSET_BEGINNING: librdkafka takes half a second to look a logical offset up (measured: 0.50 s
# against 0.01 s), and the pause of a cutover contains several reads.
_START = 0


def latest_values(
    connection: KafkaConnection, topic: str, end: int, *, prefix: str, seconds: float
) -> dict[str, bytes]:
    """Return the last committed value per key of partition 0, without the keys that were deleted.

    The end has to be the high watermark. A ``read_committed`` end stops at the first open transaction of any
    producer, and would hide records that other producers have committed behind it.

    :param end: offset (exclusive) to read up to.
    :param prefix: only keys that begin with it are kept.
    :param seconds: how long to wait for transactions that are open before ``end``.
    :raises ClusterOutage: the end is not reached in time.
    """
    if end == 0:
        return {}
    trouble = ConnectionTrouble(connection.servers)
    consumer = Consumer(connection.client(**SETTINGS, error_cb=trouble))
    try:
        consumer.assign([TopicPartition(topic, 0, _START)])
        return _read(consumer, topic, end, prefix, trouble, time.monotonic() + seconds)
    except KafkaException as error:
        raise to_error(error.args[0], f"topic {topic!r}") from None
    finally:
        consumer.close()


def _read(
    consumer: Consumer, topic: str, end: int, prefix: str, trouble: ConnectionTrouble, deadline: float
) -> dict[str, bytes]:
    values: dict[str, bytes] = {}
    # The offset of an end-of-partition event also counts transaction markers, which never appear as messages.
    position = 0
    while position < end:
        message = consumer.poll(0.2)
        if message is None:
            trouble.raise_if_refused()
            if time.monotonic() > deadline:
                raise _stuck(topic, position, end)
            continue
        error, offset, key, value = message.error(), message.offset() or 0, message.key(), message.value()
        if error is not None and error.code() == KafkaError._PARTITION_EOF:
            position = offset
        elif error is not None:
            if not is_outage(error):
                raise to_error(error, f"topic {topic!r}")
        else:
            position = offset + 1
            _keep(values, prefix, key, value)
    return values


def _keep(values: dict[str, bytes], prefix: str, key: bytes | str | None, value: bytes | str | None) -> None:
    name = key.decode() if isinstance(key, bytes) else (key or "")
    if not name.startswith(prefix):
        return
    if value is None:
        values.pop(name, None)
    else:
        values[name] = value if isinstance(value, bytes) else value.encode()


def _stuck(topic: str, position: int, end: int) -> ClusterOutage:
    return ClusterOutage(
        f"topic {topic!r}",
        found=f"nothing to read from offset {position} on",
        expected=f"to read up to {end}",
        remedy="A transaction is open there, and ends within its timeout; or the brokers are down. Run again.",
    )
