"""The bridge by a real ``spark-submit``: it goes on from blue's stop offsets, through a crash, until silence."""

from __future__ import annotations

import os
import signal
from contextlib import closing
from itertools import islice
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from kafka_rescale.core.control.bridge import Bridge
from kafka_rescale.core.control.generations import Generations
from kafka_rescale.core.control.journal import Captured, Phase
from kafka_rescale.core.control.keys import Concern
from kafka_rescale.core.errors import PreflightRefused, UnsafeState
from kafka_rescale.core.plan.plan import Move, MoveKind, Plan, Stage
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.control import journal_store
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.kafka.copy.bridging import assert_ended, prepare, verdict_now
from kafka_rescale.kafka.copy.loop import CopyWorker
from kafka_rescale.kafka.copy.settings import LIVE
from kafka_rescale.kafka.copy.units import units_of
from kafka_rescale.spark.copy.bridge import bridge
from kafka_rescale.spark.jobs.arguments import Arguments
from kafka_rescale.spark.jobs.job import Job

from testbed.broker import EmbeddedBroker
from testbed.processes import is_running, wait_until
from tests.integration.copy_helpers import T0, Record, killed_within_commit, per_key, read, write
from tests.integration.spark_job_helpers import RUN, advance, begin, submitted, wait_for

pytestmark = pytest.mark.integration

SILENT = ("--silent-seconds", "3")


@pytest.fixture
def connection(broker: EmbeddedBroker) -> KafkaConnection:
    return KafkaConnection(broker.client_config())


def bridged(unique: str, source: int, target: int) -> tuple[Move, Plan]:
    move = Move(
        kind=MoveKind.INPUT,
        source=f"{unique}-orders",
        target=f"{unique}-orders-p{target}",
        store=f"{unique}-orders",
        source_partitions=source,
        target_partitions=target,
    )
    plan = Plan(
        application=unique,
        generation=2,
        blue=unique,
        green=f"{unique}-g2",
        partitions=target,
        stages=(Stage(index=1, name="stage_1_subtopology_0", subtopology=0, bridges=(move,)),),
        inputs=(),
    )
    return move, plan


def begun(connection: KafkaConnection, unique: str, source: int, target: int) -> tuple[Move, Plan, ControlTopic]:
    """An expansion that has begun, with its old topic and the successor."""
    move, plan = bridged(unique, source, target)
    for topic, partitions in ((move.source, source), (move.target, target)):
        ClusterAdmin(connection).ensure_topic(topic, partitions, 1, {"retention.ms": "-1"})
    return move, plan, begin(connection, plan)


def records(version: int, count: int = 400) -> list[Record]:
    return [Record(b"key-%d" % i, b"%d" % version, headers=(("v", b"\0"), ("h", b"x"))) for i in range(count)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "master",
    # In `make test`, S/test_airflow_standalone carries a bridge on, and I/test_expansion_repartitioned a live one.
    [pytest.param((), id="local"), pytest.param((1,), id="a core of a cluster")],
    indirect=True,
)
def test_everything_from_the_fence_on_is_carried_on_once_and_in_order(
    connection: KafkaConnection, unique: str, tmp_path: Path, master: str
) -> None:
    move, plan, control = begun(connection, unique, 4, 6)
    admin = ClusterAdmin(connection)
    write(connection, move, records(0))
    fence = {p: end - 10 for p, end in admin.end_offsets([move.source])[move.source].items()}

    with submitted(connection, tmp_path, "bridge", plan, *SILENT, master=master) as job:
        wait_for(control, "bridge", "ready")
        write(connection, move, records(1))
        assert not any(admin.end_offsets([move.target], read_committed=False)[move.target].values())
        advance(control, Phase.PROMOTED, captured=Captured(committed={move.source: fence}))
        write(connection, move, records(2))
        wait_until(
            lambda: any(admin.end_offsets([move.target])[move.target].values()),
            timeout=60,
            what="the first records",
        )
        write(connection, move, records(3), transactional_id=f"{unique}-a", abort=True)
        driver = job.driver()
        os.kill(driver, signal.SIGKILL)
        wait_until(lambda: not is_running(driver), timeout=30, what="the end of the driver")

    write(connection, move, records(4), transactional_id=f"{unique}-b")
    with submitted(connection, tmp_path, "bridge", plan, *SILENT, attempt=2, master=master) as job:
        wait_for(control, "bridge", "carrying", attempt=2)
        write(connection, move, records(5))
        assert job.result() == 0, job.text()
    ended = control.read().bridge
    assert ended is not None
    assert ended.begun
    assert ended.ended_at_ms

    left = {p: list(islice(rs, fence[p], None)) for p, rs in read(connection, move.source).items()}
    assert per_key(read(connection, move.target)) == per_key(left)

    with submitted(connection, tmp_path, "bridge", plan, *SILENT, attempt=3, master=master) as job:
        assert job.result() == 0, job.text()
        assert "nothing to do" in job.text()

    for phase in (Phase.STARTED, Phase.VERIFIED, Phase.COMPLETE):
        advance(control, phase)
    _, following = bridged(unique, 6, 8)
    assert_ended(connection, control.read(), following)
    write(connection, move, records(6, count=1))
    with pytest.raises(PreflightRefused, match="came into the old topic after the bridge had ended"):
        assert_ended(connection, control.read(), following)
    with submitted(connection, tmp_path, "bridge", plan, *SILENT, attempt=4, master=master) as job:
        assert job.result() == 0, job.text()
    assert_ended(connection, control.read(), following)
    left = {p: list(islice(rs, fence[p], None)) for p, rs in read(connection, move.source).items()}
    assert per_key(read(connection, move.target)) == per_key(left)


