"""What would happen on a real broker if the topic of a global table grew."""

from __future__ import annotations

from pathlib import Path

import pytest
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection

from testbed.processes import wait_until
from tests.support.rates import PROGRAM, UNKNOWN, Rates
from tests.support.streams_member import streams_member

pytestmark = pytest.mark.integration

SETTINGS = {
    "rates": "global",
    "metadata.max.age.ms": "100",
    "commit.interval.ms": "100",
    "auto.offset.reset": "earliest",
}
UPDATES = 20


def test_a_running_application_would_miss_what_comes_into_new_partitions_of_a_global_table(
    client: dict[str, str], unique: str, tmp_path: Path
) -> None:
    """This is why the topic never grows. It does not have to: a new generation reads all of its partitions."""
    rates, servers = Rates(client, unique), client["bootstrap.servers"]
    rates.sets("EUR", "1", 0)
    with streams_member(servers, unique, unique, tmp_path / "1", SETTINGS, PROGRAM) as running:
        running.await_state("RUNNING")
        assert rates.asks("EUR") == "1"
        rates.grows(2)
        rates.sets("USD", "2", 1)
        for number in range(UPDATES):
            # All updates together take more than one refresh of metadata. What is not read by then never is.
            rates.sets("EUR", str(number), 0)
            wait_until(lambda wanted=str(number): rates.asks("EUR") == wanted, timeout=60, what="an update")
        assert rates.asks("USD") == UNKNOWN
        assert "ERROR" not in running.states
    green, admin = f"{unique}-g2", ClusterAdmin(KafkaConnection(client))
    admin.commit(green, admin.end_offsets([unique]))
    with streams_member(servers, green, unique, tmp_path / "2", SETTINGS, PROGRAM) as fresh:
        fresh.await_state("RUNNING")
        assert rates.asks("USD") == "2"
