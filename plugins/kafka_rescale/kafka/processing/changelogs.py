"""Where the changelogs of a pipeline's tasks begin and end."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from confluent_kafka import Consumer

from kafka_rescale.core.assignment.tasks import TaskId, Tasks
from kafka_rescale.core.cluster import TopicDescription, TopicPartition
from kafka_rescale.core.pipeline.builder import Pipeline
from kafka_rescale.core.processing.replicas import StoreLogs
from kafka_rescale.core.processing.task_state import Changelog
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.reading.committed import closing_consumer
from kafka_rescale.kafka.reading.log_range import log_range
from kafka_rescale.kafka.reading.source_rules import SourceRules


@dataclass(frozen=True)
class KnownState:
    """The state of a pipeline's tasks on the brokers.

    :param logs: changelog partitions by task and store, up to the committed ends.
    :param counts: number of tasks by sub-topology.
    """

    tasks: Tasks
    logs: Mapping[TaskId, StoreLogs]
    counts: Mapping[int, int]


def known_state(
    admin: ClusterAdmin, application_id: str, pipeline: Pipeline, counts: Mapping[int, int]
) -> KnownState:
    """Ask the brokers where the changelogs of all tasks begin and end. What doesn't exist is left out.

    An edited program may need more partitions than there are; the next run makes them.

    :param counts: number of tasks by sub-topology. A sub-topology that the last run didn't have has no tasks.
    """
    names = {
        part.id: {s.name: f"{application_id}-{s.changelog_topic}" for s in part.stores if s.is_logged}
        for part in pipeline.sub_topologies()
    }
    topics = [topic for stores in names.values() for topic in stores.values()]
    described = admin.describe_topics(topics)
    begins, ends = admin.begin_offsets(described), admin.end_offsets(described)
    logs = {
        TaskId(part, partition): {
            store: Changelog(
                topic,
                described[topic].topic_id,
                partition,
                begins[topic][partition],
                ends[topic][partition],
                SourceRules.of(described[topic]).tombstone_ms,
            )
            for store, topic in stores.items()
            if partition in begins.get(topic, {})
        }
        for part, stores in names.items()
        if stores
        for partition in range(counts.get(part, 0))
    }
    every = frozenset(TaskId(part, partition) for part, count in counts.items() for partition in range(count))
    ends_of = {task: sum(log.end for log in stores.values()) for task, stores in logs.items()}
    return KnownState(Tasks(ends_of, every - logs.keys()), logs, counts)


def whole_changelogs(
    connection: KafkaConnection,
    group: str,
    topics: Mapping[str, TopicDescription],
    partition: int,
    names: Collection[str],
) -> dict[str, Changelog]:
    """Return one partition of each of some changelogs up to its high watermark, by full name.

    The commit of a transaction returns before readers see its records. But everything that was written is below
    the high watermark already. So a reader that reads up to there waits for these records. No other process may be
    writing.

    :param topics: descriptions, by full name.
    :raises Outage: the brokers don't answer.
    """
    with closing_consumer(connection, group, **{"isolation.level": "read_uncommitted"}) as looking:
        return {name: changelog_as_seen(looking, (name, partition), topics[name]) for name in names}


def changelog_as_seen(consumer: Consumer, source: TopicPartition, described: TopicDescription) -> Changelog:
    """Return a changelog partition up to the end that a consumer sees.

    :raises Outage: the brokers don't answer.
    """
    log, rules = log_range(consumer, source), SourceRules.of(described)
    return Changelog(source[0], described.topic_id, source[1], log.begin, log.end, rules.tombstone_ms)
