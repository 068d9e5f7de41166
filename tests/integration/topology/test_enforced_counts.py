"""A count that the program sets itself has to be declared: a generation with another count doesn't start."""

from __future__ import annotations

from pathlib import Path

import pytest
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection

from testbed.processes import wait_until
from tests.support.stores_application import StoresApplication

pytestmark = pytest.mark.integration
SET_BY_THE_PROGRAM, PLANNED = 4, 8


def test_the_program_refuses_a_repartition_topic_with_another_count_than_it_sets(
    client: dict[str, str], unique: str, tmp_path: Path
) -> None:
    admin = ClusterAdmin(KafkaConnection(client))
    for topic, count in {"left": 4, "out": 4, f"{unique}-by-left-repartition": PLANNED}.items():
        admin.ensure_topic(topic, count, 1, {})
    application = StoresApplication("plain", tmp_path, client["bootstrap.servers"])
    application.start(unique, SET_BY_THE_PROGRAM)
    try:
        wait_until(lambda: not application.runs(unique), timeout=120, what="its end")
    finally:
        application.stop(unique)
    assert "invalid partitions: expected: 4; actual: 8" in application.log_of(unique)
