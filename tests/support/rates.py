"""The table, input and output of the program that looks up each record's key in a table."""

from __future__ import annotations

from confluent_kafka import Producer
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.reading.range_reader import read_ranges

from testbed.processes import wait_until

PROGRAM = "LookupMember"
UNKNOWN = "none"


class Rates:
    """The table of the program ``LookupMember``, its input, and its output, which has one partition.

    :param partitions: partitions of the table and of the input.
    """

    def __init__(self, client: dict[str, str], topic: str, partitions: int = 1) -> None:
        self.topic, self.table, self.output = topic, f"{topic}-rates", f"{topic}-counts"
        self._client, self._connection, self._producer = client, KafkaConnection(client), Producer(client)
        self._admin = ClusterAdmin(self._connection)
        for name, count in {topic: partitions, self.table: partitions, self.output: 1}.items():
            self._admin.ensure_topic(name, count, 1, {})

    def grows(self, partitions: int) -> None:
        """Grow the table's topic. From now on, ``sets`` uses a producer that knows the new partitions."""
        self._admin.grow_topic(self.table, partitions)
        self._producer = Producer(self._client)

    def sets(self, key: str, rate: str, partition: int) -> None:
        """Write an entry of the table."""
        self._producer.produce(self.table, rate.encode(), key.encode(), partition)
        assert self._producer.flush(20) == 0

    def asks(self, key: str, partition: int = 0) -> str:
        """Send a record, and return what the program has found in its table."""
        before = self._end()
        self._producer.produce(self.topic, b"?", key.encode(), partition)
        assert self._producer.flush(20) == 0
        wait_until(lambda: self._end() > before, timeout=60, what=f"the rate of {key}")
        [answer, *_] = read_ranges(self._connection, self.output, {0: (before, self._end())})
        value = answer.value()
        assert isinstance(value, bytes)
        return value.decode()

    def _end(self) -> int:
        return self._admin.end_offsets([self.output])[self.output][0]
