"""A pipeline run as its DAG does it: topics and assignment, then each level by a real ``spark-submit``."""

from __future__ import annotations

import math
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest
from confluent_kafka import Producer
from kafka_rescale.core.application.pipeline import PipelineApplication
from kafka_rescale.core.errors import Refused, TimedOut, UnsafeState
from kafka_rescale.core.pipeline import LONG
from kafka_rescale.core.processing.adjustments import Adjustments
from kafka_rescale.core.processing.request import ProcessRequest
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.kafka.reading.range_reader import read_ranges
from kafka_rescale.operations.application.load import load_pipeline_application
from kafka_rescale.operations.processing.prepare import MADE_BEFORE, is_idle, prepare
from kafka_rescale.operations.processing.stream_threads import add_stream_thread, remove_stream_thread

from testbed.broker import EmbeddedBroker
from tests.integration.spark_job_helpers import ROOT, RUN, submitted
from tests.support.words_pipeline import write_pipeline

pytestmark = pytest.mark.integration
WORDS = [b"one", b"two", b"two", b"three", b"three", b"three"] * 50


@pytest.fixture
def connection(broker: EmbeddedBroker) -> KafkaConnection:
    return KafkaConnection(broker.client_config())


def declared(directory: Path, name: str) -> PipelineApplication:
    return load_pipeline_application(write_pipeline(directory, application_id=name, **{"num.stream.threads": 1}))


def request(application: PipelineApplication, level: int) -> ProcessRequest:
    return ProcessRequest.of(application, f"{application.application_id}-StreamThread-1", level)


def test_a_pipeline_whose_inputs_do_not_exist_is_refused(
    connection: KafkaConnection, unique: str, tmp_path: Path
) -> None:
    ClusterAdmin(connection).delete_topics(["lines", "counted"])
    with pytest.raises(Refused, match="counted, lines"):
        prepare(declared(tmp_path, unique), connection, RUN)
    assert not [t for t in ClusterAdmin(connection).list_topics() if t.startswith(unique)]


def test_two_levels_by_spark(connection: KafkaConnection, unique: str, tmp_path: Path) -> None:
    admin, application = ClusterAdmin(connection), declared(tmp_path, unique)
    for topic in ("lines", "counted"):
        admin.ensure_topic(topic, 2, 1, {"retention.ms": "-1"})
    producer = Producer(connection.client())
    for number, word in enumerate(WORDS):
        producer.produce("lines", word, None, number % 2, timestamp=1_700_000_000_000 + number)
    assert producer.flush(30) == 0

    prepared = prepare(application, connection, RUN)
    assert prepared.created == (f"{unique}-by-word-repartition", f"{unique}-counts-changelog")
    assert prepare(application, connection, RUN).created == ()
    for level in (1, 2):
        wanted = request(application, level)
        assert not is_idle(application, connection, RUN, wanted)
        arguments = ["--request", wanted.model_dump_json()]
        with submitted(connection, tmp_path, "process", unique, *arguments, path=str(ROOT)) as job:
            assert job.result() == 0, job.text()
        result = ControlTopic(connection, unique).read().results[wanted.key]
        assert (result.state, result.records) == ("done", len(WORDS))
        assert all(p.position == p.end for p in result.partitions)
        assert is_idle(application, connection, RUN, wanted)

    ends = admin.end_offsets(["counted"])["counted"]
    ranges = {partition: (0, end) for partition, end in ends.items()}
    counts = {m.key(): LONG.decode(m.value()) for m in read_ranges(connection, "counted", ranges)}
    assert counts == Counter(WORDS)
    repartition = f"{unique}-by-word-repartition"
    assert admin.begin_offsets([repartition]) == admin.end_offsets([repartition]), "what was processed is deleted"
    assert not is_idle(application, connection, "another run", request(application, 1))


def test_what_another_run_was_assigned_is_refused(
    connection: KafkaConnection, unique: str, tmp_path: Path
) -> None:
    admin, application = ClusterAdmin(connection), declared(tmp_path, unique)
    for topic in ("lines", "counted"):
        admin.ensure_topic(topic, 2, 1, {"retention.ms": "-1"})
    prepare(application, connection, "process_words/newer")
    arguments = ["--request", request(application, 1).model_dump_json()]
    with submitted(connection, tmp_path, "process", unique, *arguments, path=str(ROOT)) as job:
        assert job.result() == 1
    assert (
        "A newer run has begun"
        in ControlTopic(connection, unique).read().results[request(application, 1).key].detail
    )


