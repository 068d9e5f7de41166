"""A live application that is rescaled ends with the same state and output as one that never was."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from kafka_rescale.embedded.broker import EmbeddedBroker
from kafka_rescale.embedded.expansion import ROOT, Expansion
from kafka_rescale.embedded.flights import load
from kafka_rescale.embedded.flights_stack import FlightsStack, environment_of
from kafka_rescale.embedded.processes import wait_until
from kafka_rescale.embedded.progress import Progress
from kafka_rescale.embedded.replay import Replay
from kafka_rescale.embedded.topics import create_inputs, create_outputs

from tests.support.stores import Entry, differences, live_entries

pytestmark = pytest.mark.integration

FLIGHTS = 12_000
STORES = ("aircraft-totals", "aircraft-sessions", "airport-hourly")
TABLE, GLOBAL = ROOT / "applications" / "flights.yaml", ROOT / "tests" / "data" / "flights-global.yaml"


@dataclass(frozen=True)
class Control:
    """Result of the application that was never rescaled, and when its flights took place."""

    stores: dict[str, dict[bytes, Entry]]
    shift_hours: int


@pytest.fixture(scope="module")
def control(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Control]:
    """The same input through an unscaled application, on a broker of its own."""
    directory = tmp_path_factory.mktemp("control")
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
        yield Control(stores, dataset.shift_hours)


# Fewer partitions in each test run, where every DAG and the demo go from 4 to 8; the others by `make test-slow`.
CASES = [
    pytest.param(4, 8, TABLE, "exactly_once_v2", id="4to8-exactly_once_v2", marks=pytest.mark.slow),
    pytest.param(4, 6, TABLE, "at_least_once", id="4to6-at_least_once", marks=pytest.mark.slow),
    pytest.param(8, 4, GLOBAL, "exactly_once_v2", id="8to4-exactly_once_v2"),
    pytest.param(4, 8, TABLE, "at_least_once", id="4to8-at_least_once", marks=pytest.mark.slow),
    pytest.param(4, 6, TABLE, "exactly_once_v2", id="4to6-exactly_once_v2", marks=pytest.mark.slow),
    pytest.param(8, 4, GLOBAL, "at_least_once", id="8to4-at_least_once", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("before", "after", "file", "guarantee"), CASES)
def test_a_rescaled_application_equals_its_control_run(
    before: int, after: int, file: Path, guarantee: str, control: Control, tmp_path: Path
) -> None:
    settings = {"FLIGHTS_OPTIONS": "--planes global", "FLIGHTS_PARTITIONS": str(before)} if file == GLOBAL else {}
    with EmbeddedBroker(tmp_path / "broker", heap="512m") as broker:
        stack = FlightsStack(
            tmp_path / "flights",
            broker.bootstrap_servers,
            partitions=before,
            guarantee=guarantee,
            preload=FLIGHTS // 2,
            rate=12,
            limit=FLIGHTS,
            settings=settings,
        )
        stack.directory.mkdir()
        # The same hours as the control run: timestamps are compared too.
        Progress("fresh", 0, FLIGHTS, control.shift_hours).write(stack.progress_file)
        with environment_of(stack):
            try:
                stack.start_replay()
                stack.await_sent(FLIGHTS // 2)
                assert stack.run("start") == 0
                expansion = Expansion.of_file(
                    file, broker.bootstrap_servers, tmp_path / "run", {"partitions": after}
                )
                wait_until(lambda: _has_output(expansion), timeout=120, what="the first output")
                timings = expansion.run()
                assert stack.sent() < FLIGHTS, "the application must have been live all the time"
                stack.finish_replay()
                stack.await_equal("flights-g2")
            finally:
                stack.stop("flights", "flights-g2")
        print(f"{before}→{after} {guarantee}: {timings}")
        for store, expected in control.stores.items():
            found = live_entries(broker.bootstrap_servers, f"flights-g2-{store}-changelog")
            assert differences(expected, found, timestamps=store != "aircraft-sessions") == [], store


def _has_output(expansion: Expansion) -> bool:
    from kafka_rescale.kafka.admin import ClusterAdmin

    ends = ClusterAdmin(expansion.connection).end_offsets([o.topic for o in expansion.application.outputs])
    return all(sum(partitions.values()) for partitions in ends.values())
