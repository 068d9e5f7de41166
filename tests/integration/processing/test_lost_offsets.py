"""Lost offsets stop a run before it begins. A person can set them again, and they keep their marks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka import TopicPartition as KafkaPartition
from kafka_rescale.core.application.pipeline import PipelineApplication
from kafka_rescale.core.control.journal import PartitionOffsets
from kafka_rescale.core.errors import Refused, UnsafeState
from kafka_rescale.core.processing.task_state import TaskMark
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.processing.task_producer import TaskProducer
from kafka_rescale.kafka.reading.committed import closing_consumer, read_committed
from kafka_rescale.kafka.reading.range_reader import read_ranges
from kafka_rescale.operations.application.load import load_pipeline_application
from kafka_rescale.operations.processing import processors
from kafka_rescale.operations.processing.new_offset import set_offset
from kafka_rescale.operations.processing.prepare import is_idle, prepare

from testbed.broker import EmbeddedBroker
from tests.integration.processing.test_stream_task import made
from tests.support.processing.counted import Counted, write
from tests.support.processing.inline_jobs import requests, run_all
from tests.support.words_pipeline import write_pipeline

pytestmark = pytest.mark.integration
T0 = 1_700_000_000_000


@pytest.fixture
def connection(broker: EmbeddedBroker) -> KafkaConnection:
    return KafkaConnection(broker.client_config())


@pytest.fixture
def words(connection: KafkaConnection, unique: str, tmp_path: Path) -> PipelineApplication:
    return with_topics(connection, unique, tmp_path)


def with_topics(connection: KafkaConnection, name: str, directory: Path) -> PipelineApplication:
    """Return a pipeline of one thread, whose topics of other programs are new."""
    admin = ClusterAdmin(connection)
    admin.delete_topics(["lines", "counted"])
    for topic in ("lines", "counted"):
        admin.ensure_topic(topic, 2, 1, {"retention.ms": "-1"})
    file = write_pipeline(directory, application_id=name, **{"num.stream.threads": 1})
    return load_pipeline_application(file)


def write_words(connection: KafkaConnection, first: int, count: int) -> None:
    producer = Producer(connection.client())
    for number in range(first, first + count):
        producer.produce("lines", b"w%d" % (number % 3), None, number % 2, timestamp=T0 + number)
    assert producer.flush(30) == 0


def counted(connection: KafkaConnection) -> Counter[bytes]:
    """The last count of every word."""
    ends = ClusterAdmin(connection).end_offsets(["counted"], read_committed=False)["counted"]
    ranges = {partition: (0, end) for partition, end in ends.items()}
    found: Counter[bytes] = Counter()
    for message in read_ranges(connection, "counted", ranges):
        key, value = message.key(), message.value()
        assert isinstance(key, bytes)
        assert isinstance(value, bytes)
        found[key] = max(found[key], int.from_bytes(value, "big"))
    return found


def test_what_has_no_state_is_not_processed_twice_when_its_offsets_have_expired(
    connection: KafkaConnection, words: PipelineApplication
) -> None:
    write_words(connection, 0, 30)
    run_all(words, connection, "process/1")
    ClusterAdmin(connection).delete_group(words.application_id)
    with pytest.raises(UnsafeState, match="lines-0, processed up to 15; lines-1, processed up to 15"):
        prepare(words, connection, "process/2")

    repartitioned = f"{words.application_id}-by-word-repartition"
    ends = ClusterAdmin(connection).end_offsets([repartitioned])[repartitioned]
    for partition in (0, 1):
        set_offset(words, connection, ("lines", partition), "15")
        set_offset(words, connection, (repartitioned, partition), str(ends[partition]))
    with closing_consumer(connection, words.application_id) as consumer:
        marks = read_committed(consumer, [("lines", 0), ("lines", 1)])
    assert [TaskMark.of(text).checkpoint for _, text in marks.values()] == [
        f'{{"":{T0 + 28}}}',
        f'{{"":{T0 + 29}}}',
    ]
    write_words(connection, 30, 30)
    run_all(words, connection, "process/2")
    assert counted(connection) == {b"w0": 20, b"w1": 20, b"w2": 20}


def test_log_starts_that_a_broker_does_not_know_yet_are_asked_for_again(
    connection: KafkaConnection, words: PipelineApplication, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without log starts, the records that an added partition has lost would be passed over in silence."""
    looked: list[PartitionOffsets] = []
    is_young, known, checked = [True], ClusterAdmin.partition_counts, processors.require_offsets

    def counts(admin: ClusterAdmin, names: Iterable[str]) -> dict[str, int]:
        return {topic: n for topic, n in known(admin, names).items() if topic != "lines" or not is_young}

    def require(record: Any, names: Any, committed: Any, begins: PartitionOffsets, said: Any) -> None:
        looked.append(begins)
        checked(record, names, committed, begins, said)

    monkeypatch.setattr(ClusterAdmin, "partition_counts", counts)
    monkeypatch.setattr(ClusterAdmin, "_ask_another", lambda _: is_young.clear())
    monkeypatch.setattr(processors, "require_offsets", require)
    prepare(words, connection, "process/1")
    assert looked[0]["lines"].keys() == {0, 1}


