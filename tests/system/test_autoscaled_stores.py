"""KIP-878's test plan, live: a Repartition, a Join, a ForeignKeyJoin and a static application follow their inputs.

The test grows the inputs, and no person does anything else. The results are those of a run on the grown inputs.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from kafka_rescale.core.control.journal import Phase
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin

from testbed.processes import wait_until
from tests.integration.expansion.test_stores_control_run import assert_equals_live_control, await_state, fed
from tests.support.airflow.autoscaled import LOOKED, await_followed, await_in_line
from tests.support.airflow.watched_stores import (
    AFTER,
    BEFORE,
    BLUE,
    GREEN,
    SLOWLY,
    StaticFeeder,
    Watched,
    on_a_broker,
    watched,
)
from tests.support.stores_application import STORES, StoresApplication

pytestmark = [pytest.mark.system, pytest.mark.slow]
STATIC = "static:tests.support.user_partitioners:numbered"


def test_repartitions_and_joins_follow_inputs_that_have_grown(tmp_path: Path) -> None:
    with on_a_broker(tmp_path, "joins", "derived") as app:
        feeder = fed(app, SLOWLY)
        inputs = [{"topic": topic, "policy": "unkeyed"} for topic in app.inputs]
        derived = [{"name": f"by-{topic}", "count": "derived"} for topic in app.inputs]
        with watched(app, inputs=inputs, repartitions=derived) as world:
            start(app)
            grow(world)
            assert_called_when_stable(world)
            assert_equals_live_control(app, feeder, GREEN, AFTER, AFTER)
            await_in_line(world.airflow.client, app.connection, "stores")


def test_a_statically_partitioned_application_follows_and_is_sent_new_keys_when_told(tmp_path: Path) -> None:
    """Every key stays. Keys of the new partitions come after ``on_partition_expansion`` was called."""
    with on_a_broker(tmp_path, "plain", "inputs") as app:
        feeder = fed(app, SLOWLY, StaticFeeder)
        assert isinstance(feeder, StaticFeeder)
        inputs = [{"topic": "left", "policy": "fixed", "partitioner": STATIC}]
        stores = [{"name": name, "type": kind, "partitioner": STATIC} for name, kind in STORES["plain"].items()]
        with watched(app, inputs=inputs, stores=stores, repartitions=[]) as world:
            start(app)
            grow(world)
            assert_called_when_stable(world)
            assert not any(end for p, end in ends(app).items() if p >= BEFORE)
            feeder.told.set()
            assert_equals_live_control(app, feeder, GREEN, AFTER, AFTER)
            assert all(ends(app).values()), "there are keys for every partition"
            await_in_line(world.airflow.client, app.connection, "stores")


def start(app: StoresApplication) -> None:
    """Start the application, and wait until it has state."""
    app.start(BLUE, BEFORE)
    await_state(app, BLUE)


def grow(world: Watched) -> None:
    """Unpause the expansion, grow the inputs, and wait until the application has followed."""
    client, app = world.airflow.client, world.app
    client.pause("expand_stores", False)
    admin = ClusterAdmin(app.connection)
    for topic in app.inputs:
        admin.grow_topic(topic, AFTER)
    await_followed(client, app.connection, "stores")


def assert_called_when_stable(world: Watched) -> None:
    """Assert that there was one call, and everything that it found had the new count."""
    wait_until(lambda: world.calls, timeout=LOOKED, what="on_partition_expansion to be called")
    (call,) = world.calls
    assert (call.old, call.new, call.phase, call.group) == (BEFORE, AFTER, Phase.VERIFIED, "Stable")
    assert set(call.counts.values()) == {AFTER}


def ends(app: StoresApplication) -> dict[int, int]:
    """The ends of the input's partitions."""
    return dict(ClusterAdmin(app.connection).end_offsets(["left"])["left"])
