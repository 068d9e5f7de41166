"""Windows that were emitted as final stay in their store, and are not emitted again after a cutover."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest
from confluent_kafka import Producer
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin

from testbed.broker import EmbeddedBroker
from testbed.expansion import Expansion
from testbed.processes import wait_until
from tests.integration.copy_helpers import read
from tests.support.stores_application import StoresApplication, environment_of

pytestmark = pytest.mark.integration

BLUE, GREEN = "stores", "stores-g2"
KEYS, T0, HOUR_MS, INPUT_PARTITIONS = 60, 1_700_000_000_000, 3_600_000, 4


def send_wave(app: StoresApplication, number: int) -> None:
    """Send one record for each key.

    Its time is hours after the previous wave, so it closes the windows of that wave.
    """
    producer = Producer(app.connection.client())
    for key in range(KEYS):
        at = T0 + number * 2 * HOUR_MS
        producer.produce("left", b"v", b"key-%d" % key, key % INPUT_PARTITIONS, timestamp=at)
    assert producer.flush(30) == 0


def emitted(app: StoresApplication) -> dict[tuple[str, int], list[bytes | None]]:
    """The emitted results, by key and wave."""
    found: dict[tuple[str, int], list[bytes | None]] = defaultdict(list)
    for records in read(app.connection, "out").values():
        for record in records:
            key, _, start = (record.key or b"").decode().partition("@")
            found[key, round((int(start) - T0) / (2 * HOUR_MS))].append(record.value)
    return dict(found)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "after", "again"),
    [pytest.param(3, 6, False, id="3to6"), pytest.param(4, 6, True, id="4to6")],
)
def test_what_was_final_does_not_come_out_again(before: int, after: int, again: bool, tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path / "broker", heap="512m") as broker:
        app = StoresApplication("final-window", tmp_path, broker.bootstrap_servers, "exactly_once_v2")
        admin = ClusterAdmin(app.connection)
        for topic in ("left", "out"):
            admin.ensure_topic(topic, INPUT_PARTITIONS, 1, {"retention.ms": "-1"})
        with environment_of(app):
            try:
                app.start(BLUE, before)
                for number in (0, 1):
                    send_wave(app, number)
                    app.await_processed(BLUE)
                wait_until(lambda: len(emitted(app)) == KEYS, timeout=60, what="the first windows")
                Expansion.of_file(app.write_file(after), broker.bootstrap_servers, tmp_path / "run").run()
                send_wave(app, 2)
                app.await_processed(GREEN)
                wait_until(lambda: len(emitted(app)) == 2 * KEYS, timeout=60, what="the second windows")
            finally:
                for name in (BLUE, GREEN):
                    app.stop(name)
        found = emitted(app)
    assert found.keys() == {(f"key-{key}", wave) for key in range(KEYS) for wave in (0, 1)}
    assert {value for values in found.values() for value in values} == {b"1"}
    assert again or {len(values) for values in found.values()} == {1}
