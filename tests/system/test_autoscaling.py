"""KIP-878 from end to end: somebody grows an input of a live application, and nobody does anything else."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from kafka_rescale.core.control.journal import Phase
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.control_topic import ControlTopic

from testbed.airflow_standalone import AirflowStandalone
from testbed.demo import ROOT, Options, await_live, environment
from testbed.flights_stack import FlightsStack
from testbed.processes import wait_until
from tests.support.airflow.airflow_runs import assert_success

pytestmark = [pytest.mark.system, pytest.mark.slow]
EXPAND, FIRST = "expand_flights", "autoscaling__1__to_8"
NOTICED, EXPANDED = 420, 900


def test_growing_an_input_ends_in_a_verified_expansion(tmp_path: Path) -> None:
    # The application dies of the growth: with at-least-once, what it had not committed is counted again.
    options = options_of(tmp_path, "exactly_once_v2")
    with environment(options, scaled(tmp_path / "applications")) as (stack, airflow):
        await_live(stack, options)
        airflow.client.pause(EXPAND, False)
        ClusterAdmin(connection_of(stack)).grow_topic("flights", 8)
        await_expanded(stack, airflow)


@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "at_least_once"])
def test_an_input_into_whose_new_partitions_nobody_writes_is_expanded_as_well(
    tmp_path: Path, guarantee: str
) -> None:
    """KIP-878: "they should wait for this before sending any records to the new input topic partitions".

    The file does not say that the program leaves the counts to Kafka Streams: what the watch has recorded tells
    the growth. The control run is what follows from the flights that were sent.
    """
    options = options_of(tmp_path, guarantee)
    applications = scaled(tmp_path / "applications", says_derived=False)
    with environment(options, applications, pinned=True) as (stack, airflow):
        await_live(stack, options)
        airflow.client.pause(EXPAND, False)
        connection = connection_of(stack)
        wait_until(lambda: recorded(stack) == 4, timeout=NOTICED, what="the watch to record the input's count")
        if guarantee == "at_least_once":
            # What it has processed and not committed when it dies is processed again, as after any crash.
            stack.finish_replay()
            stack.await_equal("flights")
            wait_until(lambda: uncommitted(stack) == 0, timeout=120, what="everything to be committed")
        ClusterAdmin(connection).grow_topic("flights", 8)
        await_expanded(stack, airflow)
        ends = ClusterAdmin(connection).end_offsets(["flights"])["flights"]
        assert {p for p, end in ends.items() if end} == set(range(4))


def await_expanded(stack: FlightsStack, airflow: AirflowStandalone) -> None:
    """Return when the growth has been noticed, expanded, verified, and every result is right."""
    airflow.client.wait(lambda: FIRST in airflow.client.runs(EXPAND), "the growth to be noticed", NOTICED)
    assert_success(airflow.client, EXPAND, FIRST, EXPANDED)
    control = ControlTopic(connection_of(stack), "flights").read()
    assert control.journal is not None
    assert control.journal.phase is Phase.COMPLETE
    assert control.report["passed"]
    stack.finish_replay()
    stack.await_equal("flights-g2")

    def settled() -> bool:
        record = ControlTopic(connection_of(stack), "flights").read().autoscaling
        return record is not None and (record.attempts, record.target, record.failures) == (1, 0, 0)

    wait_until(settled, timeout=NOTICED, what="the follow-up check to find every count in line")
    assert recorded(stack) == 8
    assert set(airflow.client.runs(EXPAND)) == {FIRST}


def options_of(directory: Path, guarantee: str) -> Options:
    """A small year, grown to 8."""
    world = directory / "world"
    world.mkdir()
    return Options(
        directory=world,
        guarantee=guarantee,
        target=8,
        preload=6_000,
        rate=10,
        limit=20_000,
        remove_record=False,
        keep=False,
        port=None,
    )


def connection_of(stack: FlightsStack) -> KafkaConnection:
    """The cluster of the stack."""
    return KafkaConnection(stack.client)


def recorded(stack: FlightsStack) -> int:
    """Partitions of the input that the watch has recorded; 0 before."""
    record = ControlTopic(connection_of(stack), "flights").read().autoscaling
    return record.inputs.get("flights", 0) if record is not None else 0


def uncommitted(stack: FlightsStack) -> int:
    """Offsets of all topics that the application reads and has not committed, together."""
    admin = ClusterAdmin(connection_of(stack))
    committed = admin.committed("flights")
    ends = admin.end_offsets(committed)
    return sum(end - committed[topic].get(p, 0) for topic, of in ends.items() for p, end in of.items())


def scaled(directory: Path, *, says_derived: bool = True) -> Path:
    """The demo's application file, with autoscaling.

    :param says_derived: as it is, it says that the program sets no counts.
    """
    shutil.copytree(ROOT / "applications", directory)
    file = directory / "flights.yaml"
    text = file.read_text()
    if not says_derived:
        text = re.sub(r"repartitions:.*\n(?:  - .*count: derived.*\n)+", "", text)
        assert "count: derived" not in text
    file.write_text(f"{text}\npartition.autoscaling.enabled: true\n")
    return directory
