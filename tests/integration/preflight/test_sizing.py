"""``plan --recommend`` on a real broker: what it measures and recommends, and the plan for that."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.cli.exit_codes import PASSED
from kafka_rescale.cli.main import main
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.operations.preflight import sizing

from tests.support.small_application import KEYS, placed, write
from tests.support.small_cluster import make, picture, produce

pytestmark = pytest.mark.integration
ARRIVED = 20
"""So many records of every key arrive during a measurement."""


@dataclass
class Shop:
    """The small application, and which share of the arriving records it processes."""

    client: Mapping[str, str]
    name: str
    directory: Path
    processed: float = 1.0

    def __post_init__(self) -> None:
        make(self.client, self.name)
        self.admin = ClusterAdmin(KafkaConnection(dict(self.client)))
        self.topics = [f"{self.name}-customers", f"{self.name}-by-customer-repartition"]
        self.admin.commit(self.name, self.admin.end_offsets(self.topics))

    def meanwhile(self, _: float) -> None:
        """Let records arrive and be processed between the two readings."""
        before = self.admin.end_offsets(self.topics)
        produce(self.client, {topic: placed(KEYS, 4) * ARRIVED for topic in self.topics})
        after = self.admin.end_offsets(self.topics)
        done = {
            topic: {p: end + int((after[topic][p] - end) * self.processed) for p, end in of.items()}
            for topic, of in before.items()
        }
        self.admin.commit(self.name, done)

    def plan(self, *options: str) -> list[str]:
        """Return the command line."""
        config = self.directory / "client.properties"
        config.write_text("".join(f"{key} = {value}\n" for key, value in self.client.items()))
        file = write(self.directory, self.name)
        return ["plan", str(file), "--recommend", "--threads", "1", "--config", str(config), *options]


@pytest.fixture
def shop(client: Mapping[str, str], unique: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """The application. Instead of a wait, a measurement calls ``meanwhile``."""
    made = Shop(client, unique, tmp_path)
    measure_by(made.meanwhile, monkeypatch)
    return made


def measure_by(wait: Callable[[float], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a measurement, and nothing else, wait in another way. Clients and other threads sleep, too."""
    monkeypatch.setattr(sizing, "time", SimpleNamespace(sleep=wait, monotonic=time.monotonic))


def test_tasks_that_can_not_keep_up_get_a_multiple_and_the_plan_for_it(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.processed = 0.5
    assert main(shop.plan("--json")) == PASSED
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    advice = {each["topic"]: each for each in found["recommendation"]}
    assert set(advice) == set(shop.topics)
    for each in advice.values():
        assert each["capacity"] > 0
        assert each["partitions"] > 4
        assert each["partitions"] % 4 == 0
        assert len(each["heaviest"]) == 5
    assert found["plan"]["partitions"] == max(each["partitions"] for each in advice.values())


def test_tasks_that_keep_up_stay_as_they_are(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(shop.plan()) == PASSED
    out = capsys.readouterr().out
    assert f"{shop.name}-customers: stay at 4 partitions; no task has come to its limit" in out
    assert f"{shop.name} is already at 4 partitions" in out
    assert f"Heaviest keys of {shop.name}-customers" in out


def test_an_application_that_stands_still_is_not_measured(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    shop.processed = 0.0
    assert main(shop.plan()) != PASSED
    told = capsys.readouterr()
    assert "none committed as processed within" in told.out + told.err


def test_a_recommendation_leaves_no_trace(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    measure_by(lambda _: None, monkeypatch)
    before = picture(shop.client, shop.name)
    assert main(shop.plan()) == PASSED
    assert picture(shop.client, shop.name) == before
