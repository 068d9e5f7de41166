"""One task of a pipeline on a real broker: what it writes, what it remembers, and how it works without that."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as KafkaPartition
from kafka_rescale.core.errors import InvalidInput, UnsafeState
from kafka_rescale.core.partitioning.partitioners import partitioner_named
from kafka_rescale.core.pipeline import LONG, STRING, StreamsBuilder
from kafka_rescale.core.pipeline.task import Emitted, Record, SubTopology
from kafka_rescale.core.processing.backfill import Backfill
from kafka_rescale.core.processing.task_state import TaskMark
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.processing.task_producer import TaskProducer
from kafka_rescale.spark.processing.run import run_task
from kafka_rescale.spark.processing.task_work import TaskLimits

from testbed.broker import EmbeddedBroker
from tests.support.processing.counted import SMALL, T0, Counted, write
from tests.support.processing.counting_pipeline import CountingProcessor

pytestmark = pytest.mark.integration

KEYS = [b"k%d" % number for number in range(5)]
HOME_OF_K1 = partitioner_named("murmur2").partition(b"k1", 2)


def made(first: int, count: int) -> Iterator[tuple[str, int, bytes, bytes, int]]:
    """Records of both inputs in both partitions, one every 10 ms. In the log, ``right`` comes before ``left``."""
    for number in range(first, first + count):
        source = ("right", "left")[number // 3 % 2]
        yield source, number % 2, KEYS[number % 5], b"v%d" % number, 10 * number


@pytest.fixture
def counted(broker: EmbeddedBroker, unique: str, tmp_path: Path) -> Counted:
    application = Counted(KafkaConnection(broker.client_config()), unique, tmp_path)
    application.create()
    return application


def counts_in(counted: Counted, partition: int) -> list[int | None]:
    """The counts that a task has logged, in order. None is a deletion."""
    return [None if value is None else int(value) for _, value, _, _ in counted.left()[f"counts-{partition}"]]


def test_outputs_changelog_and_offsets_are_those_of_the_input(counted: Counted) -> None:
    write(counted.connection, counted.name, made(0, 100))
    done = counted.run()
    assert [d.records for d in done] == [50, 50]
    assert [d.emitted for d in done] == [50, 50]
    assert all(d.transactions >= 3 for d in done), "a range that is long is several transactions"
    left = counted.left()
    assert sorted(len(left[f"counts-{p}"]) for p in (0, 1)) == [50, 50]
    assert {key for key, *_ in left["counts-0"]} == set(KEYS)
    second = (b"k1", b"1|right|v1|%d" % (T0 + 10), T0 + 10, [("n", b"10")])
    assert [second in left[f"out-{home}"] for home in range(2)] == [home == HOME_OF_K1 for home in range(2)]
    ends = counted.admin.end_offsets(counted.names[s] for s in ("left", "right"))
    assert counted.committed() == ends


def test_inputs_are_merged_by_timestamp_whatever_the_order_of_their_topics(counted: Counted) -> None:
    write(counted.connection, counted.name, made(0, 100))
    counted.run()
    times = [at for _, _, at, _ in counted.left()["counts-0"]]
    assert times == sorted(times) == [T0 + 10 * number for number in range(0, 100, 2)]


def test_the_next_run_goes_on_from_its_files_and_reads_nothing_of_the_changelog(counted: Counted) -> None:
    write(counted.connection, counted.name, made(0, 100))
    first = counted.run()
    assert [(d.restored, d.full_restores) for d in first] == [(0, 1)] * 2
    write(counted.connection, counted.name, made(100, 50))
    second = counted.run()
    assert [(d.records, d.restored, d.full_restores) for d in second] == [(25, 0, 0)] * 2
    assert max(counts_in(counted, 0)) == 15
    assert [d.stream_time_ms for d in second] == [T0 + 1480, T0 + 1490]


def test_a_run_without_input_does_nothing(counted: Counted) -> None:
    write(counted.connection, counted.name, made(0, 20))
    counted.run()
    before = counted.left()
    assert [(d.records, d.transactions) for d in counted.run()] == [(0, 0)] * 2
    assert counted.left() == before


def test_offsets_are_renewed_before_they_expire(counted: Counted) -> None:
    write(counted.connection, counted.name, made(0, 20))
    counted.run()
    assert [d.transactions for d in counted.run(replace(SMALL, renew_ms=0))] == [1, 1]
    write(counted.connection, counted.name, [("left", 1, b"late", b"v", 0)])
    assert counted.run()[1].stream_time_ms == T0 + 190, "the stream time was renewed with them"


def test_a_restore_commits_the_same_offsets_again_and_again_as_a_sign_of_progress(
    counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafka_rescale.spark.processing.logged_store.SIGN_RECORDS", 10)
    write(counted.connection, counted.name, made(0, 100))
    counted.run()
    shutil.rmtree(counted.state_dir)
    write(counted.connection, counted.name, made(100, 10))
    commits: list[list[tuple[int, str]]] = []
    commit = TaskProducer.commit

    def noted(producer: TaskProducer, offsets: list[KafkaPartition], consumer: Consumer) -> None:
        commits.append([(each.offset, TaskMark.of(each.metadata).checkpoint) for each in offsets])
        commit(producer, offsets, consumer)

    monkeypatch.setattr(TaskProducer, "commit", noted)
    first = counted.run(replace(SMALL, sign_seconds=0))
    assert [(d.restored, d.full_restores, d.transactions) for d in first] == [(50, 1, 1)] * 2
    signs = commits[:5]
    assert all(sign == signs[0] != commits[5] for sign in signs), "then the records that have come in"
    assert max(counts_in(counted, 0)) == 11


def test_deletions_are_kept_over_runs(counted: Counted) -> None:
    write(counted.connection, counted.name, made(0, 20))
    counted.run()
    write(counted.connection, counted.name, [("left", 0, b"k0", b"forget", 1000)])
    counted.run()
    write(counted.connection, counted.name, [("left", 0, b"k0", b"again", 2000)])
    counted.run()
    assert counts_in(counted, 0)[-3:] == [2, None, 1]


@pytest.mark.parametrize("lost", ["everything", "the newest manifest", "a file", "a byte of a file"])
def test_state_that_is_missing_or_damaged_comes_from_the_changelog(
    counted: Counted, lost: str, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(3):
        write(counted.connection, counted.name, made(20 * number, 20))
        counted.run()
    files = sorted((counted.state_dir / counted.name / "0_0" / "counts").iterdir())
    if lost == "everything":
        shutil.rmtree(counted.state_dir / counted.name)
    elif lost == "the newest manifest":
        max(f for f in files if f.name.startswith("manifest-")).unlink()
    elif lost == "a file":
        next(f for f in files if f.name.startswith("base-")).unlink()
    else:
        base = next(f for f in files if f.name.startswith("base-"))
        content = bytearray(base.read_bytes())
        content[len(content) // 2] ^= 1
        base.write_bytes(content)
    write(counted.connection, counted.name, made(60, 20))
    done = counted.run()[0]
    newest_only = lost == "the newest manifest"
    assert (done.full_restores, done.restored > 0) == (0 if newest_only else 1, True)
    assert done.restored < 30 or not newest_only
    assert max(counts_in(counted, 0)) == 8


def test_a_place_for_state_that_can_not_be_read_costs_only_time(
    counted: Counted, caplog: pytest.LogCaptureFixture
) -> None:
    write(counted.connection, counted.name, made(0, 20))
    counted.run()
    place = counted.state_dir / counted.name / "0_0" / "counts"
    shutil.rmtree(place)
    place.write_text("no directory")
    write(counted.connection, counted.name, made(20, 20))
    assert [d.full_restores for d in counted.run()] == [1, 0]
    assert max(counts_in(counted, 0)) == 4
    assert "can't be read" in caplog.text


def test_state_of_a_changelog_that_was_made_anew_is_not_used(counted: Counted) -> None:
    write(counted.connection, counted.name, made(0, 40))
    counted.run()
    counted.admin.delete_topics([counted.changelog])
    counted.create_changelog()
    write(counted.connection, counted.name, made(40, 20))
    assert [d.full_restores for d in counted.run()] == [1, 1]
    assert max(counts_in(counted, 0)) == 2, "the changelog is what counts"


def test_offsets_that_are_gone_while_there_is_state_are_refused(counted: Counted) -> None:
    write(counted.connection, counted.name, made(0, 20))
    counted.run()
    counted.admin.delete_group(counted.name)
    with pytest.raises(UnsafeState, match="no committed offset"):
        counted.run()


def test_input_that_was_deleted_before_it_was_processed_is_refused(counted: Counted) -> None:
    write(counted.connection, counted.name, made(0, 20))
    counted.run()
    write(counted.connection, counted.name, made(20, 20))
    ends = counted.admin.end_offsets([counted.names["left"]])
    counted.admin.delete_records(ends)
    with pytest.raises(UnsafeState, match="deleted before they were processed"):
        counted.run()


def test_a_record_without_a_real_timestamp_is_not_given_another_one(counted: Counted) -> None:
    write(counted.connection, counted.name, [*made(0, 20), ("left", 0, b"k0", b"v", 1 - T0)])
    assert [d.records for d in counted.run()] == [11, 10]
    producer = TaskProducer(counted.connection, f"{counted.name}-0_0")
    with pytest.raises(UnsafeState, match="timestamp 0"), producer.transaction():
        producer.produce(counted.names["out"], b"v", b"k", 0, timestamp=0)
    producer.abort()


def test_transactions_end_by_time_however_long_a_record_takes(
    counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    processed = CountingProcessor.process

    def slowly(self: CountingProcessor, record: Record) -> list[Emitted]:
        time.sleep(0.02)
        return processed(self, record)

    monkeypatch.setattr(CountingProcessor, "process", slowly)
    write(counted.connection, counted.name, made(0, 100))
    done = counted.run(TaskLimits(seconds=0.1))
    assert [d.records for d in done] == [50, 50]
    assert all(d.transactions >= 5 for d in done)


def test_records_that_a_backfill_passes_over_hold_no_transaction_open(counted: Counted) -> None:
    write(counted.connection, counted.name, made(0, 100))
    interval = Backfill(start_ms=T0, end_ms=T0 + 20, outputs={})
    done = run_task(counted.connection, replace(counted.work(0), backfill=interval), counted.part)
    assert (done.records, done.emitted) == (1, 1)
    assert done.transactions >= 3, "what is behind the interval may be hours of reading"
    assert counted.committed()[counted.names["left"]][0] == counted.work(0).ends[counted.names["left"], 0]


def picky() -> SubTopology:
    builder = StreamsBuilder()
    read = builder.stream("left", "right", key=STRING, value=LONG).map_values(lambda value: 60 // value)
    read.group_by_key().count(store="counts").to_stream().to("out")
    return builder.build().sub_topologies()[0]


@pytest.mark.parametrize(("stray", "error"), [(LONG.encode(0), ZeroDivisionError), (b"no number", InvalidInput)])
def test_what_came_before_a_record_that_the_pipeline_fails_with_is_committed(
    broker: EmbeddedBroker, unique: str, tmp_path: Path, stray: bytes, error: type[Exception]
) -> None:
    counted = Counted(KafkaConnection(broker.client_config()), unique, tmp_path, partitions=1, made=picky)
    counted.create()
    numbers = [("left", 0, b"k%d" % (n % 3), LONG.encode(n), 10 * n) for n in range(1, 13)]
    write(counted.connection, unique, [*numbers[:9], ("left", 0, b"k0", stray, 95), *numbers[9:]])
    for _ in range(2):
        with pytest.raises(error):
            counted.run(TaskLimits())
        assert counted.committed()[counted.names["left"]] == {0: 9}, "a person may go on behind it"
        assert len(counted.left()["out-0"]) == 9