# In `make test`, U/test_bridge_replaced.py and U/test_bridging.py show both without Spark.
@pytest.mark.slow
def test_a_late_record_is_carried_on_after_an_attempt_was_rolled_back_and_offsets_were_deleted(
    connection: KafkaConnection, unique: str, tmp_path: Path
) -> None:
    move, plan, control = begun(connection, unique, 2, 4)
    admin = ClusterAdmin(connection)
    write(connection, move, records(0))
    advance(control, Phase.PROMOTED, captured=Captured(committed={move.source: dict.fromkeys(range(2), 0)}))
    with submitted(connection, tmp_path, "bridge", plan, *SILENT) as job:
        assert job.result() == 0, job.text()
    for phase in (Phase.STARTED, Phase.VERIFIED, Phase.COMPLETE):
        advance(control, phase)

    control.update(lambda _: {Concern.GENERATIONS: Generations(running=plan.green, generation=2)})
    _, following = bridged(unique, 4, 8)
    following = following.model_copy(update={"generation": 3, "blue": plan.green, "green": f"{unique}-g3"})
    journal_store.begin(control, following, RUN, now_ms())
    for phase in (Phase.ROLLING_BACK, Phase.ROLLED_BACK):
        advance(control, phase)
    admin.delete_group(plan.bridge_group)  # as brokers delete offsets in the end
    assert_ended(connection, control.read(), following)
    write(connection, move, records(1, count=3))
    with pytest.raises(PreflightRefused, match="came into the old topic after the bridge had ended"):
        assert_ended(connection, control.read(), following)
    with submitted(connection, tmp_path, "bridge", plan, *SILENT, attempt=2) as job:
        assert job.result() == 0, job.text()
    assert_ended(connection, control.read(), following)
    assert per_key(read(connection, move.target)) == per_key(read(connection, move.source))


# In `make test`, test_bridge_two_layouts.py has a bridge that notices two growths, without `spark-submit`.
@pytest.mark.slow
def test_an_old_topic_that_grows_meanwhile_is_carried_on_whole_and_in_order(
    connection: KafkaConnection, unique: str, tmp_path: Path
) -> None:
    """A producer may still write by the old count, because it has not refreshed its metadata yet."""
    move, plan, control = begun(connection, unique, 4, 6)
    admin = ClusterAdmin(connection)
    with submitted(connection, tmp_path, "bridge", plan, *SILENT) as job:
        wait_for(control, "bridge", "ready")
        write(connection, move, records(0))
        fence = {move.source: dict.fromkeys(range(4), 0)}
        advance(control, Phase.PROMOTED, captured=Captured(committed=fence))
        wait_for(control, "bridge", "carrying")
        admin.grow_topic(move.source, 8)
        wider = move.model_copy(update={"source_partitions": 8})
        write(connection, wider, records(1))
        assert job.result() == 0, job.text()
        assert f"somebody has grown {move.source} to 8 partitions" in job.text()
    noticed = control.read().bridge
    assert noticed is not None
    assert [(a.count, sorted(a.ends), a.begun) for a in noticed.added] == [(8, [0, 1, 2, 3], False)]

    write(connection, move, records(2)[::4])
    with submitted(connection, tmp_path, "bridge", plan, *SILENT, attempt=2) as job:
        wait_for(control, "bridge", "carrying", attempt=2)
        write(connection, wider, records(3))
        assert job.result() == 0, job.text()
    ended = control.read().bridge
    assert ended is not None
    assert ended.ended_at_ms
    assert sum(map(len, ended.ends.values())) == 8

    carried = per_key(read(connection, move.target))
    written: dict[bytes | None, list[Record]] = {}
    for log in read(connection, move.source).values():
        for record in log:
            written.setdefault(record.key, []).append(record)
    assert {k: sorted(r.value or b"" for r in rs) for k, rs in carried.items()} == {
        k: sorted(r.value or b"" for r in rs) for k, rs in written.items()
    }
    # Records written by the old count after the growth was noticed have no order with those of the new count.
    for key, sequence in carried.items():
        values = [record.value for record in sequence if record.value != b"2"]
        assert values == [b"0", b"1", b"3"], key


