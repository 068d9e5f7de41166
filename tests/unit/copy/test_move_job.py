"""The move job in place: up before the stop, then it moves stage by stage, never beside a running application."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.core.cluster import GroupDescription
from kafka_rescale.core.control.journal import Captured, Journal, Phase
from kafka_rescale.core.control.progress import PartitionProgress
from kafka_rescale.core.errors import ClusterOutage, Fenced, UnsafeState
from kafka_rescale.kafka.reading.progress import Snapshot
from kafka_rescale.spark.copy import move as module
from kafka_rescale.spark.jobs.arguments import Arguments
from kafka_rescale.spark.jobs.job import Job

from tests.support.plans import in_place_plan, plan_for, stateless_plan

PLAN = in_place_plan()
STOPPED = Journal(plan=PLAN, phase=Phase.PROMOTED, captured=Captured(committed={}, changelog_ends={}))
WARMING = Journal(plan=PLAN)
SLOTS = 3
RUN, ANOTHER = "expand_orders-app/1", "expand_orders-app/2"


class Spark:
    """Counts how often workers are kept alive."""

    def __init__(self) -> None:
        self.sparkContext, self.breaths = self, 0

    def parallelize(self, items: range, count: int) -> Spark:
        assert len(items) == count == SLOTS
        self.breaths += 1
        return self

    def mapPartitions(self, _: Any) -> Spark:  # noqa: N802
        return self

    def collect(self) -> list[int]:
        return []


@dataclass
class FakeJob:
    """Keeps its results. The result of a part has its stage as key.

    :param told: the journals, one for each reading.
    """

    is_taken_over, superseded = Job.is_taken_over, Job.superseded

    told: list[Journal]
    key: str = "move"
    connection: Any = None
    results: list[tuple[str, str, int]] = field(default_factory=list)
    details: list[str] = field(default_factory=list)
    session: Spark = field(default_factory=Spark)
    signs: int = 0
    arguments: Arguments = field(default_factory=lambda: Arguments("orders-app", RUN, 1))

    def own_journal(self) -> Journal:
        return self.told[0]

    def put(self, state: str, snapshot: Snapshot | None = None, detail: str = "") -> None:
        self.results.append((self.key, state, len(snapshot.partitions) if snapshot else 0))
        self.details.append(detail)

    def sign(self) -> None:
        self.signs += 1

    def part(self, stage: int) -> Any:
        return SimpleNamespace(key=f"move/{stage}", put=self.put)

    def spark(self) -> Spark:
        return self.session

    def parallelism(self, _: Any) -> int:
        return SLOTS


class World:
    """The application's group and its topics. They have their new counts unless the test says otherwise."""

    def __init__(self) -> None:
        self.state = "Empty"
        self.counts: Iterator[int] = iter(())

    def describe_group(self, group: str) -> GroupDescription:
        return GroupDescription(group, self.state, {"Empty": (), "Stable": ("m",)}[self.state])

    def end_offsets(self, wanted: dict[str, int]) -> dict[str, dict[int, int]]:
        count = next(self.counts, None)
        return {topic: dict.fromkeys(range(count or n), 0) for topic, n in wanted.items()}


@pytest.fixture(autouse=True)
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    found = World()
    monkeypatch.setattr(module, "ClusterAdmin", lambda _: found)
    monkeypatch.setattr(module, "POLL_SECONDS", 0.0)
    monkeypatch.setattr(module, "BEAT_SECONDS", -1.0)
    return found


def run(
    told: list[Journal], monkeypatch: pytest.MonkeyPatch, job: FakeJob | None = None, holder: str = RUN
) -> tuple[FakeJob, list[tuple[str, list[str]]]]:
    job, moved = job or FakeJob(told), []
    coming = iter(told)

    def latest() -> Journal:
        return next(coming, told[-1])

    def move_one(part: Any, _: Any, __: Journal, ___: Captured, moves: Any) -> Snapshot:
        moved.append((part.key, [m.source for m in moves]))
        progress = (PartitionProgress(topic=m.source, partition=0, position=1, end=1) for m in moves)
        return Snapshot(tuple(progress), 0, 1.5)

    follower = SimpleNamespace(first=lambda: told[0], latest=latest, holder=lambda: holder)
    monkeypatch.setattr(module, "JournalFollower", lambda *_: nullcontext(follower))
    monkeypatch.setattr(module, "_move", move_one)
    fake: Any = job
    module.move(fake)
    return job, moved


def test_one_session_moves_every_stage_in_its_order(monkeypatch: pytest.MonkeyPatch) -> None:
    job, moved = run([STOPPED], monkeypatch)
    stages = [(f"move/{s.index}", [m.source for m in s.growing]) for s in PLAN.stages if s.growing]
    assert moved == stages
    assert len(stages) == 2
    assert job.results == [("move", "running", 0), ("move", "done", len(PLAN.moves))]
    assert job.details[-1] == "attempt 1"


