"""Puts the small application's topics, records and offsets on a real broker."""

from __future__ import annotations

from confluent_kafka import ConsumerGroupTopicPartitions, IsolationLevel, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.admin.transactions import wait_until_complete
from kafka_rescale.kafka.client.connection import KafkaConnection

from tests.support.small_application import records, topic_configs

PARTITIONS = 4


def make_topics(client: dict[str, str], name: str) -> None:
    """Create the first generation's topics and their records. The application has processed all records.

    The records are written in transactions, as with exactly-once, so that every log ends with a marker.
    """
    admin = AdminClient(client)
    topics = [NewTopic(t, PARTITIONS, 1, config=configs) for t, configs in topic_configs(name).items()]
    for made in admin.create_topics(topics).values():
        made.result(30)
    producer = Producer({**client, "transactional.id": name})
    producer.init_transactions(30)
    producer.begin_transaction()
    for topic, of_topic in records(name, PARTITIONS).items():
        for record in of_topic:
            producer.produce(
                topic, b"value", record.key, partition=record.partition, timestamp=record.timestamp_ms
            )
    producer.commit_transaction(30)
    # A commit returns before the markers are written. Until they are, the ends are those before the commit.
    wait_until_complete(ClusterAdmin(KafkaConnection(client)), list(topic_configs(name)))
    sources = [f"{name}-orders", f"{name}-customers", f"{name}-by-customer-repartition"]
    commit(client, name, ends(client, sources))


def ends(client: dict[str, str], topics: list[str]) -> list[TopicPartition]:
    """Return the end of every partition, as a ``read_committed`` reader sees it."""
    admin = AdminClient(client)  # keep it alive: if the client is collected too early, its futures get no answer
    wanted = {TopicPartition(t, p): OffsetSpec.latest() for t in topics for p in range(PARTITIONS)}
    found = admin.list_offsets(wanted, isolation_level=IsolationLevel.READ_COMMITTED)
    return [TopicPartition(tp.topic, tp.partition, future.result(30).offset) for tp, future in found.items()]


def commit(client: dict[str, str], group: str, offsets: list[TopicPartition]) -> None:
    """Set a group's offsets. The group must have no members."""
    admin = AdminClient(client)
    request = [ConsumerGroupTopicPartitions(group, offsets)]
    for future in admin.alter_consumer_group_offsets(request).values():
        future.result(30)
