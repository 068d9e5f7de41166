"""A live application with its own prefix for internal topics. Its next version gives them other names."""

from __future__ import annotations

from pathlib import Path

import pytest
from kafka_rescale.core.application.instance import Instance
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin

from testbed.broker import EmbeddedBroker
from testbed.expansion import Expansion
from testbed.processes import wait_until
from tests.support.feeder import INPUT_PARTITIONS, Feeder
from tests.support.store_contents import contents, differences, output
from tests.support.stores_application import (
    STORES,
    StoresApplication,
    StoresLifecycle,
    environment_of,
    running_application,
)

pytestmark = [pytest.mark.integration, pytest.mark.slow]

STORE, TOTAL, PRELOAD, RATE, BEFORE, AFTER = "suppress-window", 6_000, 3_000, 5.0, 3, 6
PREFIX, RENAMED = "team.state", "v2-"
NAMES = {name: RENAMED + name for name in (*STORES[STORE], "by-left")}


class RenamedLifecycle(StoresLifecycle):
    """The first generation runs the old version of the program. Every later generation runs the new version."""

    def start(self, instance: Instance) -> None:
        """Start it unless it runs."""
        renamed = RENAMED if instance.generation > 1 else ""
        if not self.is_running(instance):
            running_application().start(
                instance.application_id, instance.partitions, *options(instance.internal_topic_prefix, renamed)
            )


def options(prefix: str, renamed: str = "") -> list[str]:
    """Return the options that tell an instance the names of its topics."""
    return ["--internal-prefix", prefix, "--renamed", renamed]


def test_it_ends_as_one_that_was_never_rescaled(tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path / "broker", heap="512m") as broker:
        app = StoresApplication(STORE, tmp_path, broker.bootstrap_servers, "exactly_once_v2")
        admin, connection = ClusterAdmin(app.connection), app.connection
        for topic in (*app.inputs, "out", "control"):
            admin.ensure_topic(topic, INPUT_PARTITIONS, 1, {"retention.ms": "-1"})
        feeder = Feeder(connection.client(), app.inputs, TOTAL)
        feeder.begin(PRELOAD, RATE)
        file = app.write_file(
            AFTER,
            internal_topic_prefix=PREFIX,
            green_names=NAMES,
            lifecycle={"type": "python", "callable": f"{__name__}:{RenamedLifecycle.__name__}"},
        )
        with environment_of(app):
            try:
                app.start("stores", BEFORE, *options(PREFIX))
                changelog = f"{PREFIX}-counts-changelog"
                wait_until(
                    lambda: any(admin.end_offsets([changelog], if_present=True).get(changelog, {}).values()),
                    timeout=120,
                    what=f"state in {changelog}",
                )
                Expansion.of_file(file, broker.bootstrap_servers, tmp_path / "run").run()
                assert feeder.sent < TOTAL, "the application must have been live all the time"
                app.start("stores-control", BEFORE, "--output", "control")
                feeder.finish()
                await_processed(app)
                feeder.flush_windows()
                await_processed(app)
                for store, kind in STORES[STORE].items():
                    expected = contents(connection, f"stores-control-{store}-changelog", kind, BEFORE)
                    found = contents(connection, f"{PREFIX}-g2-{RENAMED}{store}-changelog", kind, AFTER)
                    assert differences(expected, found) == [], store
                expected, found = (output(connection, topic, latest=False) for topic in ("control", "out"))
                assert expected
                assert differences(expected, found) == [], "output"
            finally:
                for name in ("stores", "stores-g2", "stores-control"):
                    app.stop(name)


def await_processed(app: StoresApplication) -> None:
    """Wait until both compared applications have processed their input."""
    app.await_processed("stores-g2", repartitions=[f"{PREFIX}-g2-{RENAMED}by-left-repartition"])
    app.await_processed("stores-control")
