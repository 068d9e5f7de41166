"""A store without logging is refused because without its local disk, there is nothing to restore it from."""

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

RECORDS = 3
SETTINGS = {"commit.interval.ms": "100", "statestore.cache.max.bytes": "0", "auto.offset.reset": "earliest"}


# In `make test`, without logging; test_prewarm_streams_protocol.py has instances that restore from a changelog.
@pytest.mark.parametrize(
    ("logging", "counted"), [pytest.param("true", 2 * RECORDS, marks=pytest.mark.slow), ("false", RECORDS)]
)
def test_an_instance_without_the_local_disk_begins_with_what_the_changelog_has(
    logging: str, counted: int, client: dict[str, str], unique: str, tmp_path: Path
) -> None:
    connection, servers = KafkaConnection(client), client["bootstrap.servers"]
    admin, producer = ClusterAdmin(connection), Producer(client)
    output = f"{unique}-counts"
    for topic in (unique, output):
        admin.ensure_topic(topic, 1, 1, {})

    def written() -> int:
        return admin.end_offsets([output])[output][0]

    settings = {**SETTINGS, "counts.logging": logging}
    for disk in ("old", "new"):
        for _ in range(RECORDS):
            producer.produce(unique, b"v", b"key", 0)
        assert producer.flush(20) == 0
        before = written()
        with streams_member(servers, unique, unique, tmp_path / disk, settings) as member:
            wait_until(lambda so_far=before: written() == so_far + RECORDS, timeout=60, what="the counts")
            member.close()
        # Its members linger for the session timeout, and the next instance would wait for that.
        admin.remove_members(unique)
    *_, last = read_ranges(connection, output, {0: (0, written())})
    value = last.value()
    assert isinstance(value, bytes)
    assert int.from_bytes(value, "big") == counted
    assert bool(admin.describe_topics([f"{unique}-counts-changelog"])) == (logging == "true")
