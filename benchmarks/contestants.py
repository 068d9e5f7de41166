"""Ways to copy a changelog to another partition count: two of this project, and a simple script."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Producer
from kafka_rescale.core.plan.plan import Plan, Stage
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.control import journal_store, lease
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.kafka.copy.loop import CopyWorker
from kafka_rescale.kafka.copy.units import units_of

from benchmarks.copied_topic import changelog_move, read_all
from benchmarks.sizes import AFTER, BEFORE
from testbed.expansion import ROOT, Expansion
from testbed.processes import wait_until

JOB_SECONDS, LEASE_MS = 600, 3_600_000


@dataclass(frozen=True)
class Timing:
    """Seconds of one run.

    :param copying: from the first read until the last record can be read. For the job, from its first write,
        because its first read can't be seen.
    :param around: startup before that, and cleanup after it.
    """

    copying: float
    around: float = 0.0


def plan_of(source: str, application: str) -> Plan:
    """Return a plan of one stage that moves one changelog."""
    green = f"{application}-g2"
    stage = Stage(index=1, name="stage_1_subtopology_0", subtopology=0, moves=(changelog_move(source, green),))
    return Plan(
        application=application,
        generation=2,
        blue=application,
        green=green,
        partitions=AFTER,
        stages=(stage,),
        inputs=(),
    )


def await_visible(admin: ClusterAdmin, topic: str) -> None:
    """Wait until the brokers have written the last commit markers. They do so after they acknowledge a commit."""
    wait_until(
        lambda: admin.end_offsets([topic]) == admin.end_offsets([topic], read_committed=False),
        timeout=60,
        what=f"commit markers in {topic}",
        poll_seconds=0.005,
    )


def plain_loop(connection: KafkaConnection, source: str, target: str) -> Timing:
    """Consume and produce: without transactions, unable to continue, and right only for keys without a suffix."""
    began = time.monotonic()
    settings = {"partitioner": "murmur2_random", "linger.ms": 5, "queue.buffering.max.messages": 500_000}
    producer = Producer(connection.client(**settings))
    for batch in read_all(connection, source, BEFORE):
        for message in batch:
            while True:
                try:
                    producer.produce(
                        target,
                        message.value(),
                        message.key(),
                        timestamp=message.timestamp()[1],
                        headers=message.headers(),
                    )
                    break
                except BufferError:
                    producer.poll(0.1)
        producer.poll(0)
    assert producer.flush(60) == 0
    return Timing(time.monotonic() - began)


def copy_worker(connection: KafkaConnection, plan: Plan) -> Timing:
    """The project's copy in this process: exactly once, fenced, and able to continue."""
    began = time.monotonic()
    asked_ms = now_ms()
    units = units_of(plan.moves)
    ends = ClusterAdmin(connection).end_offsets([move.source for move in plan.moves])
    worker = CopyWorker(connection, plan, units)
    worker.begin()
    worker.run_to({u.source: ends[u.move.source][u.partition] for u in units}, asked_ms)
    await_visible(ClusterAdmin(connection), plan.moves[0].target)
    copied = time.monotonic()
    worker.close()
    return Timing(copied - began, time.monotonic() - copied)


def restore_job(connection: KafkaConnection, plan: Plan, directory: Path) -> Timing:
    """The same copy as in the restore task: a spark-submit with a process per core."""
    admin, move = ClusterAdmin(connection), plan.moves[0]
    control = ControlTopic(connection, plan.application)
    file = ROOT / "applications" / "flights.yaml"
    servers, renamed = connection.config["bootstrap.servers"], {"application_id": plan.application}
    expansion = Expansion.of_file(file, servers, directory / plan.application, renamed)
    control.ensure(1)
    lease.acquire(control, expansion.owner, plan.partitions, now_ms(), LEASE_MS, lambda _: True)
    journal_store.begin(control, plan, expansion.owner, now_ms())
    ends = admin.end_offsets([move.source])[move.source]
    began = time.monotonic()
    job = expansion.submit("restore", 1)

    def alive(condition: bool) -> bool:
        assert job.poll() in {None, 0}, expansion.log_of("restore", 1)
        return condition

    def written() -> int:
        return sum(admin.end_offsets([move.target], read_committed=False)[move.target].values())

    wait_until(lambda: alive(written() > 0), timeout=JOB_SECONDS, what="the first record", poll_seconds=0.1)
    first = time.monotonic()
    wait_until(
        lambda: alive(admin.committed(plan.copy_group).get(move.source) == ends),
        timeout=JOB_SECONDS,
        what="the last record",
        poll_seconds=0.1,
    )
    await_visible(admin, move.target)
    last = time.monotonic()
    assert job.wait(JOB_SECONDS) == 0, expansion.log_of("restore", 1)
    return Timing(last - first, time.monotonic() - began - (last - first))
