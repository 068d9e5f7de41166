"""A process that was taken for dead wakes up inside an open transaction, and changes nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from kafka_rescale.core.errors import Fenced
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.copy.loop import CopyWorker
from kafka_rescale.kafka.copy.units import units_of
from kafka_rescale.kafka.writing.producer import UnitProducer

from testbed.broker import EmbeddedBroker
from testbed.processes import wait_until
from tests.integration.copy_helpers import Record, assert_copied, changelog, create, ends_of, plan_of, read, write

pytestmark = pytest.mark.integration
PLUGINS = Path(__file__).resolve().parents[3] / "plugins"

ZOMBIE = """
import json, sys
from dataclasses import replace
from kafka_rescale.core.errors import Fenced
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.copy.loop import CopyWorker
from kafka_rescale.kafka.copy.settings import BULK
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.copy.units import units_of

settings, plan = json.loads(sys.argv[1]), Plan.model_validate_json(sys.argv[2])
never = replace(BULK, poll_records=50, commit_records=10**9, commit_bytes=10**12, commit_seconds=3600)
worker = CopyWorker(KafkaConnection(settings), plan, units_of(plan.moves), never)
worker.begin()
while not all(w.pending_records for w in worker.writers.values()):
    worker.step()
print("open", flush=True)
sys.stdin.readline()
try:
    worker._commit(list(worker.writers.values()))
    print("committed", flush=True)
except Fenced:
    print("fenced", flush=True)
try:
    while True:
        worker.step()
        print("wrote", flush=True)
except Fenced:
    print("fenced", flush=True)
"""


def start_zombie(connection: KafkaConnection, plan: Plan) -> subprocess.Popen[str]:
    arguments = [json.dumps(dict(connection.config)), plan.model_dump_json()]
    return subprocess.Popen(
        [sys.executable, "-c", ZOMBIE, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(PLUGINS)},
    )


@pytest.mark.parametrize(
    ("partitions", "producers", "taken"),
    [
        # In `make test`, test_copy_loop.py::test_a_newer_worker_fences_the_older_one has a producer per partition.
        pytest.param(1, 0, [0], id="one partition, of a plan of before", marks=pytest.mark.slow),
        pytest.param(2, 1, [0, 1], id="two partitions of one producer"),
        pytest.param(2, 1, [1], id="of one producer, and only one of its partitions is taken over"),
        # In `make test`, the two cases above have one producer of two partitions.
        pytest.param(4, 2, [0, 1, 2, 3], id="two producers", marks=pytest.mark.slow),
    ],
)
def test_a_zombie_inside_an_open_transaction_writes_nothing(
    broker: EmbeddedBroker, unique: str, partitions: int, producers: int, taken: list[int]
) -> None:
    connection = KafkaConnection(broker.client_config())
    made = changelog(unique, "key-value", partitions, 2 * partitions)
    move = made.model_copy(update={"producers": producers})
    plan = plan_of(unique, move)
    create(connection, plan)
    write(connection, move, [Record(b"k%d" % i, b"%d" % i) for i in range(500)])
    zombie = start_zombie(connection, plan)
    assert zombie.stdout is not None
    assert zombie.stdin is not None
    try:
        assert zombie.stdout.readline() == "open\n"
        admin = ClusterAdmin(connection)
        wait_until(
            lambda: sum(admin.end_offsets([move.target], read_committed=False)[move.target].values()),
            timeout=30,
            what="the zombie's records in the log",
        )
        os.kill(zombie.pid, signal.SIGSTOP)

        newer = CopyWorker(connection, plan, [u for u in units_of([move]) if u.partition in taken])
        newer.begin()
        newer.run_to({s: end for s, end in ends_of(connection, move).items() if s[1] in taken}, now_ms())
        newer.close()
        finished, ends = read(connection, move.target), admin.end_offsets([move.target], read_committed=False)
        position = admin.committed(plan.copy_group)

        os.kill(zombie.pid, signal.SIGCONT)
        said, _ = zombie.communicate("go on\n", timeout=60)
        assert said == "fenced\nfenced\n"
        assert zombie.returncode == 0
    finally:
        if zombie.poll() is None:
            zombie.kill()
            zombie.communicate()
    assert read(connection, move.target) == finished
    assert admin.end_offsets([move.target], read_committed=False) == ends
    assert admin.committed(plan.copy_group) == position
    # What the zombie had copied of the other partitions is gone too. Another worker copies them.
    copied = read(connection, move.source)
    assert sum(map(len, finished.values())) == sum(len(copied[p]) for p in taken)
    rest = CopyWorker(connection, plan, units_of([move]))
    rest.begin()
    rest.run_to(ends_of(connection, move), now_ms())
    rest.close()
    assert_copied(connection, move)
    assert sum(map(len, read(connection, move.target).values())) == 500


def write_until_refused(producer: UnitProducer, topic: str) -> None:
    """Write records without polling until one is refused.

    The library learns of the fence by itself, and reports it when it gets the next record.
    """
    deadline = time.monotonic() + 30
    with producer.transaction():
        while time.monotonic() < deadline:
            producer.produce(topic, b"v", b"k", 0, timestamp=1)
            time.sleep(0.005)


def test_one_that_hears_of_it_from_a_record_that_it_hands_over_is_fenced(
    broker: EmbeddedBroker, unique: str
) -> None:
    connection = KafkaConnection(broker.client_config())
    ClusterAdmin(connection).ensure_topic(unique, 1, 1, {})
    older = UnitProducer(connection, "a unit", unique, 100_000)
    with older.transaction():
        older.produce(unique, b"v", b"k", 0, timestamp=1)
    UnitProducer(connection, "a unit", unique, 100_000)
    with pytest.raises(Fenced, match="newest attempt"):
        write_until_refused(older, unique)
