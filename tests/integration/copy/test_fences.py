"""The fences of a copy that has ended, read within the pause."""

from __future__ import annotations

import threading
import time

import pytest
from confluent_kafka import Producer
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.copy.fences import last_fences, read_fences
from kafka_rescale.kafka.copy.loop import CopyWorker
from kafka_rescale.kafka.copy.units import units_of

from tests.integration.copy_helpers import Record, changelog, create, ends_of, plan_of, write

pytestmark = pytest.mark.integration


def test_the_last_fences_wait_for_an_open_transaction_and_ask_for_no_log_start(
    client: dict[str, str], unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection, move = KafkaConnection(client), changelog(unique, "key-value", 2, 4)
    plan = plan_of(unique, move)
    create(connection, plan)
    write(connection, move, [Record(b"k%d" % i, b"1") for i in range(20)])
    worker = CopyWorker(connection, plan, units_of([move]))
    worker.begin()
    worker.run_to(ends_of(connection, move), now_ms())
    worker.close()
    before, ends = read_fences(connection, plan), ClusterAdmin(connection).end_offsets([move.source])
    producer = Producer({**client, "transactional.id": f"{unique}-open"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(move.target, b"aborted", b"never", 0)
    producer.flush(30)
    monkeypatch.setattr(ClusterAdmin, "begin_offsets", lambda *_, **__: pytest.fail("asked within the pause"))
    threading.Timer(2, lambda: producer.abort_transaction(30)).start()
    began = time.monotonic()
    found = last_fences(connection, plan, ends, before)
    assert time.monotonic() - began >= 2, "an open transaction was not waited for"
    assert found.green_begins == before.green_begins
    assert found.fence == found.blue_ends == ends
