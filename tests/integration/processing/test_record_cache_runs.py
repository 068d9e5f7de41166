"""A pipeline with a record cache on a broker: fewer records, the same state, the same reports of failures."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.core.errors import RescaleError
from kafka_rescale.core.pipeline import STRING, StreamsBuilder
from kafka_rescale.core.pipeline.failure import culprit
from kafka_rescale.core.pipeline.task import SubTopology
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.operations.application.load import load_pipeline_application
from kafka_rescale.operations.processing.stream_threads import add_stream_thread, remove_stream_thread
from kafka_rescale.spark.processing.run import run_task
from kafka_rescale.spark.processing.task_work import TaskDone, TaskLimits, TaskWork

from testbed.broker import EmbeddedBroker
from tests.support.processing import inline_jobs
from tests.support.processing.counted import Counted, write
from tests.support.words_pipeline import write_pipeline

pytestmark = pytest.mark.integration

ROOMY, NARROW = 10_485_760, 600
LIMITS = TaskLimits(batch_records=50, records=150)
RECORDS, KEYS = 600, 12


def summed() -> SubTopology:
    builder = StreamsBuilder()
    read = builder.stream("left", "right", key=STRING, value=STRING)
    table = read.group_by_key().reduce(lambda a, v: f"{a[-20:]}{v}", store="kept")
    table.to_stream().filter(lambda key, value: int(key) >= 0).to("out")
    return builder.build().sub_topologies()[0]


@pytest.fixture
def connection(broker: EmbeddedBroker) -> KafkaConnection:
    return KafkaConnection(broker.client_config())


def counted(connection: KafkaConnection, name: str, directory: Path, inputs: str) -> Counted:
    made = Counted(connection, name, directory / name, inputs=inputs, partitions=1, made=summed)
    made.create()
    return made


def run(pipeline: Counted, cache_bytes: int) -> TaskDone:
    work = replace(pipeline.work(0, LIMITS), cache_bytes=cache_bytes)
    return run_task(pipeline.connection, work, pipeline.part)


def latest(rows: list[tuple[Any, ...]]) -> dict[bytes, Any]:
    return {key: value for key, value, *_ in rows}


def test_a_cache_writes_a_key_once_per_commit_and_ends_with_the_same_state(
    connection: KafkaConnection, unique: str, tmp_path: Path
) -> None:
    chance = random.Random(7)
    names = {size: f"{unique}-{size}" for size in (0, NARROW, ROOMY)}
    pipelines = {size: counted(connection, name, tmp_path, unique) for size, name in names.items()}
    for part in range(2):
        # The second run restores from files or changelogs, and its cache is empty at first.
        records = [
            ("left", 0, b"%d" % chance.randrange(KEYS), b"%d," % n, part * RECORDS + n) for n in range(RECORDS)
        ]
        write(connection, unique, records)
        for size, pipeline in pipelines.items():
            assert run(pipeline, size).records == RECORDS
    left = {size: pipeline.left() for size, pipeline in pipelines.items()}
    for topic in left[0]:
        written = {size: len(found[topic]) for size, found in left.items()}
        commits = 2 * RECORDS // LIMITS.records
        assert written[0] == 2 * RECORDS
        assert written[ROOMY] == commits * KEYS, "a key is written once per commit"
        assert written[ROOMY] < written[NARROW] < written[0], "a small cache evicts"
        assert latest(left[ROOMY][topic]) == latest(left[NARROW][topic]) == latest(left[0][topic])


def test_a_function_that_fails_behind_the_cache_is_told_by_the_record_that_it_fails_with(
    connection: KafkaConnection, unique: str, tmp_path: Path
) -> None:
    pipeline = counted(connection, unique, tmp_path, unique)
    keys = [b"1", b"2", b"three", b"4"]
    write(connection, unique, [("left", 0, key, b"v", number) for number, key in enumerate(keys)])
    with pytest.raises(ValueError, match="three") as failed:
        run(pipeline, ROOMY)
    found = culprit(failed.value)
    assert found is not None
    assert found.offset == 2
    assert not isinstance(failed.value, RescaleError)
    assert [key for key, *_ in pipeline.left()["out-0"]] == [b"1", b"2"], "what came before is committed"


def test_the_cache_is_divided_anew_when_threads_are_added_and_removed(
    connection: KafkaConnection, unique: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sum over all tasks that run side by side never exceeds the size in the file."""
    admin, total, seen = ClusterAdmin(connection), 1_000_000, list[tuple[int, int]]()
    admin.delete_topics(["lines", "counted"])
    for topic in ("lines", "counted"):
        admin.ensure_topic(topic, 6, 1, {})

    def parallelize(works: Sequence[TaskWork], _: int) -> inline_jobs.Rdd:
        seen.append((len(works), works[0].cache_bytes))
        return inline_jobs.Rdd(works)

    context = inline_jobs.context_of(parallelize)
    monkeypatch.setattr(inline_jobs, "session", lambda _: SimpleNamespace(sparkContext=context))
    changes = {"num.stream.threads": 2, "statestore.cache.max.bytes": total}
    application = load_pipeline_application(write_pipeline(tmp_path, application_id=unique, **changes))

    def run_with(threads: int, number: int) -> None:
        seen.clear()
        inline_jobs.run_all(application, connection, f"run-{number}")
        assert len(seen) >= threads, "each thread has tasks"
        assert {cache for _, cache in seen} == {total // threads // tasks for tasks, _ in seen}

    run_with(2, 1)
    assert add_stream_thread(unique, connection)
    run_with(3, 2)
    assert remove_stream_thread(unique, connection)
    assert remove_stream_thread(unique, connection)
    run_with(1, 3)
