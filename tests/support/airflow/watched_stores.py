"""An application of ``jvm/tests`` beside an Airflow that watches it while its inputs grow (KIP-878)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from testbed.airflow_standalone import AirflowStandalone
from testbed.broker import EmbeddedBroker
from tests.support import stores_application
from tests.support.airflow import live_callbacks
from tests.support.airflow.live_callbacks import Call, calls_in
from tests.support.feeder import Feeder
from tests.support.stores_application import StoresApplication, environment_of, variables_of
from tests.support.user_partitioners import numbered

BLUE, GREEN, CONTROL = "stores", "stores-g2", "stores-control"
BEFORE, AFTER = 4, 8
SLOWLY = 2.0
"""Records per second that go on arriving. Some records are still to come when the expansion ends."""


@dataclass
class Watched:
    """The application, its Airflow, and the file to which ``on_partition_expansion`` writes its calls."""

    app: StoresApplication
    airflow: AirflowStandalone
    file: Path

    @property
    def calls(self) -> list[Call]:
        """The calls of the function: its arguments, and what it found."""
        return calls_in(self.file)


@contextmanager
def watched(app: StoresApplication, **declared: Any) -> Iterator[Watched]:
    """Start Airflow beside a running broker. At the end of the block, Airflow and all generations are stopped.

    :param declared: further fields of the application file.
    """
    file = app.directory / "calls"
    app.write_file(
        BEFORE,
        **{
            "lifecycle": {"type": "python", "callable": f"{stores_application.__name__}:LastingLifecycle"},
            "partition.autoscaling.enabled": True,
            "on_partition_expansion": f"{live_callbacks.__name__}:note",
            **declared,
        },
    )
    connections: dict[str, dict[str, object]] = {
        "kafka_default": {"conn_type": "kafka", "extra": {"bootstrap.servers": app.bootstrap_servers}},
        "spark_default": {"conn_type": "spark", "host": "local[2]"},
    }
    env = {
        **live_callbacks.settings(file, "stores"),
        **variables_of(app),
        "KAFKA_BOOTSTRAP_SERVERS": app.bootstrap_servers,
        "KAFKA_RESCALE_APPLICATIONS": str(app.directory),
    }
    with environment_of(app):
        try:
            with AirflowStandalone(app.directory / "airflow", connections=connections, env=env) as airflow:
                yield Watched(app, airflow, file)
        finally:
            for name in (BLUE, GREEN, CONTROL):
                app.stop(name)


@contextmanager
def on_a_broker(directory: Path, store: str, counts: str) -> Iterator[StoresApplication]:
    """An application with exactly-once processing, on a broker of its own.

    :param counts: where the partition counts of its internal topics come from.
    """
    with EmbeddedBroker(directory / "broker", heap="512m") as broker:
        own = directory / "stores"
        own.mkdir()
        yield StoresApplication(store, own, broker.bootstrap_servers, "exactly_once_v2", counts=counts)


@dataclass
class StaticFeeder(Feeder):
    """Places keys by a static partitioner. Keys of new partitions come only after ``told`` is set.

    :ivar told: set by the test when the application has followed the growth.
    """

    told: threading.Event = field(default_factory=threading.Event)

    def _partition(self, topic: str, key: bytes) -> int:
        return numbered(topic, key, AFTER)

    def _record(self, topic: str, turn: int) -> tuple[str, str]:
        key, value = super()._record(topic, turn)
        number = int(key.removeprefix("key-"))
        return key if self.told.is_set() else f"key-{number - number % AFTER + number % BEFORE}", value