def test_threads_are_added_and_removed_between_runs(
    connection: KafkaConnection, unique: str, tmp_path: Path
) -> None:
    admin, application = ClusterAdmin(connection), declared(tmp_path, unique)
    assert add_stream_thread(unique, connection) is None, "a pipeline that has never run has no threads"
    for topic in ("lines", "counted"):
        admin.ensure_topic(topic, 2, 1, {"retention.ms": "-1"})
    prepare(application, connection, "process/1")
    assert add_stream_thread(unique, connection) == f"{unique}-StreamThread-2"
    second = prepare(application, connection, "process/2").processing
    assert [(t.name[-1], len(t.tasks)) for t in second.threads] == [("1", 2), ("2", 2)]
    with pytest.raises(TimedOut, match=r"Timed out after 0 s waiting for stream thread .*-1 to end"):
        remove_stream_thread(unique, connection, timeout_seconds=0)
    third = prepare(application, connection, "process/3").processing
    assert [(t.name[-1], len(t.tasks)) for t in third.threads] == [("2", 4)]
    assert add_stream_thread(unique, connection) == f"{unique}-StreamThread-1", "the lowest index that is free"


def test_adding_blocks_until_the_thread_has_started_and_removing_until_it_is_gone(
    connection: KafkaConnection, unique: str, tmp_path: Path
) -> None:
    admin, application = ClusterAdmin(connection), declared(tmp_path, unique)
    for topic in ("lines", "counted"):
        admin.ensure_topic(topic, 2, 1, {"retention.ms": "-1"})
    prepare(application, connection, "process/1")
    waits, said = Event(), list[str]()

    def say(line: str) -> None:
        said.append(line)
        waits.set()

    with ThreadPoolExecutor(1) as beside:
        for number, (change, name) in enumerate(((add_stream_thread, "2"), (remove_stream_thread, "1")), start=2):
            waits.clear()
            blocked = beside.submit(change, unique, connection, timeout_seconds=math.inf, say=say)
            assert waits.wait(60)
            assert not blocked.done()
            prepare(application, connection, f"process/{number}")
            assert blocked.result(60) == f"{unique}-StreamThread-{name}"
    assert [line.partition(". ")[0] for line in said] == [
        f"Waiting for stream thread {unique}-StreamThread-2 to start: it is STARTING",
        f"Waiting for stream thread {unique}-StreamThread-1 to end: it is PENDING_SHUTDOWN and has 0_0, 0_1",
    ]
    assert all(f"with the next run of process_{unique}" in line for line in said)


def test_a_timeout_that_expires_says_what_was_waited_for_and_takes_nothing_back(
    connection: KafkaConnection, unique: str, tmp_path: Path
) -> None:
    admin, application = ClusterAdmin(connection), declared(tmp_path, unique)
    for topic in ("lines", "counted"):
        admin.ensure_topic(topic, 2, 1, {"retention.ms": "-1"})
    prepare(application, connection, "process/1")
    with pytest.raises(TimedOut, match=rf"Timed out after 0.1 s waiting for stream thread {unique}.*-2 to start"):
        add_stream_thread(unique, connection, timeout_seconds=0.1)
    assert len(prepare(application, connection, "process/2").processing.running) == 2


def test_a_thread_that_ends_before_it_has_started_is_not_waited_for(
    connection: KafkaConnection, unique: str, tmp_path: Path
) -> None:
    admin, application = ClusterAdmin(connection), declared(tmp_path, unique)
    for topic in ("lines", "counted"):
        admin.ensure_topic(topic, 2, 1, {"retention.ms": "-1"})
    prepare(application, connection, "process/1")
    waits = Event()
    with ThreadPoolExecutor(1) as beside:
        blocked = beside.submit(
            add_stream_thread, unique, connection, timeout_seconds=60, say=lambda _: waits.set()
        )
        assert waits.wait(60)
        assert [remove_stream_thread(unique, connection)[-1:] for _ in range(2)] == ["1", "2"]
        with pytest.raises(UnsafeState, match="its end before it has started"):
            blocked.result(60)


def test_an_older_run_that_is_cleared_repeats_nothing_that_was_asked_for(
    connection: KafkaConnection, unique: str, tmp_path: Path
) -> None:
    admin, application = ClusterAdmin(connection), declared(tmp_path, unique)
    for topic in ("lines", "counted"):
        admin.ensure_topic(topic, 2, 1, {"retention.ms": "-1"})
    asked = Adjustments(add_to=unique)
    first = prepare(application, connection, "process/1", asked)
    assert first.adjustments == (
        f"no thread added: {unique} starts with this run, with as many threads as the file gives it",
    )
    assert len(first.processing.running) == 1
    second = prepare(application, connection, "process/2", asked)
    assert (second.adjustments, len(second.processing.running)) == ((f"added {unique}-StreamThread-2",), 2)
    assert f"added {unique}-StreamThread-2" in str(second)
    assert len(prepare(application, connection, "process/3").processing.running) == 2
    cleared = prepare(application, connection, "process/2", asked)
    assert cleared.adjustments == (MADE_BEFORE,)
    assert (cleared.processing.run, len(cleared.processing.running)) == ("process/2", 2)
