"""``plan --recommend`` plans for what it recommends, and for no topic that keeps its count."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kafka_rescale.cli import app as commands
from kafka_rescale.cli.exit_codes import PASSED
from kafka_rescale.cli.main import main
from kafka_rescale.core.partitioning.partitioners import partitioner_named
from kafka_rescale.core.plan.sizing import Advice, TaskLoad, recommend
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.operations.preflight.preflight import Preflight

from tests.support.application_files import write_application

KEYS = {f"customer-{i}".encode(): 1.0 for i in range(4_000)}


def advice(topic: str, count: int, processed: float) -> Advice:
    loads = [TaskLoad(p, arrived=1000, processed=processed, lag=5000) for p in range(count)]
    return recommend(topic, loads, KEYS, partitioner_named("murmur2"), threads=1)


@pytest.mark.parametrize(("processed", "told"), [(250, "from 16 to"), (1000, "stay at 16")])
def test_the_plan_is_for_the_topics_that_follow_its_target(
    processed: float,
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    planned: list[int] = []

    def preflight(*_: Any, target: int, **__: Any) -> Preflight:
        planned.append(target)
        return Preflight(None, True, ())

    found = (replace(advice("fixed", 16, processed), follows=False), advice("derived", 4, processed=1000))
    monkeypatch.setattr(commands, "advise", lambda *_, **__: found)
    monkeypatch.setattr(commands, "preflight", preflight)
    monkeypatch.setattr(KafkaConnection, "check", lambda _: None)
    config = tmp_path / "c.properties"
    config.write_text("bootstrap.servers = h:9\n")
    assert main(["plan", str(write_application(tmp_path)), "--recommend", "--config", str(config)]) == PASSED
    assert planned == [4]
    printed = capsys.readouterr().out
    assert "derived: stay at 4 partitions" in printed
    assert f"fixed: {told}" in printed
    assert ("No target changes its count, as declared." in printed) == told.startswith("from")
