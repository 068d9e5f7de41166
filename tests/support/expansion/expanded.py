"""An expansion after its cutover: the journal and the topics say so, although no expansion has run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka_rescale.core.application.topics import InputPolicy
from kafka_rescale.core.control.journal import Captured, Journal, PartitionOffsets, Phase
from kafka_rescale.core.partitioning.partitioners import partitioner_named
from kafka_rescale.core.plan.external_topics import InputPlan
from kafka_rescale.core.plan.plan import Move, MoveKind, Plan, Stage
from kafka_rescale.core.topology.topology import changelog_topic
from kafka_rescale.core.verify.pairs import ComparedLog
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.control_topic import ControlTopic

from tests.support.changelogs import Placed, copied, history, placed, write_log

BEFORE, AFTER = 4, 8
STORES = {"totals": "timestamped-key-value", "sessions": "session"}
WINDOWED = {"cleanup.policy": "compact,delete", "retention.ms": "-1"}


@dataclass
class Expanded:
    """Two stores from 4 to 8 partitions, and an input. Blue had read its partitions up to the offsets 1 to 4.

    :param application: its base name, unique to a test.
    :param since: timestamp of the first record, ms.
    """

    client: Mapping[str, str]
    application: str
    since: int

    @property
    def connection(self) -> KafkaConnection:
        """The cluster."""
        return KafkaConnection(dict(self.client))

    @property
    def control(self) -> ControlTopic:
        """The control topic."""
        return ControlTopic(self.connection, self.application)

    @property
    def green(self) -> str:
        """The new generation."""
        return f"{self.application}-g2"

    @property
    def orders(self) -> str:
        """The input topic."""
        return f"{self.application}-orders"

    def topic(self, application_id: str, store: str) -> str:
        """Return the changelog of a store."""
        return changelog_topic(application_id, store)

    def write(self, phase: Phase = Phase.STARTED, **mutated: list[Placed]) -> Journal:
        """Write blue, green, green's offsets and the journal.

        :param mutated: green's records of a store, if they are not the correct records.
        """
        blue = {s: self._log(self.application, s, BEFORE, self.blue_records(s)) for s in STORES}
        green = {s: self._log(self.green, s, AFTER, mutated.get(s, self.green_records(s))) for s in STORES}
        stopped = {self.orders: {p: p + 1 for p in range(BEFORE)}}
        started = {self.orders: {p: p + 1 if p < BEFORE else 0 for p in range(AFTER)}}
        admin = AdminClient(dict(self.client))
        admin.create_topics([NewTopic(self.orders, AFTER)])[self.orders].result(30)
        self.commit(started)
        journal = Journal(
            plan=self.plan,
            phase=phase,
            captured=Captured(committed=stopped, changelog_ends=_ends(blue.values())),
            green_ends=_ends(green.values()),
            green_start=started,
        )
        self.record(journal)
        return journal

    def record(self, journal: Journal) -> None:
        """Put a journal into the control topic."""
        self.control.update(lambda _: {"journal": journal})

    def commit(self, offsets: PartitionOffsets) -> None:
        """Commit offsets of green."""
        consumer = Consumer({**self.client, "group.id": self.green})
        entries = [TopicPartition(t, p, o) for t, partitions in offsets.items() for p, o in partitions.items()]
        consumer.commit(offsets=entries, asynchronous=False)
        consumer.close()

    def send_as_before_the_growth(self, key: bytes) -> None:
        """Write two records of a key to partition 0: blue has read the first record, but not the second.

        Among 4 partitions the key belongs to partition 0, but not among 8.
        """
        homes = [partitioner_named("murmur2").partition(key, count) for count in (BEFORE, AFTER)]
        assert homes[0] == 0 != homes[1]
        producer = Producer(dict(self.client))
        for _ in range(2):
            producer.produce(self.orders, b"v", key, 0)
        assert producer.flush(30) == 0

    def blue_records(self, store: str) -> list[Placed]:
        """Return blue's records of a store."""
        return placed(history(STORES[store], self.since), STORES[store], BEFORE)

    def green_records(self, store: str) -> list[Placed]:
        """Return the correct copy of blue's records."""
        return placed(copied(history(STORES[store], self.since)), STORES[store], AFTER)

    def _log(self, application_id: str, store: str, partitions: int, records: list[Placed]) -> ComparedLog:
        config = WINDOWED if STORES[store] == "session" else None
        name = self.topic(application_id, store)
        return write_log(self.client, name, partitions, records, transactional=True, config=config)

    @property
    def plan(self) -> Plan:
        """The plan of both stores."""
        moves = tuple(
            Move(
                kind=MoveKind.CHANGELOG,
                source=self.topic(self.application, store),
                target=self.topic(self.green, store),
                store=store,
                store_type=store_type,
                source_partitions=BEFORE,
                target_partitions=AFTER,
            )
            for store, store_type in STORES.items()
        )
        source = InputPlan(
            topic=self.orders, policy=InputPolicy.PAUSED, partitioner="murmur2", current=BEFORE, target=AFTER
        )
        return Plan(
            application=self.application,
            generation=2,
            blue=self.application,
            green=self.green,
            partitions=AFTER,
            stages=(Stage(index=1, name="stage_1_subtopology_0", subtopology=0, moves=moves),),
            inputs=(source,),
        )


def with_other_value(records: list[Placed]) -> list[Placed]:
    """Return the records with the value of the last one changed."""
    partition, record = records[-1]
    return [*records[:-1], (partition, replace(record, value=b"other"))]


def _ends(logs: Iterable[ComparedLog]) -> PartitionOffsets:
    return {log.topic: dict(enumerate(log.ends)) for log in logs}
