"""A live pipeline grows while its processes are killed: first its partitions, then its processors (KIP-287)."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from kafka_rescale.core.control.keys import Concern
from kafka_rescale.core.errors import Fenced, UnsafeState
from kafka_rescale.core.partitioning.linear_hashing import LinearHashing
from kafka_rescale.core.processing.request import WarmUpRequest
from kafka_rescale.core.processing.state_copies import NewTask
from kafka_rescale.kafka.admin.transactions import wait_until_complete
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.processing.hand_over import HandOver
from kafka_rescale.kafka.processing.task_producer import TaskProducer
from kafka_rescale.kafka.reading.committed import COMMITTED_SECONDS, copy_consumer
from kafka_rescale.operations.processing.prepare import is_idle, prepare
from kafka_rescale.operations.processing.processors import expand_processors
from kafka_rescale.spark.processing.run import run_task

from testbed.broker import EmbeddedBroker
from testbed.processes import wait_until
from tests.integration.spark_job_helpers import ROOT, submitted
from tests.support.processing.folding_pipeline import STORE
from tests.support.processing.growing import INITIAL, Growing
from tests.support.processing.growing_control import (
    both,
    grow_input,
    live_and_control,
    moved_between,
    same_results,
)
from tests.support.processing.growing_load import under_load, write
from tests.support.processing.inline_jobs import requests
from tests.support.processing.killed import SECONDS, killed_call, lines_of

pytestmark = pytest.mark.integration


@pytest.fixture
def connection(broker: EmbeddedBroker) -> KafkaConnection:
    return KafkaConnection(broker.client_config())


def test_partitions_grow_then_processors_and_nothing_moves_between_existing_ones(
    connection: KafkaConnection, unique: str, tmp_path: Path
) -> None:
    live, control = live_and_control(connection, unique, tmp_path)
    for known, numbers in ((2, range(300)), (2, range(300, 400)), (8, range(400, 700)), (8, range(700, 1_000))):
        if known == 8:
            live.admin.grow_topic(live.topic, 8)
        write(connection, live.topic, known, numbers)
        write(connection, control.topic, 2, numbers)
        live.run()
        control.run()
        assert (live.counts.initial, live.counts.count) == (2, 2)
    before = live.state()
    same_results(live, control, processors=2)

    expand_processors(live.application, connection, 4)
    said = live.run()
    assert "goes from 2 to 4 processors: task 0_2 has" in said, "the old ones process until the new ones are warm"
    assert live.counts.count == 2
    said = live.run()
    assert "in this run" in said
    # Each input record made a changelog record. Compaction removes some of those before and after the copy.
    moves = [LinearHashing(INITIAL).partition(m.key(), 4) > 1 for m in live.records(live.topic)]
    left = [m for m in live.records(live.changelog) if m.partition() < 2 and m.value() is not None]
    still = sum(LinearHashing(INITIAL).partition(m.key(), 4) > 1 for m in left)
    assert live.counts.count == 4
    assert 0 < still <= live.counts.copied <= sum(moves)
    write(connection, live.topic, 8, range(1_000, 1_300))
    write(connection, control.topic, 2, range(1_000, 1_300))
    live.run()
    control.run()
    same_results(live, control, processors=4)
    assert moved_between(live, {0, 1}) == set()
    assert sum(map(len, before.values())) == 60


def test_new_processors_warm_up_on_the_clients_of_those_that_they_are_split_from(
    connection: KafkaConnection, unique: str, tmp_path: Path
) -> None:
    live, control = live_and_control(connection, unique, tmp_path, clients=("a", "b"))
    both(live, control, 2, range(400))
    live.run()
    live.admin.grow_topic(live.topic, 4)
    both(live, control, 4, range(400, 500))
    live.run()
    owners = live.owners()
    assert set(owners.values()) == {"a", "b"}

    expand_processors(live.application, connection, 4)
    live.run()
    for new, split in (("0_2", "0_0"), ("0_3", "0_1")):
        saved = [c for c in "ab" if list((live.state_dir / c).glob(f"*/{new}/{STORE}/manifest-*"))]
        assert saved == [owners[split]]
        assert live.saved(owners[split], int(new[-1])) == live.state()[int(new[-1])]
    both(live, control, 4, range(500, 520))
    assert "in this run" in live.run()
    assert live.owners() == {**owners, "0_2": owners["0_0"], "0_3": owners["0_1"]}, "who has warmed up has them"
    both(live, control, 4, range(520, 600))
    live.run()
    control.run()
    same_results(live, control, processors=4)


def test_what_has_moved_is_deleted_by_a_later_run_if_the_one_that_switched_was_killed(
    connection: KafkaConnection, unique: str, tmp_path: Path
) -> None:
    live, _ = live_and_control(connection, unique, tmp_path)
    live.inline = True
    write(connection, live.topic, 2, range(100))
    live.run()
    live.admin.grow_topic(live.topic, 4)
    live.run()
    expand_processors(live.application, connection, 4)
    assert "in this run" in str(live.assign())
    prepared = live.assign()
    asked = requests(live.application, prepared.processing.running, 1)
    assert not any(is_idle(live.application, connection, live.run_id, request) for request in asked)
    live.run()
    assert LinearHashing(INITIAL).partition_batch(list(live.state()[0]), 4) == [0] * len(live.state()[0])
    live.assign()
    assert all(is_idle(live.application, connection, live.run_id, request) for request in asked)


def test_without_the_record_of_its_processors_a_pipeline_goes_on_only_if_none_were_added(
    connection: KafkaConnection, unique: str, tmp_path: Path
) -> None:
    live, control = live_and_control(connection, unique, tmp_path)

    def lose_the_record() -> None:
        live.control.update(lambda _: {Concern.PROCESSORS: None, Concern.PROCESSING: None})

    both(live, control, 2, range(200))
    live.run()
    live.admin.grow_topic(live.topic, 8)
    lose_the_record()
    both(live, control, 8, range(200, 300))
    live.run()
    control.run()
    assert (live.counts.initial, live.counts.count) == (2, 2)
    same_results(live, control, processors=2)

    expand_processors(live.application, connection, 4)
    live.run()
    assert "in this run" in live.run()
    lose_the_record()
    both(live, control, 8, range(300, 400))
    before = live.outputs()
    with pytest.raises(UnsafeState, match="by linear hashing over the initial 4"):
        live.run()
    assert live.outputs() == before


@pytest.fixture
def grown(connection: KafkaConnection, unique: str, tmp_path: Path) -> tuple[Growing, Growing]:
    """An application of two processors whose topic has grown to 8, and a control that never grows.

    Both get 500 records.
    """
    live, control = live_and_control(connection, unique, tmp_path)
    grow_input(live, control, 8)
    return live, control


def test_processors_are_added_to_a_pipeline_that_writes_more_than_the_acceptable_lag_in_every_run(
    connection: KafkaConnection, unique: str, tmp_path: Path
) -> None:
    live, control = live_and_control(connection, unique, tmp_path, acceptable_lag=0)
    grow_input(live, control, 8)
    expand_processors(live.application, connection, 4)
    for number in (500, 600):
        both(live, control, 8, range(number, number + 100))
        assert "offsets to restore" in live.run(), "a warm-up that ends before the run does is always behind"

    live.inline, live.follows = False, True
    both(live, control, 8, range(700, 800))
    assert "offsets to restore" in live.run()
    both(live, control, 8, range(800, 900))
    assert "in this run" in live.run()
    control.run()
    same_results(live, control, processors=4)


def test_what_is_written_while_a_processor_warms_up_is_restored_before_it_consumes(
    grown: tuple[Growing, Growing],
) -> None:
    live, control = grown
    expand_processors(live.application, live.connection, 4)
    live.run()
    restored, ends = live.restored(), live.admin.end_offsets([live.changelog])[live.changelog]
    assert restored == {2: ends[0], 3: ends[1]}, "T2 is the end that the changelogs had"
    both(live, control, 8, range(500, 560))
    for work in live.works():
        run_task(live.connection, work, live.part)
    assert live.restored() == restored, "the old processors have gone on, to T1"
    live.run()
    control.run()
    assert live.counts.count == 4
    same_results(live, control, processors=4)


def test_files_of_a_new_processor_hold_what_they_stand_for_also_while_readers_do_not_see_it_yet(
    grown: tuple[Growing, Growing],
) -> None:
    live, _ = grown
    expand_processors(live.application, live.connection, 4)
    live.assign()
    # A commit returns before its marker is written. Until then it hides later records, as this open one does.
    unseen = TaskProducer(live.connection, f"{live.topic}-unseen")
    with unseen.transaction():
        unseen.produce(live.changelog, b"none", b"none", 2, timestamp=1)
    wait_until(
        lambda: live.admin.end_offsets([live.changelog], read_committed=False)[live.changelog][2] > 0,
        timeout=SECONDS,
        what="a record in the log",
    )
    threading.Timer(3.0, unseen.abort).start()
    live.warm_up()
    wait_until_complete(live.admin, [live.changelog])
    (client,) = live.application.members
    for processor in (2, 3):
        held = live.state()[processor]
        assert held
        assert live.saved(client.client_id, processor) == held


def test_nobody_waits_for_the_offsets_of_a_run_that_was_killed_before_it_could_commit_them(
    grown: tuple[Growing, Growing],
) -> None:
    live, control = grown
    expand_processors(live.application, live.connection, 4)
    live.run()
    both(live, control, 8, range(500, 600))
    name = live.application.application_id
    killed, consumer = TaskProducer(live.connection, f"{name}-0_0"), copy_consumer(live.connection, name)
    with killed.transaction():
        group = consumer.consumer_group_metadata()
        killed._producer.send_offsets_to_transaction([TopicPartition(live.topic, 0, 10**6)], group, SECONDS)
    consumer.close()
    began = time.monotonic()
    assert "in this run" in live.run()
    assert time.monotonic() - began < COMMITTED_SECONDS
    control.run()
    same_results(live, control, processors=4)


def test_a_stale_run_of_an_old_processor_is_fenced_wherever_it_comes_in(
    grown: tuple[Growing, Growing], monkeypatch: pytest.MonkeyPatch
) -> None:
    live, control = grown
    expand_processors(live.application, live.connection, 4)
    live.run()
    both(live, control, 8, range(500, 600))
    stale = live.works()
    finish = HandOver._finish

    def come_in_between(over: HandOver, task: NewTask) -> None:
        finish(over, task)
        for work in stale:
            run_task(live.connection, work, live.part)

    with monkeypatch.context() as patched:
        patched.setattr(HandOver, "_finish", come_in_between)
        with pytest.raises(Fenced):
            live.run()
    assert live.counts.count == 2
    live.run()
    assert live.counts.count == 4
    before = live.outputs()
    for work in stale:
        with pytest.raises(Fenced, match="committed with 4 processors"):
            run_task(live.connection, work, live.part)
    control.run()
    assert live.outputs() == before
    same_results(live, control, processors=4)


def killed_while_growing(grown: tuple[Growing, Growing], seed: int, kills: int) -> None:
    """Kill so many runs, between the first request for processors and the last hand-over."""
    live, control = grown
    expand_processors(live.application, live.connection, 4)
    lines, killed, rounds, at = lines_of(live.run), 0, 0, 500
    while live.counts.count < 8 or killed < kills:
        assert rounds < 10 * kills
        if (live.counts.count, live.counts.expanding_to) == (4, 0):
            expand_processors(live.application, live.connection, 8)
        rounds, at = rounds + 1, at + 30
        both(live, control, 8, range(at - 30, at))
        live.runs += 1
        if killed < kills:
            killed += killed_call(live.run, seed=100 * seed + rounds, lines=lines)
        else:
            live.run()
    live.run()
    control.run()
    same_results(live, control, processors=8)
    assert moved_between(live, {0, 1}) == set()


def test_a_run_that_is_killed_while_processors_are_added_leaves_exactly_once_results(
    grown: tuple[Growing, Growing],
) -> None:
    killed_while_growing(grown, seed=0, kills=3)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 11))
def test_a_hundred_kills_while_processors_are_added_leave_exactly_once_results(
    grown: tuple[Growing, Growing], seed: int
) -> None:
    killed_while_growing(grown, seed, kills=10)


@pytest.mark.slow
def test_processors_are_added_by_spark_submit(grown: tuple[Growing, Growing], tmp_path: Path) -> None:
    live, control = grown
    both(live, control, 8, range(500, 600))
    expand_processors(live.application, live.connection, 4)
    by_spark(live, "spark/1", tmp_path)
    assert live.counts.count == 2
    by_spark(live, "spark/2", tmp_path)
    assert live.counts.count == 4
    both(live, control, 8, range(600, 700))
    by_spark(live, "spark/3", tmp_path)
    control.run()
    same_results(live, control, processors=4)


def by_spark(live: Growing, run: str, directory: Path) -> None:
    """Make one run as the DAG does, by ``spark-submit``."""
    application = live.application
    prepared = prepare(application, live.connection, run)
    (client,) = application.members
    warm_up = WarmUpRequest.of(application, client.client_id)
    jobs = [("warm_up_processors", warm_up.model_dump_json())]
    for request in requests(application, prepared.processing.running, 1):
        jobs.append(("process", request.model_dump_json()))
    for job, asked in jobs:
        arguments = ["--request", asked, "--run", run]
        name = application.application_id
        with submitted(live.connection, directory, job, name, *arguments, path=str(ROOT)) as submission:
            assert submission.result() == 0, submission.text()


@pytest.mark.slow
def test_partitions_and_processors_grow_under_load_while_processes_are_killed(
    connection: KafkaConnection, unique: str, tmp_path: Path
) -> None:
    # The default: how far a new processor is behind depends on how long this machine takes for a run.
    acceptable = 10_000
    live = Growing(connection, unique, tmp_path / "live", settle_ms=10_000, acceptable_lag=acceptable)
    control = Growing(connection, f"{unique}c", tmp_path / "control")
    live.create(partitions=4)
    control.create()
    with under_load(connection, (live.topic, control.topic)) as sent:
        live.run()
        # A run writes less than this lag. What was written before is more, so new processors have to warm up.
        while min(live.admin.end_offsets([live.changelog])[live.changelog].values()) < acceptable:
            live.run()
        assert (live.counts.initial, live.counts.count) == (INITIAL, 2)
        before = live.state()
        live.chance = random.Random(1)
        live.admin.grow_topic(live.topic, 8)
        expand_processors(live.application, connection, 4)
        assert "goes from 2 to 4 processors: " in live.run(), "not at once"
        while live.counts.count < 4 or live.kills < 3:
            live.run()
        assert live.counts.expanding_to == 0
        live.run()
    live.chance = None
    live.run()
    control.run()

    assert sum(map(len, control.outputs().values())) == sum(sent) > 1_000
    same_results(live, control, processors=4)
    assert moved_between(live, {0, 1}) == set()
    assert all(before.values()), "there was something to move"
