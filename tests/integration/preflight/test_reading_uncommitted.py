"""An application behind a bridge has to read committed: otherwise it would process what a killed bridge leaves."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Producer
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.reading.range_reader import read_ranges

from testbed.processes import wait_until
from tests.support.streams_member import streams_member

pytestmark = pytest.mark.integration

RECORDS = 20
AT_LEAST_ONCE = {
    "processing.guarantee": "at_least_once",
    "commit.interval.ms": "100",
    "auto.offset.reset": "earliest",
}


@pytest.mark.parametrize(
    ("settings", "counted"),
    [
        ({}, 2 * RECORDS),
        ({"main.consumer.isolation.level": "read_committed"}, RECORDS),
        # In `make test`, the case above: exactly once, the consumer has the same setting.
        pytest.param({"processing.guarantee": "exactly_once_v2"}, RECORDS, marks=pytest.mark.slow),
    ],
    ids=["at_least_once", "at_least_once, read_committed", "exactly_once_v2"],
)
def test_what_was_taken_back_is_counted_by_who_reads_uncommitted(
    settings: dict[str, str], counted: int, client: dict[str, str], unique: str, tmp_path: Path
) -> None:
    admin = ClusterAdmin(KafkaConnection(client))
    for topic in (unique, f"{unique}-counts"):
        admin.ensure_topic(topic, 1, 1, {})
    bridge = Producer({**client, "transactional.id": f"{unique}-bridge"})
    bridge.init_transactions(20)
    for end in (bridge.abort_transaction, bridge.commit_transaction):
        bridge.begin_transaction()
        for number in range(RECORDS):
            bridge.produce(unique, b"v", str(number).encode(), 0)
        assert bridge.flush(20) == 0
        end(20)

    end_of_input = admin.end_offsets([unique])[unique][0]
    with streams_member(
        client["bootstrap.servers"], unique, unique, tmp_path, {**AT_LEAST_ONCE, **settings}
    ) as member:
        wait_until(
            lambda: admin.committed(unique).get(unique, {}).get(0, 0) >= end_of_input - 1,
            timeout=60,
            what="the input to be processed",
        )
        member.close()
    assert sum(latest_counts(client, f"{unique}-counts").values()) == counted


def latest_counts(client: dict[str, str], topic: str) -> dict[bytes, int]:
    """The last count of every key."""
    connection = KafkaConnection(client)
    end = ClusterAdmin(connection).end_offsets([topic])[topic][0]
    counts: dict[bytes, int] = {}
    for record in read_ranges(connection, topic, {0: (0, end)}):
        key, value = record.key(), record.value()
        assert isinstance(key, bytes)
        assert isinstance(value, bytes)
        counts[key] = int.from_bytes(value, "big")
    return counts
