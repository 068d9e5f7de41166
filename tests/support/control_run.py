"""The flights application without an expansion. Tests compare a rescaled application with its result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin

from testbed.broker import EmbeddedBroker
from testbed.expansion import Expansion
from testbed.flights import load
from testbed.flights_stack import FlightsStack, environment_of
from testbed.processes import wait_until
from testbed.progress import Progress
from testbed.replay import Replay
from testbed.topics import create_inputs, create_outputs
from tests.support.stores import Entry, differences, live_entries

FLIGHTS = 12_000
STORES = ("aircraft-totals", "aircraft-sessions", "airport-hourly")


@dataclass(frozen=True)
class Control:
    """The result of the application that was never rescaled, and the times of its flights."""

    stores: dict[str, dict[bytes, Entry]]
    shift_hours: int

    def assert_equal(self, bootstrap_servers: str, application_id: str) -> None:
        """Assert that the stores of a generation are equal to these."""
        for store, expected in self.stores.items():
            found = live_entries(bootstrap_servers, f"{application_id}-{store}-changelog")
            assert differences(expected, found, timestamps=store != "aircraft-sessions") == [], store


def control_run(directory: Path) -> Control:
    """Let the application process all flights on a broker of its own, and return its result."""
    with EmbeddedBroker(directory / "broker", heap="512m") as broker:
        dataset = load(limit=FLIGHTS)
        # The run ends with its last commit. By default there is one commit in 30 s.
        settings = {"FLIGHTS_OPTIONS": "--commit-interval-ms 500"}
        stack = FlightsStack(directory, broker.bootstrap_servers, settings=settings)
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


@contextmanager
def compared_run(
    directory: Path,
    control: Control,
    *,
    partitions: int = 4,
    guarantee: str = "exactly_once_v2",
    rate: float,
    settings: Mapping[str, str],
    generations: tuple[str, ...],
) -> Iterator[FlightsStack]:
    """The application at work on the first half of a control run's flights, on a broker of its own.

    When the block ends, the application processes the rest. Then the stores of the last generation must be equal
    to those of the control run.

    :param rate: flights per second that arrive at first. Later they become fewer, so that some are left at the
        end.
    :param settings: further ``FLIGHTS_…`` variables of ``run.sh``.
    :param generations: all generations that have run by the end.
    """
    with EmbeddedBroker(directory / "broker", heap="512m") as broker:
        stack = FlightsStack(
            directory / "flights",
            broker.bootstrap_servers,
            partitions=partitions,
            guarantee=guarantee,
            preload=FLIGHTS // 2,
            rate=rate,
            limit=FLIGHTS,
            lasting=True,
            settings=settings,
        )
        stack.directory.mkdir()
        # The flights have the same hours as in the control run, because timestamps are compared too.
        Progress("fresh", 0, FLIGHTS, control.shift_hours).write(stack.progress_file)
        with environment_of(stack):
            try:
                stack.start_replay()
                stack.await_sent(FLIGHTS // 2)
                assert stack.run("start") == 0
                yield stack
                assert stack.is_replaying(), "the application must have been live all the time"
                stack.finish_replay()
                stack.await_equal(generations[-1])
            finally:
                stack.stop(*generations)
        control.assert_equal(broker.bootstrap_servers, generations[-1])


def await_output(expansion: Expansion) -> None:
    """Wait until the application has written something to each of its outputs."""
    admin, topics = ClusterAdmin(expansion.connection), [o.topic for o in expansion.application.outputs]

    def written() -> bool:
        return all(sum(partitions.values()) for partitions in admin.end_offsets(topics).values())

    wait_until(written, timeout=120, what="the first output")
