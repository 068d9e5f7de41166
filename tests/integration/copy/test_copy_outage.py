"""A broker goes away in the middle of a copy, cleanly or not. And partitions from which no record arrives."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Producer
from kafka_rescale.core.errors import Outage
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.copy.loop import CopyWorker
from kafka_rescale.kafka.copy.settings import LIVE
from kafka_rescale.kafka.copy.units import units_of

from testbed.broker import EmbeddedBroker
from tests.integration.copy_helpers import Record, assert_copied, changelog, create, ends_of, plan_of, read, write

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("how", ["restart", "kill"])
def test_a_broker_that_comes_back_is_waited_for(tmp_path: Path, unique: str, how: str) -> None:
    with EmbeddedBroker(tmp_path, heap="512m") as broker:
        connection = KafkaConnection(broker.client_config())
        move = changelog(unique, "key-value", 3, 6)
        plan = plan_of(unique, move)
        create(connection, plan)
        write(connection, move, [Record(b"k%d" % i, b"%d" % i) for i in range(3000)])
        worker = CopyWorker(connection, plan, units_of([move]), replace(LIVE, poll_records=200))
        worker.begin()
        while not worker.step():
            pass
        ends = ends_of(connection, move)
        if how == "kill":
            broker.kill()
            broker.start()
        else:
            broker.restart()

        worker.run_to(ends, now_ms())
        worker.close()

        assert_copied(connection, move)
        assert sum(len(r) for r in read(connection, move.target).values()) == 3000


STALL_SECONDS = 2.0
IMPATIENT = replace(LIVE, stall_seconds=STALL_SECONDS, look_seconds=0.3)


def test_an_end_that_is_not_reached_is_not_waited_for_for_ever(broker: EmbeddedBroker, unique: str) -> None:
    connection = KafkaConnection(broker.client_config())
    move = changelog(unique, "key-value", 3, 6)
    plan = plan_of(unique, move)
    create(connection, plan)
    write(connection, move, [Record(b"k%d" % i, b"%d" % i) for i in range(300)])
    producer = Producer(connection.client(**{"transactional.id": f"{unique}-open"}))
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(move.source, b"v", b"k", 1)
    producer.flush(30)
    ends = ClusterAdmin(connection).end_offsets([move.source], read_committed=False)[move.source]
    worker = CopyWorker(connection, plan, units_of([move]), IMPATIENT)
    worker.begin()
    with pytest.raises(Outage, match=rf"copy of {move.source}-1: found neither records nor an end for 2 s"):
        worker.run_to({(move.source, p): end for p, end in ends.items()}, now_ms())
    assert {p: worker.writers[move.source, p].position for p in ends} == {**ends, 1: ends[1] - 1}
    producer.abort_transaction(30)
    worker.run_to(ends_of(connection, move), now_ms())
    worker.close()
    assert_copied(connection, move)


def test_partitions_that_have_nothing_to_say_are_no_outage(broker: EmbeddedBroker, unique: str) -> None:
    connection = KafkaConnection(broker.client_config())
    move = changelog(unique, "key-value", 3, 6)
    plan = plan_of(unique, move)
    create(connection, plan)
    write(connection, move, [Record(b"k%d" % i, b"%d" % i) for i in range(300)])
    worker = CopyWorker(connection, plan, units_of([move]), IMPATIENT)
    worker.begin()
    began = time.monotonic()
    while time.monotonic() < began + 3 * STALL_SECONDS:
        worker.step()
    write(connection, move, [Record(b"k0", b"late")])
    worker.run_to(ends_of(connection, move), now_ms())
    worker.close()
    assert_copied(connection, move)
