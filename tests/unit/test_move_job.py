"""The job that moves what moves in place: all stages in their order, and only while the application is stopped."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.core.cluster import GroupDescription
from kafka_rescale.core.control_records import PartitionProgress
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.journal import Captured, Journal, Phase
from kafka_rescale.kafka.copy_progress import Snapshot
from kafka_rescale.spark import move as module

from tests.support.plans import in_place_plan, plan_for

PLAN = in_place_plan()
STOPPED = Journal(plan=PLAN, phase=Phase.PROMOTED, captured=Captured(committed={}, changelog_ends={}))


@dataclass
class FakeJob:
    """Keeps its results; of a part, the stage is its key."""

    given: Journal
    key: str = "move"
    connection: Any = None
    results: list[tuple[str, str, int]] = field(default_factory=list)
    sessions: int = 0

    def journal(self) -> Journal:
        return self.given

    def put(self, state: str, snapshot: Snapshot | None = None) -> None:
        self.results.append((self.key, state, len(snapshot.partitions) if snapshot else 0))

    def part(self, stage: int) -> Any:
        return SimpleNamespace(key=f"move/{stage}", put=self.put)

    def spark(self) -> Any:
        self.sessions += 1
        return SimpleNamespace(sparkContext=None)


@pytest.fixture(autouse=True)
def group(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The state of the application's group."""
    found = {"state": "Empty"}
    members = {"Empty": (), "Stable": ("m",)}
    admin = SimpleNamespace(describe_group=lambda g: GroupDescription(g, found["state"], members[found["state"]]))
    monkeypatch.setattr(module, "ClusterAdmin", lambda _: admin)
    return found


def run(given: Journal, monkeypatch: pytest.MonkeyPatch) -> tuple[FakeJob, list[tuple[str, list[str]]]]:
    job, moved = FakeJob(given), []

    def move_one(part: Any, _: Any, __: Journal, ___: Captured, moves: Any) -> Snapshot:
        moved.append((part.key, [m.source for m in moves]))
        progress = (PartitionProgress(topic=m.source, partition=0, position=1, end=1) for m in moves)
        return Snapshot(tuple(progress), 0, 1.5)

    monkeypatch.setattr(module, "_move", move_one)
    fake: Any = job
    module.move(fake)
    return job, moved


def test_one_session_moves_every_stage_in_its_order(monkeypatch: pytest.MonkeyPatch) -> None:
    job, moved = run(STOPPED, monkeypatch)
    stages = [(f"move/{s.index}", [m.source for m in s.growing]) for s in PLAN.stages if s.growing]
    assert moved == stages
    assert len(stages) == 2
    assert job.sessions == 1
    assert job.results == [("move", "running", 0), ("move", "done", len(PLAN.moves))]


@pytest.mark.parametrize("changes", [{"phase": Phase.STARTED}, {"green_ends": {"t": {0: 1}}}])
def test_what_is_done_is_not_done_again(changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    job, moved = run(STOPPED.model_copy(update=changes), monkeypatch)
    assert (moved, job.sessions, job.results[-1]) == ([], 0, ("move", "done", 0))


@pytest.mark.parametrize(
    "changes", [{"phase": Phase.WARMING}, {"captured": None}, {"plan": plan_for("orders-app")}]
)
def test_without_a_stop_for_it_nothing_is_moved(changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnsafeState, match="an application that has been stopped for it"):
        run(STOPPED.model_copy(update=changes), monkeypatch)


def test_under_a_running_application_nothing_is_moved(
    group: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    group["state"] = "Stable"
    with pytest.raises(UnsafeState, match="while its topics are being re-partitioned"):
        run(STOPPED, monkeypatch)


def test_the_readings_of_all_stages_are_one() -> None:
    def reading(topic: str, records: int, as_of_ms: int) -> Snapshot:
        progress = PartitionProgress(topic=topic, partition=0, position=3, end=3, records=records, bytes=records)
        return Snapshot((progress,), as_of_ms, 2)

    whole = Snapshot.of_all([reading("a", 5, 7), reading("b", 6, 9)])
    assert (whole.records, whole.bytes, whole.as_of_ms, whole.seconds) == (11, 11, 7, 4)
    assert Snapshot.of_all([]) == Snapshot((), 0, 0)
