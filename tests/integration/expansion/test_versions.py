"""The flights application is expanded live on several versions of Kafka Streams and brokers, and loses nothing.

Each version runs with its own jars. The application was compiled against the newest version.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.broker import EmbeddedBroker
from testbed.jars import ensure_kafka
from tests.support.live_expansion import live_application

pytestmark = [pytest.mark.integration, pytest.mark.slow]

BROKERS = ("3.9.2", "4.0.1", "4.3.1")
STREAMS = ("3.6.2", "3.9.2", "4.0.1", "4.3.1")
WRONG_WITH_A_CACHE = {"3.6.2"}
"""With these versions, the old generation's own session totals were wrong before the cutover: docs/versions.md."""


@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "at_least_once"])
@pytest.mark.parametrize("brokers", BROKERS)
@pytest.mark.parametrize("streams", STREAMS)
def test_an_application_is_expanded(streams: str, brokers: str, guarantee: str, tmp_path: Path) -> None:
    options = "--commit-interval-ms 500" + " --cache-bytes 0" * (streams in WRONG_WITH_A_CACHE)
    settings = {"FLIGHTS_JARS": str(ensure_kafka(streams)), "FLIGHTS_OPTIONS": options}
    with (
        EmbeddedBroker(tmp_path / "broker", heap="512m", version=brokers) as broker,
        live_application(tmp_path, rate=20, guarantee=guarantee, settings=settings, cluster=broker) as (
            stack,
            expansion,
        ),
    ):
        timings = expansion.run()
        stack.finish_replay()
        stack.await_equal("flights-g2")
        told = f"Kafka Streams {streams}, brokers {brokers}, {guarantee}"
        print(f"RESULT {told}: verified, equal; pause {timings['total']:.2f} s", flush=True)
