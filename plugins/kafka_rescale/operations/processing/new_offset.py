"""Setting an offset of a pipeline by hand, without losing the metadata that is committed beside it."""

from __future__ import annotations

from confluent_kafka import TopicPartition as KafkaPartition

from kafka_rescale.core.application.pipeline import PipelineApplication
from kafka_rescale.core.cluster import TopicPartition
from kafka_rescale.core.pipeline.named import pipeline_named
from kafka_rescale.core.processing.new_offset import kept_mark, offset_of, task_of
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.kafka.processing.task_producer import TaskProducer
from kafka_rescale.kafka.reading.committed import closing_consumer, read_committed
from kafka_rescale.kafka.reading.log_range import log_range
from kafka_rescale.spark.processing.task_work import transactional_id
from kafka_rescale.spark.processing.work import full_names


def set_offset(
    application: PipelineApplication, connection: KafkaConnection, source: TopicPartition, to: str
) -> int:
    """Set the offset from which a pipeline goes on with a partition, and return it.

    A task that processes the partition now is fenced, and writes no more records. Stream time, counters and the
    number of processors are kept; Kafka's own tools would delete them with the offset's metadata. State is not
    changed: records that are processed again count again, and records that are passed over never count.

    :param application: the application, with the id of the generation.
    :param source: the partition, by the topic's full name.
    :param to: an offset, ``earliest`` or ``latest``.
    :raises InvalidInput: no task reads the partition, or the log has no such offset.
    :raises Outage: the brokers don't answer.
    """
    name, pipeline = application.application_id, pipeline_named(application.pipeline)
    state, parts = ControlTopic(connection, name).read(), pipeline.sub_topologies()
    names = full_names(name, pipeline, [topic for part in parts for topic in part.sources])
    task, reads = task_of(source, parts, state.processors, names)
    with closing_consumer(connection, name) as consumer:
        offset = offset_of(source, to, log_range(consumer, source))
        producer = TaskProducer(connection, transactional_id(name, task))
        try:
            committed = read_committed(consumer, reads)
            mark = kept_mark(task, [text for _, text in committed.values()], state.results.values())
            metadata = mark.model_copy(update={"at_ms": now_ms()}).model_dump_json()
            producer.commit([KafkaPartition(*source, offset, metadata=metadata)], consumer)
        finally:
            producer.abort()
    return offset
