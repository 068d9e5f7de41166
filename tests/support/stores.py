"""The live content of a store, to compare an application with its control run."""

from __future__ import annotations

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

Entry = tuple[bytes, int]


def live_entries(bootstrap_servers: str, topic: str) -> dict[bytes, Entry]:
    """Return key → (value, timestamp in ms) of all live entries of a changelog.

    Each key is in one partition only.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "unused",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
    consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in partitions])
    found: dict[bytes, Entry] = {}
    placed: dict[bytes, int] = {}
    reading = set(partitions)
    while reading:
        for message in consumer.consume(10_000, timeout=0.2):
            error = message.error()
            if error is not None:
                assert error.code() == KafkaError._PARTITION_EOF, error
                reading.discard(message.partition())
                continue
            key, value = message.key(), message.value()
            assert placed.setdefault(key, message.partition()) == message.partition(), f"{key!r} in two partitions"
            if value is None:
                found.pop(key, None)
            else:
                found[key] = (value, message.timestamp()[1])
    consumer.close()
    return found


def differences(
    expected: dict[bytes, Entry], found: dict[bytes, Entry], *, timestamps: bool = True, most: int = 5
) -> list[str]:
    """Return the first differences, one line each.

    :param timestamps: compare them too. Not for a session store: its record has the timestamp of the flight that
        was processed last. Partitions of an input have no order between them, so it differs from run to run.
    """
    lines = []
    for key in sorted(expected.keys() | found.keys()):
        wanted, got = expected.get(key), found.get(key)
        same = wanted == got or (not timestamps and wanted and got and wanted[0] == got[0])
        if not same and len(lines) < most:
            lines.append(f"{key!r}: expected {wanted}, found {got}")
    return lines
