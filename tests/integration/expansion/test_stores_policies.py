"""Stores equal those of their control run, if inputs grow or another topic replaces them.

Among the combinations that no other test runs, there is at least one for each policy, protocol and guarantee.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin

from testbed.broker import EmbeddedBroker
from testbed.expansion import Expansion
from tests.integration.expansion.test_stores_control_run import (
    BLUE,
    CONTROL,
    GREEN,
    TOTAL,
    assert_equal,
    assert_equals_live_control,
    await_state,
    fed,
)
from tests.support.feeder import INPUT_PARTITIONS
from tests.support.stores_application import StoresApplication, environment_of

pytestmark = [pytest.mark.integration, pytest.mark.slow]

BEFORE, AFTER = 3, 6
COMMITTED = "read_committed"


@pytest.mark.parametrize(
    ("store", "protocol", "guarantee"),
    [
        ("versioned", "streams", "exactly_once_v2"),
        ("inner-join", "classic", "at_least_once"),
        ("outer-join", "streams", "at_least_once"),
        ("suppress-window", "classic", "exactly_once_v2"),
        ("suppress-session", "streams", "at_least_once"),
        ("processor", "streams", "at_least_once"),
        ("foreign-key", "classic", "exactly_once_v2"),
        ("plain", "classic", "at_least_once"),
    ],
)
def test_behind_an_unkeyed_input_that_grows(store: str, protocol: str, guarantee: str, tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path / "broker", heap="512m") as broker:
        app = StoresApplication(store, tmp_path, broker.bootstrap_servers, guarantee, protocol)
        feeder = fed(app)
        inputs = [{"topic": topic, "policy": "unkeyed"} for topic in app.inputs]
        with environment_of(app):
            try:
                app.start(BLUE, BEFORE)
                await_state(app, BLUE)
                expansion = Expansion.of_file(
                    app.write_file(AFTER, inputs=inputs), broker.bootstrap_servers, tmp_path / "run"
                )
                timings = expansion.run()
                grown = ClusterAdmin(app.connection).describe_topics(app.inputs)
                assert {topic.partitions for topic in grown.values()} == {AFTER}
                assert_equals_live_control(app, feeder, GREEN, BEFORE, AFTER)
            finally:
                for name in (BLUE, GREEN, CONTROL):
                    app.stop(name)
        print(f"{store} {protocol} {guarantee}: {timings}")


@pytest.mark.parametrize(
    ("store", "protocol", "guarantee"),
    [
        ("versioned", "classic", "at_least_once"),
        ("plain", "streams", "exactly_once_v2"),
        ("processor", "classic", "exactly_once_v2"),
    ],
)
def test_behind_an_input_whose_place_another_topic_takes(
    store: str, protocol: str, guarantee: str, tmp_path: Path
) -> None:
    """Producers stay with the old topic. Its bridge ends when they are silent."""
    successor = f"left-p{AFTER}"
    declared: dict[str, Any] = {"topic": "left", "policy": "repartitioned", "silent_seconds": 10}
    with EmbeddedBroker(tmp_path / "broker", heap="512m") as broker:
        app = StoresApplication(store, tmp_path, broker.bootstrap_servers, guarantee, protocol, COMMITTED)
        feeder = fed(app)
        with environment_of(app):
            try:
                app.start(BLUE, BEFORE)
                await_state(app, BLUE)
                file = app.write_file(AFTER, inputs=[{**declared, "isolation_level": COMMITTED}])
                expansion = Expansion.of_file(file, broker.bootstrap_servers, tmp_path / "run")
                timings = expansion.run()
                assert feeder.sent < TOTAL, "the application must have been live all the time"
                app.start(CONTROL, BEFORE, "--output", "control")
                feeder.finish()
                app.await_processed(CONTROL)
                assert expansion.bridge is not None
                assert expansion.bridge.wait(180) == 0, expansion.log_of("bridge")
                app.await_processed(GREEN, inputs=[successor])
                assert_equal(app, GREEN, BEFORE, AFTER)
                counts = ClusterAdmin(app.connection).describe_topics(["left", successor])
                assert [counts[t].partitions for t in ("left", successor)] == [INPUT_PARTITIONS, AFTER]
            finally:
                for name in (BLUE, GREEN, CONTROL):
                    app.stop(name)
        print(f"{store} {protocol} {guarantee}: {timings}")