@pytest.mark.parametrize("kind", ["CreateTime", "LogAppendTime"])
def test_a_successor_that_takes_the_brokers_time_would_give_records_the_time_of_their_bridging(
    connection: KafkaConnection, unique: str, kind: str
) -> None:
    """This is why preflight refuses such an input: windows and joins of the new generation would use that time."""
    move, plan = bridged(unique, 2, 4)
    admin = ClusterAdmin(connection)
    admin.ensure_topic(move.source, 2, 1, {"retention.ms": "-1"})
    admin.ensure_topic(move.target, 4, 1, {"retention.ms": "-1", "message.timestamp.type": kind})
    write(connection, move, records(0))
    prepare(connection, plan, Bridge(plan=plan.fingerprint))
    with closing(CopyWorker(connection, plan, units_of([move]), LIVE, group=plan.bridge_group)) as worker:
        worker.begin(dict.fromkeys(worker.writers, 0))
        ends = admin.end_offsets([move.source])[move.source]
        worker.run_to({(move.source, p): end for p, end in ends.items()}, now_ms())
    times = {record.timestamp for log in read(connection, move.target).values() for record in log}
    assert (times == {T0}) == (kind == "CreateTime")


def test_a_lost_position_stops_the_bridge_where_it_could_only_guess(
    connection: KafkaConnection, unique: str
) -> None:
    move, plan = bridged(unique, 2, 4)
    admin = ClusterAdmin(connection)
    admin.ensure_topic(move.source, 2, 1, {})
    prepare(connection, plan, Bridge(plan=plan.fingerprint))
    prepare(connection, plan, Bridge(plan=plan.fingerprint, begun=True))
    admin.delete_group(plan.bridge_group)
    with pytest.raises(UnsafeState, match=rf"no position of {move.source}-0, {move.source}-1"):
        prepare(connection, plan, Bridge(plan=plan.fingerprint, begun=True))


def test_a_bridge_whose_old_topic_was_deleted_ends_and_guesses_no_offset_of_a_new_one(
    connection: KafkaConnection, unique: str
) -> None:
    move, plan, control = begun(connection, unique, 2, 4)
    admin = ClusterAdmin(connection)
    prepare(connection, plan, Bridge(plan=plan.fingerprint))
    advance(control, Phase.PROMOTED, captured=Captured(committed={move.source: dict.fromkeys(range(2), 0)}))
    control.update(lambda _: {Concern.BRIDGE: Bridge(plan=plan.fingerprint, begun=True)})
    admin.delete_topics([move.source])
    bridge(Job("bridge", Arguments(unique, RUN, 1), connection))
    ended = control.read()
    assert (ended.results["bridge"].state, verdict_now(connection, ended).due) == ("done", False)
    assert f"{move.source} was deleted" in ended.results["bridge"].detail
    for phase in (Phase.STARTED, Phase.VERIFIED, Phase.COMPLETE):
        advance(control, phase)
    assert_ended(connection, control.read(), bridged(unique, 4, 8)[1])

    admin.ensure_topic(move.source, 2, 1, {"retention.ms": "-1"})
    write(connection, move, records(0, count=20))
    with pytest.raises(UnsafeState, match=r"no position of .* was made anew, commit its log starts"):
        bridge(Job("bridge", Arguments(unique, RUN, 2), connection))


def test_a_writer_that_was_killed_within_its_commit_is_not_waited_for(
    connection: KafkaConnection, unique: str
) -> None:
    move, plan = bridged(unique, 2, 4)
    ClusterAdmin(connection).ensure_topic(move.source, 2, 1, {})
    prepare(connection, plan, Bridge(plan=plan.fingerprint))
    killed = killed_within_commit(connection, plan, units_of([move])[1], plan.bridge_group)
    prepare(connection, plan, Bridge(plan=plan.fingerprint, begun=True))
    with pytest.raises(KafkaException, match="fenced"):
        killed.commit_transaction(10)
