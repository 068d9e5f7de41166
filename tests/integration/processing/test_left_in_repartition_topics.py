"""What stays in a pipeline's repartition topics: nothing that is processed, and nothing that would count twice."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Producer
from kafka_rescale.core.application.pipeline import PipelineApplication
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.operations.processing.new_offset import set_offset
from kafka_rescale.operations.processing.prepare import prepare

from testbed.broker import EmbeddedBroker
from tests.integration.processing.test_lost_offsets import T0, counted, with_topics, write_words
from tests.support.processing.inline_jobs import requests, run_all, run_job

pytestmark = pytest.mark.integration
RUN = "process/1"


@pytest.fixture
def connection(broker: EmbeddedBroker) -> KafkaConnection:
    return KafkaConnection(broker.client_config())


@pytest.fixture
def words(connection: KafkaConnection, unique: str, tmp_path: Path) -> PipelineApplication:
    """A pipeline with 30 words, of which level 1 has run."""
    application = with_topics(connection, unique, tmp_path)
    write_words(connection, 0, 30)
    (level_1,) = requests(application, prepare(application, connection, RUN).processing.running, 1)
    assert run_job(connection, unique, RUN, 1, level_1) == 0
    return application


def test_a_record_that_stops_a_task_leaves_the_other_partitions_processed_and_purged(
    connection: KafkaConnection, words: PipelineApplication
) -> None:
    admin, name, topic = (
        ClusterAdmin(connection),
        words.application_id,
        f"{words.application_id}-by-word-repartition",
    )
    ends = admin.end_offsets([topic])[topic]
    assert all(ends.values()), "each task of level 2 has records"
    producer = Producer(connection.client())
    producer.produce(topic, b"w0", b"\xff", 0, timestamp=T0)
    assert producer.flush(30) == 0

    (level_2,) = requests(words, [f"{name}-StreamThread-1"], 2)
    for attempt in (1, 2):
        assert run_job(connection, name, RUN, attempt, level_2) == 1
        result = ControlTopic(connection, name).read().results[level_2.key]
        assert result.failure is not None
        assert f"by-word-repartition-0 at offset {ends[0]}" in result.failure.what
        assert {(p.partition, p.position) for p in result.partitions} == {(0, ends[0]), (1, ends[1])}
        begins = admin.begin_offsets([topic])[topic]
        assert begins == {0: 0, 1: ends[1]}, "what the other task has processed is deleted"

    set_offset(words, connection, (topic, 0), str(ends[0] + 1))
    assert run_job(connection, name, RUN, 3, level_2) == 0
    assert counted(connection) == {b"w0": 10, b"w1": 10, b"w2": 10}


def test_what_level_2_has_not_processed_does_not_count_twice_in_a_pipeline_that_begins_anew(
    connection: KafkaConnection, words: PipelineApplication
) -> None:
    admin, name = ClusterAdmin(connection), words.application_id
    admin.delete_topics([f"{name}-counts-changelog"])
    admin.delete_group(name)
    for attempt in (2, 3):
        with pytest.raises(UnsafeState, match=f"repartition topics {name}-by-word-repartition: found records"):
            prepare(words, connection, f"process/{attempt}")
    admin.delete_topics([f"{name}-by-word-repartition"])
    run_all(words, connection, "process/4")
    assert counted(connection) == {b"w0": 10, b"w1": 10, b"w2": 10}