def test_it_is_ready_before_the_stop_and_its_workers_are_up_all_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    quiescing = STOPPED.model_copy(update={"phase": Phase.QUIESCING})
    job, moved = run([WARMING, WARMING, quiescing, STOPPED], monkeypatch)
    assert [state for _, state, _ in job.results] == ["running", "ready", "ready", "running", "done"]
    assert job.session.breaths == 3
    assert len(moved) == 2


def test_within_the_pause_it_gives_signs_of_life_more_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cutover ends the pause if the job is silent. For a sign of life, the job need not use a worker."""
    monkeypatch.setattr(module, "BEAT_SECONDS", 1e9)
    monkeypatch.setattr(module, "SIGN_SECONDS", -1.0)
    quiescing, quiesced = (STOPPED.model_copy(update={"phase": p}) for p in (Phase.QUIESCING, Phase.QUIESCED))
    job, _ = run([WARMING, quiescing, quiesced, quiesced, STOPPED], monkeypatch)
    assert [state for _, state, _ in job.results] == ["running", "done"]
    assert (job.signs, job.session.breaths) == (3, 0)


def test_brokers_that_are_away_for_a_while_end_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BEAT_SECONDS", 1e9)
    monkeypatch.setattr(module, "SIGN_SECONDS", -1.0)
    failures = [ClusterOutage("a test", found="no answer", expected="one", remedy="Wait.")] * 2

    def sign(_: FakeJob) -> None:
        if failures:
            raise failures.pop()

    monkeypatch.setattr(FakeJob, "sign", sign)
    quiesced = STOPPED.model_copy(update={"phase": Phase.QUIESCED})
    job, moved = run([WARMING, quiesced, quiesced, quiesced, STOPPED], monkeypatch)
    assert (len(moved), job.results[-1][1], failures) == (2, "done", [])


def test_it_begins_when_all_topics_have_grown(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.counts = iter([4, 4])
    job, moved = run([STOPPED], monkeypatch)
    assert [state for _, state, _ in job.results] == ["running", "running", "running", "done"]
    assert len(moved) == 2


@pytest.mark.parametrize("changes", [{"phase": Phase.STARTED}, {"green_start": {"t": {0: 1}}}])
def test_what_is_done_is_not_done_again(changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    job, moved = run([STOPPED.model_copy(update=changes)], monkeypatch)
    assert (moved, job.session.breaths, job.results[-1]) == ([], 0, ("move", "done", 0))


def test_of_an_application_without_topics_of_its_own_it_waits_for_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cutover does not wait for the job either, and may already have started the application."""
    world.state = "Stable"
    job, moved = run([Journal(plan=stateless_plan())], monkeypatch)
    assert (moved, job.session.breaths, job.results[-1]) == ([], 0, ("move", "done", 0))


@pytest.mark.parametrize(
    "changes",
    [{"phase": Phase.ROLLING_BACK}, {"phase": Phase.ROLLED_BACK}, {"attempt": 2}, {"plan": plan_for("other")}],
)
def test_it_ends_when_its_attempt_is_over(changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    job, moved = run([WARMING, WARMING.model_copy(update=changes)], monkeypatch)
    assert (moved, job.results[-1]) == ([], ("move", "stopped", 0))


@pytest.mark.parametrize("journal", [WARMING, STOPPED])
def test_it_ends_without_a_word_when_another_run_has_taken_over(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = FakeJob([journal])
    with pytest.raises(Fenced, match=f"the lease held by {ANOTHER}"):
        run([journal], monkeypatch, job, holder=ANOTHER)
    assert job.results == [("move", "running", 0)]


def test_a_persons_rollback_takes_the_lease_and_is_no_run_that_has_taken_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rolling_back = WARMING.model_copy(update={"phase": Phase.ROLLING_BACK})
    job, _ = run([rolling_back], monkeypatch, FakeJob([WARMING]), holder="rollback_orders-app/1")
    assert job.results[-1] == ("move", "stopped", 0)


def test_a_next_generation_is_none_of_its_business(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnsafeState, match="expected an expansion in place"):
        run([STOPPED.model_copy(update={"plan": plan_for("orders-app")})], monkeypatch)


def test_under_a_running_application_nothing_is_moved(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.state = "Stable"
    with pytest.raises(UnsafeState, match="while its topics are being re-partitioned"):
        run([STOPPED], monkeypatch)


def test_the_readings_of_all_stages_are_one() -> None:
    def reading(topic: str, records: int, as_of_ms: int) -> Snapshot:
        progress = PartitionProgress(topic=topic, partition=0, position=3, end=3, records=records, bytes=records)
        return Snapshot((progress,), as_of_ms, 2)

    whole = Snapshot.of_all([reading("a", 5, 7), reading("b", 6, 9)])
    assert (whole.records, whole.bytes, whole.as_of_ms, whole.seconds) == (11, 11, 7, 4)
    assert Snapshot.of_all([]) == Snapshot((), 0, 0)
