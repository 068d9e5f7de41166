"""A live application of every store type is rescaled, and ends with the stores and output of its control run."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from kafka_rescale.core.errors import PreflightRefused
from kafka_rescale.core.topology.topology import changelog_topic
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin

from testbed.broker import EmbeddedBroker
from testbed.expansion import Expansion
from testbed.processes import wait_until
from tests.support.feeder import INPUT_PARTITIONS, Feeder
from tests.support.store_contents import contents, differences, output, settled
from tests.support.stores_application import STORES, StoresApplication, environment_of

pytestmark = pytest.mark.integration

TOTAL, PRELOAD, RATE = 6_000, 3_000, 5.0
BLUE, GREEN, CONTROL = "stores", "stores-g2", "stores-control"

ONLY_THE_LAST = {"foreign-key", "foreign-key-left", "joins", "suppress", "headers"}
"""Only the last output per key is compared for these applications.
Their intermediate results depend on the order of two inputs, or on what a cache held back.
"""

GUARANTEES = ("exactly_once_v2", "at_least_once")
COUNTS = ((3, 6), (4, 6), (6, 3))
MOVABLE = [store for store in STORES if store not in {"grace", "final-window", "joins"}]
# In `make test`, I/test_expansion_control_run.py compares a live run with its control run, and
# I/test_verify_formats.py::test_a_correct_copy_passes has copies of the types that are copied in another way.
CASES = [
    pytest.param(*case, id="{}-{}to{}-{}".format(*case), marks=pytest.mark.slow)
    for case in (
        (store, before, after, guarantee)
        for store in MOVABLE
        for before, after in COUNTS
        for guarantee in GUARANTEES
    )
]


IN_PLACE = [
    pytest.param(*case, id="{}-{}".format(*case), marks=pytest.mark.slow)
    for case in product(("plain", "processor", "suppress-window", "suppress-session", "suppress"), GUARANTEES)
]


@pytest.mark.parametrize(("store", "before", "after", "guarantee"), CASES)
def test_a_rescaled_store_equals_its_control_run(
    store: str, before: int, after: int, guarantee: str, tmp_path: Path
) -> None:
    assert_equals_control_run(store, before, after, guarantee, tmp_path, GREEN)


@pytest.mark.parametrize(("store", "guarantee"), IN_PLACE)
def test_a_store_that_grows_in_place_equals_its_control_run(store: str, guarantee: str, tmp_path: Path) -> None:
    assert_equals_control_run(store, 3, 6, guarantee, tmp_path, BLUE, mode="in_place")


@pytest.mark.slow
@pytest.mark.parametrize("store", MOVABLE)
def test_a_rescaled_store_of_the_streams_protocol_equals_its_control_run(store: str, tmp_path: Path) -> None:
    assert_equals_control_run(store, 3, 6, "exactly_once_v2", tmp_path, GREEN, protocol="streams")


def assert_equals_control_run(
    store: str,
    before: int,
    after: int,
    guarantee: str,
    tmp_path: Path,
    green: str,
    *,
    protocol: str = "classic",
    **changes: str,
) -> None:
    """Rescale an application while its input goes on, and compare it with an application that never was rescaled.

    :param green: the application id that runs in the end.
    :param protocol: the protocol of its group.
    :param changes: changed fields of the application file.
    """
    with EmbeddedBroker(tmp_path / "broker", heap="512m") as broker:
        app = StoresApplication(store, tmp_path, broker.bootstrap_servers, guarantee, protocol)
        feeder = fed(app)
        with environment_of(app):
            try:
                app.start(BLUE, before)
                await_state(app, BLUE)
                file = app.write_file(after, **changes)
                expansion = Expansion.of_file(file, broker.bootstrap_servers, tmp_path / "run")
                timings = expansion.run()
                assert_equals_live_control(app, feeder, green, before, after)
            finally:
                for name in {BLUE, green, CONTROL}:
                    app.stop(name)
        print(f"{store} {before}→{after} {guarantee} {changes}: {timings}")


@pytest.mark.slow
def test_the_buffer_of_a_join_with_a_grace_period_is_refused(tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path / "broker", heap="512m") as broker:
        app = StoresApplication("grace", tmp_path, broker.bootstrap_servers)
        fed(app).finish()
        with environment_of(app):
            try:
                app.start(BLUE, 3)
                await_state(app, BLUE)
                expansion = Expansion.of_file(app.write_file(6), broker.bootstrap_servers, tmp_path / "run")
                with pytest.raises(PreflightRefused) as error:
                    expansion.begin()
            finally:
                app.stop(BLUE)
    assert [f.what for f in error.value.findings] == ["store 'grace-Buffer'"]


def fed(app: StoresApplication, rate: float = RATE, kind: type[Feeder] = Feeder) -> Feeder:
    """Create the topics, and begin to send.

    :param rate: records per second after the records that are sent at once.
    """
    client = app.connection.client()
    admin = ClusterAdmin(app.connection)
    for topic in app.inputs:
        admin.ensure_topic(topic, INPUT_PARTITIONS, 1, {"retention.ms": "-1"})
    for topic in ("out", "control"):
        admin.ensure_topic(topic, INPUT_PARTITIONS, 1, {"retention.ms": "-1"})
    feeder = kind(client, app.inputs, TOTAL)
    feeder.begin(PRELOAD, rate)
    return feeder


def await_state(app: StoresApplication, name: str) -> None:
    """Wait until every store has records in its changelog."""
    admin = ClusterAdmin(app.connection)
    topics = [changelog_topic(name, store) for store in STORES[app.store]]

    def filled() -> bool:
        ends = admin.end_offsets(topics)
        return len(ends) == len(topics) and all(sum(of_topic.values()) for of_topic in ends.values())

    wait_until(filled, timeout=120, what=f"state in {', '.join(topics)}")


def assert_equals_live_control(
    app: StoresApplication, feeder: Feeder, green: str, before: int, after: int
) -> None:
    """Let a control run process the same input from its beginning, let both finish it, and compare them."""
    assert feeder.sent < TOTAL, "the application must have been live all the time"
    app.start(CONTROL, before, "--output", "control")
    feeder.finish()
    for flush in (feeder.flush_windows, lambda: None):
        for name in (green, CONTROL):
            app.await_processed(name)
        flush()
    assert_equal(app, green, before, after)


def assert_equal(app: StoresApplication, green: str, before: int, after: int) -> None:
    """Assert that every store and the output are equal to those of the control run."""
    connection = app.connection
    for store, store_type in STORES[app.store].items():
        expected, found = (
            contents(
                connection,
                changelog_topic(name, store),
                store_type,
                count,
                timestamps=store not in {"joined", "fk-joined"},
            )
            for name, count in ((CONTROL, before), (green, after))
        )
        assert differences(expected, found) == [], store
        assert expected or store_type == "outer-join"
    latest = app.store in ONLY_THE_LAST
    expected, found = (output(connection, topic, latest=latest) for topic in ("control", "out"))
    if app.store in {"left-join", "outer-join"}:
        expected, found = settled(expected), settled(found)
    assert differences(expected, found) == [], "output"
    assert expected
