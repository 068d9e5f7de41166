"""KIP-878 from end to end: an input of a live application grows, and no person does anything else."""

from __future__ import annotations

from pathlib import Path

import pytest
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin

from testbed.demo import await_live, environment
from testbed.processes import wait_until
from tests.support.airflow.autoscaled import (
    LOOKED,
    await_expanded,
    connection_of,
    options_of,
    recorded,
    scaled,
    uncommitted,
)

pytestmark = [pytest.mark.system, pytest.mark.slow]
EXPAND = "expand_flights"


def test_growing_an_input_ends_in_a_verified_expansion(tmp_path: Path) -> None:
    # The application dies of the growth. With at-least-once, it counts again what it had not committed.
    options = options_of(tmp_path, "exactly_once_v2")
    with environment(options, scaled(tmp_path / "applications")) as (stack, airflow):
        await_live(stack, options)
        airflow.client.pause(EXPAND, False)
        ClusterAdmin(connection_of(stack)).grow_topic("flights", 8)
        await_expanded(stack, airflow.client)


@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "at_least_once"])
def test_an_input_into_whose_new_partitions_nobody_writes_is_expanded_as_well(
    tmp_path: Path, guarantee: str
) -> None:
    """KIP-878: "they should wait for this before sending any records to the new input topic partitions".

    The file does not say that the program leaves the counts to Kafka Streams. The watch knows of the growth by the
    counts that it has recorded. The expected result is computed from the flights that were sent.
    """
    options = options_of(tmp_path, guarantee)
    applications = scaled(tmp_path / "applications", says_derived=False)
    with environment(options, applications, pinned=True) as (stack, airflow):
        await_live(stack, options)
        airflow.client.pause(EXPAND, False)
        connection = connection_of(stack)
        wait_until(lambda: recorded(stack) == 4, timeout=LOOKED, what="the watch to record the input's count")
        if guarantee == "at_least_once":
            # It processes again what it had processed and not committed when it died, as after any crash.
            stack.finish_replay()
            stack.await_equal("flights")
            wait_until(lambda: uncommitted(stack) == 0, timeout=120, what="everything to be committed")
        ClusterAdmin(connection).grow_topic("flights", 8)
        await_expanded(stack, airflow.client)
        ends = ClusterAdmin(connection).end_offsets(["flights"])["flights"]
        assert {p for p, end in ends.items() if end} == set(range(4))
