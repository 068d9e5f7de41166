"""The flights application that is never rescaled, and what one that was rescaled is compared with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kafka_rescale.embedded.broker import EmbeddedBroker
from kafka_rescale.embedded.expansion import Expansion
from kafka_rescale.embedded.flights import load
from kafka_rescale.embedded.flights_stack import FlightsStack
from kafka_rescale.embedded.processes import wait_until
from kafka_rescale.embedded.progress import Progress
from kafka_rescale.embedded.replay import Replay
from kafka_rescale.embedded.topics import create_inputs, create_outputs
from kafka_rescale.kafka.admin import ClusterAdmin

from tests.support.stores import Entry, differences, live_entries

FLIGHTS = 12_000
STORES = ("aircraft-totals", "aircraft-sessions", "airport-hourly")


@dataclass(frozen=True)
class Control:
    """Result of the application that was never rescaled, and when its flights took place."""

    stores: dict[str, dict[bytes, Entry]]
    shift_hours: int

    def assert_equal(self, bootstrap_servers: str, application_id: str) -> None:
        """Compare the stores of a generation with these."""
        for store, expected in self.stores.items():
            found = live_entries(bootstrap_servers, f"{application_id}-{store}-changelog")
            assert differences(expected, found, timestamps=store != "aircraft-sessions") == [], store


def control_run(directory: Path) -> Control:
    """Return what all flights make of the application, on a broker of its own."""
    with EmbeddedBroker(directory / "broker", heap="512m") as broker:
        dataset = load(limit=FLIGHTS)
        stack = FlightsStack(directory, broker.bootstrap_servers)
        create_inputs(stack.client, 4)
        create_outputs(stack.client, 4)
        replay = Replay(stack.client, dataset)
        replay.send_planes()
        replay.send_at_once(FLIGHTS)
        replay.flush()
        Progress("finished", FLIGHTS, FLIGHTS, dataset.shift_hours).write(stack.progress_file)
        stack.run("start")
        try:
            stack.await_equal("flights")
        finally:
            stack.stop("flights")
        stores = {s: live_entries(broker.bootstrap_servers, f"flights-{s}-changelog") for s in STORES}
        return Control(stores, dataset.shift_hours)


def await_output(expansion: Expansion) -> None:
    """Return when the application has written something to each of its outputs."""
    admin, topics = ClusterAdmin(expansion.connection), [o.topic for o in expansion.application.outputs]

    def written() -> bool:
        return all(sum(partitions.values()) for partitions in admin.end_offsets(topics).values())

    wait_until(written, timeout=120, what="the first output")
