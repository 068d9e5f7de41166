"""A broker that goes away in the middle of a copy, cleanly or not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from kafka_rescale.embedded.broker import EmbeddedBroker
from kafka_rescale.kafka.connection import KafkaConnection
from kafka_rescale.kafka.copy_loop import CopyWorker
from kafka_rescale.kafka.copy_settings import LIVE
from kafka_rescale.kafka.copy_units import units_of
from kafka_rescale.kafka.waiting import now_ms

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
