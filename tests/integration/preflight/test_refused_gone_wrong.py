"""What would go wrong in refused cases: the tests do them by hand with a real Kafka Streams application."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Producer
from kafka_rescale.core.partitioning.partitioners import partitioner_named
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection

from testbed.processes import wait_until
from tests.support.rates import PROGRAM, UNKNOWN, Rates
from tests.support.streams_member import streams_member

pytestmark = pytest.mark.integration

KEYS = [f"key-{i}" for i in range(12)]
BEFORE, AFTER = 4, 8
SETTINGS = {"commit.interval.ms": "100", "statestore.cache.max.bytes": "0", "auto.offset.reset": "earliest"}


@pytest.mark.parametrize(
    ("copied", "sent"),
    [
        (("murmur2", AFTER), ("crc32", AFTER)),
        (("murmur2", BEFORE), ("murmur2", AFTER)),
    ],
    ids=["another partitioner", "a source table whose topic has grown"],
)
def test_records_that_arrive_elsewhere_do_not_find_their_state(
    copied: tuple[str, int], sent: tuple[str, int], client: dict[str, str], unique: str, tmp_path: Path
) -> None:
    """One rule has placed the entries of the table, and another rule places the records of the same keys."""
    rates = Rates(client, unique, AFTER)
    homes, arrivals = (
        dict(zip(KEYS, partitioner_named(name).partition_batch([k.encode() for k in KEYS], n), strict=True))
        for name, n in (copied, sent)
    )
    for key in KEYS:
        rates.sets(key, key.upper(), homes[key])
    with streams_member(
        client["bootstrap.servers"], unique, unique, tmp_path, {**SETTINGS, "rates": "own"}, PROGRAM
    ) as member:
        member.await_state("RUNNING")
        found = {key: rates.asks(key, arrivals[key]) for key in KEYS}
    assert found == {key: key.upper() if homes[key] == arrivals[key] else UNKNOWN for key in KEYS}
    assert UNKNOWN in found.values()


class Counting:
    """The input and output of the program that counts the records of every key."""

    def __init__(self, client: dict[str, str], output: str) -> None:
        self._admin, self._client = ClusterAdmin(KafkaConnection(client)), client
        self._output = output
        self._admin.ensure_topic(output, 1, 1, {})

    def sends(self, topic: str, partitions: list[int], count: int) -> None:
        """Make a topic, and send a record to each of the given partitions."""
        self._admin.ensure_topic(topic, count, 1, {})
        producer = Producer(self._client)
        for partition in partitions:
            producer.produce(topic, b"v", b"key", partition)
        assert producer.flush(20) == 0

    def written(self) -> int:
        """Return how many records the program has processed. It writes one record for each."""
        return self._admin.end_offsets([self._output])[self._output][0]

    def awaits(self, written: int) -> None:
        """Wait until the program has processed so many records."""
        wait_until(lambda: self.written() >= written, timeout=60, what=f"{written} records to be processed")


# In `make test`, what is processed twice; not at all is the other side of the same lack of offsets.
@pytest.mark.parametrize(
    ("reset", "of_the_other_topic"), [("earliest", 3 + 2), pytest.param("latest", 0, marks=pytest.mark.slow)]
)
def test_a_topic_that_only_a_pattern_names_is_processed_twice_or_not_at_all(
    reset: str, of_the_other_topic: int, client: dict[str, str], unique: str, tmp_path: Path
) -> None:
    """Green has offsets for the planned topics, but not for another topic that matches the pattern."""
    counting, admin = Counting(client, f"{unique}-counts"), ClusterAdmin(KafkaConnection(client))
    planned, other, green = f"{unique}-de", f"{unique}-fr", f"{unique}-g2"
    servers, settings = client["bootstrap.servers"], {**SETTINGS, "pattern": f"{unique}-(de|fr)"}
    counting.sends(planned, [0], 1)
    counting.sends(other, [0] * 3, 1)
    with streams_member(servers, unique, unique, tmp_path / "blue", settings) as blue:
        counting.awaits(4)
        blue.close()
    counting.sends(other, [0] * 2, 1)
    admin.commit(green, admin.end_offsets([planned]))
    with streams_member(
        servers, green, unique, tmp_path / "green", {**settings, "auto.offset.reset": reset}
    ) as fresh:
        fresh.await_state("RUNNING")
        counting.sends(planned, [0], 1)
        counting.awaits(4 + of_the_other_topic + 1)
        fresh.close()
    assert counting.written() == 4 + of_the_other_topic + 1
