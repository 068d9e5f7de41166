"""An admin client whose broker is down waits between attempts to connect, and uses hardly any processor time."""

from __future__ import annotations

import json
import time
from concurrent.futures import wait
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from kafka_rescale.kafka.client.connection import KafkaConnection

from testbed.broker import EmbeddedBroker

pytestmark = pytest.mark.integration

SECONDS = 6.0
OFTEN = 10
"""Attempts per second: far more than with a backoff, and a thousandth of those without a backoff."""


class Asking:
    """An admin client that asks again and again, and counts."""

    def __init__(self, connection: KafkaConnection) -> None:
        self._statistics: dict[str, int] = {}
        self._admin = AdminClient(
            {**connection.client(), "statistics.interval.ms": 500, "stats_cb": self._take, "log_level": 0}
        )

    def _take(self, statistics: str) -> None:
        brokers = json.loads(statistics)["brokers"]
        self._statistics.update({name: broker["connects"] for name, broker in brokers.items()})

    def measure(self) -> tuple[int, float]:
        """Ask for some seconds. Return the number of attempts to connect, and the processor time in seconds."""
        attempts, processor, end = self._attempts(), time.process_time(), time.monotonic() + SECONDS
        while time.monotonic() < end:
            asked = [self._admin.describe_cluster(request_timeout=2)]
            while wait(asked, timeout=0.1).not_done:
                self._admin.poll(0)
            time.sleep(0.1)
        self._admin.poll(0.6)
        return self._attempts() - attempts, time.process_time() - processor

    def _attempts(self) -> int:
        return sum(self._statistics.values())


def test_a_broker_that_is_down_costs_no_more_than_one_that_is_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with EmbeddedBroker(tmp_path, heap="384m") as broker:
        asking = Asking(KafkaConnection(broker.client_config()))
        up = asking.measure()
        broker.kill()
        down = asking.measure()
    with capsys.disabled():
        print(
            f"\nattempts to connect in {SECONDS:.0f} s: {up[0]} while up, {down[0]} while down; "
            f"processor time while down against up: {down[1] / up[1]:.1f}"
        )
    assert down[0] < OFTEN * SECONDS
    # Without a backoff it is hundreds of times as much. The process also does a little other work.
    assert down[1] < 20 * up[1]
