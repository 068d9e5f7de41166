"""The flights application, watched for the growth of its input in a real Airflow (KIP-878)."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from kafka_rescale.core.control.journal import Phase
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.control_topic import ControlTopic

from testbed.airflow_client import AirflowClient
from testbed.demo import ROOT, Options
from testbed.flights_stack import FlightsStack
from testbed.processes import wait_until
from tests.support.airflow.airflow_runs import assert_success

FIRST = "autoscaling__1__to_8"
NOTICED, LOOKED, EXPANDED = 300, 420, 900
"""Seconds. NOTICED: KIP-878 allows so long until a growth is noticed (``metadata.max.age.ms``).
LOOKED: one or two looks of the watch. EXPANDED: one whole run.
"""


def await_followed(client: AirflowClient, connection: KafkaConnection, application: str) -> None:
    """Wait until the watch has noticed that an input grew to 8, and its first run has expanded and verified."""
    expand = f"expand_{application}"
    client.wait(lambda: FIRST in client.runs(expand), "the growth to be noticed", NOTICED)
    assert_success(client, expand, FIRST, EXPANDED)
    control = ControlTopic(connection, application).read()
    assert control.journal is not None
    assert control.journal.phase is Phase.COMPLETE
    assert control.report["passed"]


def await_in_line(client: AirflowClient, connection: KafkaConnection, application: str) -> None:
    """Wait until the watch finds every count in line, after one expansion and no failure."""

    def settled() -> bool:
        record = ControlTopic(connection, application).read().autoscaling
        return record is not None and (record.attempts, record.target, record.failures) == (1, 0, 0)

    wait_until(settled, timeout=LOOKED, what="the follow-up check to find every count in line")
    assert set(client.runs(f"expand_{application}")) == {FIRST}


def await_expanded(stack: FlightsStack, client: AirflowClient) -> None:
    """Wait until the growth is noticed, the expansion is verified, and every result is right."""
    connection = connection_of(stack)
    await_followed(client, connection, "flights")
    stack.finish_replay()
    stack.await_equal("flights-g2")
    await_in_line(client, connection, "flights")
    assert recorded(stack) == 8


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
    )


def connection_of(stack: FlightsStack) -> KafkaConnection:
    """The cluster of the stack."""
    return KafkaConnection(stack.client)


def recorded(stack: FlightsStack) -> int:
    """The number of partitions of the input that the watch has recorded. It is 0 before the first record."""
    record = ControlTopic(connection_of(stack), "flights").read().autoscaling
    return record.inputs.get("flights", 0) if record is not None else 0


def uncommitted(stack: FlightsStack) -> int:
    """The number of offsets that the application has not committed yet, summed over all topics that it reads."""
    admin = ClusterAdmin(connection_of(stack))
    committed = admin.committed("flights")
    ends = admin.end_offsets(committed)
    return sum(end - committed[topic].get(p, 0) for topic, of in ends.items() for p, end in of.items())


def scaled(directory: Path, changes: Mapping[str, Any] | None = None, *, says_derived: bool = True) -> Path:
    """The demo's application file, with autoscaling.

    :param changes: further fields.
    :param says_derived: keep the ``count: derived`` entries, which say that the program sets no counts.
    """
    shutil.copytree(ROOT / "applications", directory)
    file = directory / "flights.yaml"
    text = file.read_text()
    if not says_derived:
        text = re.sub(r"repartitions:.*\n(?:  - .*count: derived.*\n)+", "", text)
        assert "count: derived" not in text
    fields = {"partition.autoscaling.enabled": True, **(changes or {})}
    file.write_text(f"{text}\n{yaml.safe_dump(fields, sort_keys=False)}")
    return directory
