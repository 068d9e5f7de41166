"""What would come of growing the topic of a global table, on a real broker."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Producer
from kafka_rescale.embedded.processes import wait_until
from kafka_rescale.kafka.admin import ClusterAdmin
from kafka_rescale.kafka.connection import KafkaConnection
from kafka_rescale.kafka.range_reader import read_ranges

from tests.support.streams_member import streams_member

pytestmark = pytest.mark.integration

SETTINGS = {"metadata.max.age.ms": "100", "commit.interval.ms": "100", "auto.offset.reset": "earliest"}
UPDATES = 20


@pytest.fixture
def admin(client: dict[str, str]) -> ClusterAdmin:
    return ClusterAdmin(KafkaConnection(client))


class Rates:
    """A program that looks each record's key up in a global table, and what is sent to and seen of it."""

    def __init__(self, admin: ClusterAdmin, client: dict[str, str], topic: str) -> None:
        self.admin, self.topic = admin, topic
        self.table, self.output = f"{topic}-rates", f"{topic}-counts"
        self._client, self._connection, self._producer = client, KafkaConnection(client), Producer(client)
        for name in (topic, self.table, self.output):
            admin.ensure_topic(name, 1, 1, {})

    def grows(self, partitions: int) -> None:
        """Grow the table's topic; who writes to it from now on knows of that."""
        self.admin.grow_topic(self.table, partitions)
        self._producer = Producer(self._client)

    def sets(self, key: str, rate: str, partition: int) -> None:
        """Write an entry of the table."""
        self._producer.produce(self.table, rate.encode(), key.encode(), partition)
        assert self._producer.flush(20) == 0

    def asks(self, key: str) -> str:
        """Send a record, and return what the program has found in its table."""
        before = self._end()
        self._producer.produce(self.topic, b"?", key.encode(), 0)
        assert self._producer.flush(20) == 0
        wait_until(lambda: self._end() > before, timeout=60, what=f"the rate of {key}")
        [answer, *_] = read_ranges(self._connection, self.output, {0: (before, self._end())})
        value = answer.value()
        assert isinstance(value, bytes)
        return value.decode()

    def _end(self) -> int:
        return self.admin.end_offsets([self.output])[self.output][0]


def test_a_running_application_would_miss_what_comes_into_new_partitions_of_a_global_table(
    admin: ClusterAdmin, client: dict[str, str], unique: str, tmp_path: Path
) -> None:
    """Why its topic is never grown; nothing of it has to be: a new generation reads all of its partitions."""
    rates, servers = Rates(admin, client, unique), client["bootstrap.servers"]
    rates.sets("EUR", "1", 0)
    with streams_member(servers, unique, unique, tmp_path / "1", SETTINGS, "GlobalMember") as running:
        running.await_state("RUNNING")
        assert rates.asks("EUR") == "1"
        rates.grows(2)
        rates.sets("USD", "2", 1)
        for number in range(UPDATES):
            # Each is seen after more than one refresh of the metadata: what is not read by then never is.
            rates.sets("EUR", str(number), 0)
            wait_until(lambda wanted=str(number): rates.asks("EUR") == wanted, timeout=60, what="an update")
        assert rates.asks("USD") == "none"
        assert "ERROR" not in running.states
    green = f"{unique}-g2"
    admin.commit(green, admin.end_offsets([unique]))
    with streams_member(servers, green, unique, tmp_path / "2", SETTINGS, "GlobalMember") as fresh:
        fresh.await_state("RUNNING")
        assert rates.asks("USD") == "2"
