"""KIP-878 from end to end: somebody grows an input of a live application, and nobody does anything else."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from kafka_rescale.core.journal import Phase
from kafka_rescale.embedded.demo import ROOT, Options, await_live, environment
from kafka_rescale.embedded.processes import wait_until
from kafka_rescale.kafka.admin import ClusterAdmin
from kafka_rescale.kafka.connection import KafkaConnection
from kafka_rescale.kafka.control_topic import ControlTopic

from tests.support.airflow_runs import assert_success

pytestmark = [pytest.mark.system, pytest.mark.slow]
EXPAND, FIRST = "expand_flights", "autoscaling__1__to_8"
NOTICED, EXPANDED = 420, 900


def test_growing_an_input_ends_in_a_verified_expansion(tmp_path: Path) -> None:
    options = Options(
        directory=tmp_path / "world",
        # The application dies of the growth: with at-least-once, what it had not committed is counted again.
        guarantee="exactly_once_v2",
        target=8,
        preload=6_000,
        rate=10,
        limit=20_000,
        remove_record=False,
        keep=False,
        port=None,
    )
    options.directory.mkdir()
    with environment(options, scaled(tmp_path / "applications")) as (stack, airflow):
        await_live(stack, options)
        airflow.client.pause(EXPAND, False)
        connection = KafkaConnection(stack.client)
        ClusterAdmin(connection).grow_topic("flights", 8)

        airflow.client.wait(lambda: FIRST in airflow.client.runs(EXPAND), "the growth to be noticed", NOTICED)
        assert_success(airflow.client, EXPAND, FIRST, EXPANDED)
        control = ControlTopic(connection, "flights").read()
        assert control.journal is not None
        assert control.journal.phase is Phase.COMPLETE
        assert control.report["passed"]
        stack.finish_replay()
        stack.await_equal("flights-g2")

        def settled() -> bool:
            record = ControlTopic(connection, "flights").read().autoscaling
            return record is not None and (record.attempts, record.target, record.failures) == (1, 0, 0)

        wait_until(settled, timeout=NOTICED, what="the follow-up check to find every count in line")
        assert set(airflow.client.runs(EXPAND)) == {FIRST}


def scaled(directory: Path) -> Path:
    """The demo's application file, with autoscaling."""
    shutil.copytree(ROOT / "applications", directory)
    file = directory / "flights.yaml"
    file.write_text(f"{file.read_text()}\npartition.autoscaling.enabled: true\n")
    return directory