def test_a_task_whose_changelog_was_emptied_by_retention_has_worked_before(
    connection: KafkaConnection, unique: str, tmp_path: Path
) -> None:
    application = Counted(connection, unique, tmp_path, changelog_configs={"cleanup.policy": "compact,delete"})
    application.create()
    write(connection, unique, made(0, 20))
    application.run()
    application.admin.delete_records(application.admin.end_offsets([application.changelog]))
    application.admin.delete_group(unique)
    with pytest.raises(UnsafeState, match="no committed offset"):
        application.run()


def test_an_input_that_has_lost_its_end_is_not_taken_for_one_without_news(
    connection: KafkaConnection, words: PipelineApplication
) -> None:
    write_words(connection, 0, 30)
    run_all(words, connection, "process/1")
    producer = TaskProducer(connection, f"{words.application_id}-0_0")
    with closing_consumer(connection, words.application_id) as consumer:
        (_, mark) = read_committed(consumer, [("lines", 0)])["lines", 0]
        producer.commit([KafkaPartition("lines", 0, 16, metadata=mark)], consumer)
    running = prepare(words, connection, "process/2").processing.running
    (request,) = requests(words, running, 1)
    assert not is_idle(words, connection, "process/2", request), "its next record would be passed over in silence"
    with pytest.raises(AssertionError, match="an end of 15, and a committed offset of 16"):
        run_all(words, connection, "process/2")


def test_offsets_of_which_the_state_is_gone_are_not_gone_on_from(
    connection: KafkaConnection, words: PipelineApplication
) -> None:
    admin, changelog = ClusterAdmin(connection), f"{words.application_id}-counts-changelog"
    write_words(connection, 0, 30)
    run_all(words, connection, "process/1")
    admin.delete_topics([changelog])
    with pytest.raises(UnsafeState, match=f"{changelog}: found no such topics, and committed offsets"):
        prepare(words, connection, "process/2")
    assert changelog not in admin.list_topics(), "nothing was begun"

    admin.delete_group(words.application_id)
    run_all(words, connection, "process/2")
    assert counted(connection) == {b"w0": 10, b"w1": 10, b"w2": 10}, "both are gone: it begins anew"


@pytest.mark.parametrize(
    ("edited", "left"),
    [
        ("words_of_another_store", "counts-changelog"),
        ("words_by_another_repartition", "by-word-repartition"),
    ],
)
def test_an_edit_that_would_leave_topics_behind_is_refused(
    edited: str, left: str, connection: KafkaConnection, words: PipelineApplication
) -> None:
    admin, topic = ClusterAdmin(connection), f"{words.application_id}-{left}"
    write_words(connection, 0, 30)
    run_all(words, connection, "process/1")
    topics = admin.list_topics()
    after = words.model_copy(update={"pipeline": f"tests.support.words_pipeline:{edited}"})
    with pytest.raises(Refused, match=f"internal topics {topic}: found in the run before"):
        prepare(after, connection, "process/2")
    assert admin.list_topics() == topics, "nothing was begun"
    run_all(words, connection, "process/2")


def test_who_deletes_the_topics_of_a_store_has_said_that_it_is_not_wanted(
    connection: KafkaConnection, words: PipelineApplication
) -> None:
    write_words(connection, 0, 30)
    run_all(words, connection, "process/1")
    ClusterAdmin(connection).delete_topics([f"{words.application_id}-counts-changelog"])
    after = words.model_copy(update={"pipeline": "tests.support.words_pipeline:words_of_another_store"})
    write_words(connection, 30, 30)
    run_all(after, connection, "process/2")
    assert counted(connection) == {b"w0": 10, b"w1": 10, b"w2": 10}, "the new one counts from now on"
