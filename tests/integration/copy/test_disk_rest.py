"""A real disk fills beside a copy: the copy rests before it is full, and goes on when there is room again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from kafka_rescale.airflow.lag_gate import Gate, GateReason, look
from kafka_rescale.core.control.pace import Pace
from kafka_rescale.core.control.switch import Order, Switch
from kafka_rescale.core.expansion.pacing_words import told_pace
from kafka_rescale.kafka.admin.log_dirs import read_disks
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.kafka.control.journal_follower import JournalFollower
from kafka_rescale.kafka.copy.disk_watch import DiskWatch
from kafka_rescale.kafka.copy.harm import Harm
from kafka_rescale.kafka.copy.loop import CopyWorker
from kafka_rescale.kafka.copy.progress import CopyProgress
from kafka_rescale.kafka.copy.units import units_of
from kafka_rescale.spark.copy.pacer import Pacer
from kafka_rescale.spark.jobs.arguments import Arguments
from kafka_rescale.spark.jobs.job import Job

from testbed.broker import EmbeddedBroker
from testbed.processes import wait_until
from tests.integration.copy_helpers import assert_copied, changelog, create, ends_of, plan_of, records, write
from tests.integration.spark_job_helpers import RUN, begin, submitted, wait_for

pytestmark = pytest.mark.integration

COUNT, SIZE = 20_000, 1_000
PERCENT, LEFT = 50, 2 * 2**20
"""At 50 %, as many bytes have to be usable as the copies have. So many are left when the disk is nearly full: no
broker is to die here."""


@pytest.fixture
def connection(small_disk: Path) -> Iterator[KafkaConnection]:
    """A broker whose log dir is on a small disk."""
    with EmbeddedBroker(small_disk / "broker", heap="384m") as broker:
        yield KafkaConnection(broker.client_config())


def fill(directory: Path, left: int) -> Path:
    """Write a file, as another program on that machine does, so that so many bytes are left."""
    file, disk = directory / "others", os.statvfs(directory)
    with file.open("wb") as output:
        os.posix_fallocate(output.fileno(), 0, disk.f_bavail * disk.f_frsize - left)
    return file


def gate_of(application: str) -> Gate:
    return Gate(application=application, owner=RUN, threshold=10**9)


class Driver:
    """The driver of a job for the pace, without Spark: it decides, writes, and one task obeys."""

    def __init__(self, connection: KafkaConnection, control: ControlTopic) -> None:
        journal = control.read().journal
        assert journal is not None
        plan = journal.plan
        self.job = Job("catch_up", Arguments(plan.application, RUN, 1), connection)
        self.progress = CopyProgress(connection, plan, plan.moves)
        self.follower = JournalFollower(connection, plan.application, self.job.key)
        self.follower.first()
        harm, disks = Harm(connection, plan, plan.blue, self.progress), DiskWatch(connection, plan, seconds=0.2)
        self.pacer = Pacer(self.job, plan.fingerprint, self.follower, harm, 1, disks=disks)
        self.pacer.begin()

    def share(self) -> float | None:
        return self.pacer.rate.share

    def report(self) -> bool:
        """Report as the job does; return whether the copy rests."""
        self.job.report(self.progress, lambda _: "running", self.pacer.adapted)
        return self.pacer.is_paused

    def close(self) -> None:
        self.progress.close()
        self.follower.close()


def test_it_rests_before_the_disk_is_full_and_goes_on_by_itself(
    connection: KafkaConnection, small_disk: Path, unique: str
) -> None:
    move = changelog(unique, "key-value", 2, 4)
    plan = plan_of(unique, move)
    create(connection, plan)
    control = begin(connection, plan)
    control.update(lambda _: {"pace": Pace(plan=plan.fingerprint, limit=4_000_000, free_disk_percent=PERCENT)})
    write(connection, move, records(COUNT, size=SIZE))
    driver = Driver(connection, control)
    with (
        closing(driver),
        closing(CopyWorker(connection, plan, units_of([move]), share=driver.share)) as worker,
    ):
        worker.begin()

        def written() -> int:
            return sum(writer.position for writer in worker.writers.values())

        # The gate knows no lag of a partition of which nothing was copied.
        while written() < COUNT // 4 or not all(writer.position for writer in worker.writers.values()):
            worker.step()
        assert not driver.report(), "it rests although there is room"
        assert look(connection, gate_of(unique)).reason is GateReason.OPEN

        others = fill(small_disk, LEFT)
        wait_until(driver.report, timeout=60, what="the driver to see that the disk is nearly full")
        worker.step()
        at = written()
        assert at < COUNT, "the copy has ended without a rest"
        for _ in range(3):
            worker.step()
            driver.report()
        assert written() == at, "it has copied although the disk is nearly full"
        assert not any(writer.pending_bytes for writer in worker.writers.values()), "a transaction is open"

        state = control.read()
        rest = state.rates["catch_up"].disk
        assert rest is not None
        assert (rest.broker, rest.path) == (1, f"{small_disk}/broker/data")
        assert rest.usable < rest.enough
        assert rest.total == 128 * 2**20
        (log_dir,) = read_disks(connection, {move.target: 4}).log_dirs
        assert rest.copied == sum(log_dir.sizes.values())
        reading = look(connection, gate_of(unique))
        assert reading.reason is GateReason.PAUSED
        assert f"log dir '{rest.path}' of broker 1 is too full. It has {rest.usable:,} usable bytes" in str(
            reading
        )
        assert f"with {rest.enough:,} usable bytes" in told_pace(state)

        others.unlink()
        wait_until(lambda: not driver.report(), timeout=60, what="the driver to see that there is room again")
        worker.run_to(ends_of(connection, move), now_ms())
    assert_copied(connection, move)
    assert look(connection, gate_of(unique)).reason is GateReason.OPEN


# In `make test`, the test above has the same driver without Spark.
@pytest.mark.slow
def test_a_catch_up_that_rests_is_not_ready_until_there_is_room_or_the_switch_was_let_through(
    connection: KafkaConnection, small_disk: Path, unique: str, tmp_path: Path
) -> None:
    move = changelog(unique, "key-value", 2, 4)
    plan = plan_of(unique, move)
    create(connection, plan)
    control = begin(connection, plan)
    control.update(lambda _: {"pace": Pace(plan=plan.fingerprint, free_disk_percent=PERCENT)})
    write(connection, move, records(COUNT // 4, size=SIZE))
    with submitted(connection, tmp_path, "catch_up", plan, "--acceptable-lag", "10") as job:
        wait_for(control, "catch_up", "ready")
        others = fill(small_disk, LEFT)
        wait_for(control, "catch_up", "running")
        assert "The copy is at rest since " in told_pace(control.read())
        others.unlink()
        wait_for(control, "catch_up", "ready")
        fill(small_disk, LEFT)
        wait_for(control, "catch_up", "running")
        journal = control.read().journal
        assert journal is not None
        released = Switch.of(journal, None).begun(now_ms(), 10**9, None, None, asks=False)
        control.update(lambda _: {"switch": released.said(Order.NOW, "ada", now_ms()).released(now_ms())})
        wait_for(control, "catch_up", "ready")
    assert "catch_up: It is at rest since" in job.text()
    assert "catch_up: It no longer rests for a disk." in job.text()
