"""Workers that only wait announce themselves once an hour: brokers forget positions and transactional ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.errors import Fenced
from kafka_rescale.kafka.client.bounded_call import StuckCall
from kafka_rescale.kafka.copy import loop as copy_loop
from kafka_rescale.kafka.copy.loop import ANNOUNCED_SECONDS, TRIED_SECONDS, CopyWorker
from kafka_rescale.kafka.copy.marks import EMPTIED, Mark, Position
from kafka_rescale.kafka.copy.settings import LIVE, Rules
from kafka_rescale.kafka.copy.units import units_of
from kafka_rescale.spark.copy import bridge_tasks, tasks
from kafka_rescale.spark.copy.bridge_tasks import CarryOn
from kafka_rescale.spark.copy.journal_task import JournalTask
from kafka_rescale.spark.copy.tasks import STOPPED, Follow

from tests.unit.plan.test_repartitioned import plan

PLAN = plan(2, 4)
SOURCE = ("orders", 0)
WAITING = Position(0, Mark(state=EMPTIED, attempt=3))


class Brokers:
    """What is committed, and the clients that a worker opens. Each commit may fail first."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds = 0.0
        self.position = WAITING
        self.commits, self.opened = 0, 0
        self.failures: list[Exception] = []
        clock = SimpleNamespace(monotonic=lambda: self.seconds, sleep=lambda _: None)
        monkeypatch.setattr(copy_loop, "time", clock)
        monkeypatch.setattr(copy_loop, "ClusterAdmin", lambda _: None)
        monkeypatch.setattr(copy_loop, "rules_of", lambda *_: Rules({}, {}))
        monkeypatch.setattr(copy_loop, "CopyClients", self.clients)
        monkeypatch.setattr(copy_loop, "read_positions", lambda *_: {SOURCE: self.position})

    def clients(self, *_: object) -> Any:
        self.opened += 1
        writer = SimpleNamespace(position=0, mark=Mark(), has_begun=True, is_dirty=False)
        bucket = SimpleNamespace(writers={SOURCE: writer}, commit_at=self.commit)
        quiet = dict.fromkeys(("await_answer", "assert_newest", "go_on_from"), lambda _: None)
        return SimpleNamespace(
            **quiet,
            abandon=lambda: None,
            writers=bucket.writers,
            buckets=[bucket],
            pool=SimpleNamespace(map=map),
            commits=SimpleNamespace(has_rewound=False, commit=lambda _: True),
            consumer=SimpleNamespace(assign=lambda _: None),
        )

    def commit(self, _: object, positions: Mapping[object, Position]) -> None:
        if self.failures:
            raise self.failures.pop(0)
        self.commits += 1
        (self.position,) = positions.values()


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Brokers:
    return Brokers(monkeypatch)


@pytest.fixture
def worker(brokers: Brokers) -> CopyWorker:
    nobody: Any = SimpleNamespace(copy_group="group", green="green")
    worker = CopyWorker(nobody, nobody, units_of(PLAN.bridges)[:1], LIVE)
    worker.announce("session")
    return worker


def wait(brokers: Brokers, worker: CopyWorker, seconds: float) -> int:
    """Wait for so long, and return how often the worker has announced itself since its first time."""
    until = brokers.seconds + seconds
    while brokers.seconds < until:
        brokers.seconds += 10
        worker.announce_again()
    return brokers.commits - 1


def stuck() -> StuckCall:
    return StuckCall("copy of orders-0", "commit_transaction", 12.0)


def test_positions_are_renewed_once_an_hour_and_nothing_else_of_them_changes(
    brokers: Brokers, worker: CopyWorker
) -> None:
    assert wait(brokers, worker, ANNOUNCED_SECONDS - 10) == 0
    assert wait(brokers, worker, 10) == 1
    assert wait(brokers, worker, 23 * ANNOUNCED_SECONDS) == 24
    assert brokers.position == Position(0, Mark(state=EMPTIED, attempt=3, session="session"))
    assert brokers.opened == 1


def test_what_fails_is_tried_again_with_new_clients_and_nothing_was_aborted(
    brokers: Brokers, worker: CopyWorker
) -> None:
    brokers.failures = [stuck() for _ in range(5)]
    assert wait(brokers, worker, ANNOUNCED_SECONDS) == 0
    assert wait(brokers, worker, TRIED_SECONDS) == 0
    assert wait(brokers, worker, TRIED_SECONDS) == 1
    assert brokers.opened == 4
    assert not worker.commits.has_rewound


@pytest.mark.parametrize("session", ["", "session"], ids=["restore", "catch_up"])
def test_a_worker_that_rests_renews_its_positions_however_long_a_person_pauses_it(
    brokers: Brokers, session: str
) -> None:
    brokers.position = Position(7, Mark(as_of_ms=5, records=7, session=session))
    nobody: Any = SimpleNamespace(copy_group="group", green="green")
    paused = CopyWorker(nobody, nobody, units_of(PLAN.bridges)[:1], LIVE, share=lambda: 0.0)
    paused._session = session
    for _ in range(24):
        brokers.seconds += ANNOUNCED_SECONDS
        assert paused.step() == 0
        assert paused.step() == 0
    assert brokers.commits == 24
    assert brokers.position == Position(7, Mark(as_of_ms=5, records=7, session=session))


def test_a_newer_attempt_ends_it(brokers: Brokers, worker: CopyWorker) -> None:
    brokers.failures = [Fenced("copy", found="another", expected="to be the newest", remedy="Nothing.")]
    with pytest.raises(Fenced):
        wait(brokers, worker, ANNOUNCED_SECONDS)


class Waiting:
    """A worker that only counts in which phases it was told to announce itself again."""

    def __init__(self, phases: list[Phase], told: list[Phase]) -> None:
        self.phases, self.told = phases, told

    def announce_again(self) -> None:
        self.told.append(self.phases[0])

    begin = announce = step = close = lambda *_, **__: None


class Follower:
    """Follows a journal that goes through some phases."""

    def __init__(self, phases: list[Phase]) -> None:
        self.phases = phases

    def first(self) -> Journal:
        return Journal(plan=PLAN, phase=self.phases[0])

    def latest(self) -> Journal:
        del self.phases[0]
        return self.first()


def phases() -> list[Phase]:
    return [Phase.WARMING] * 4 + [Phase.QUIESCING, Phase.QUIESCING, Phase.ROLLED_BACK]


@pytest.mark.parametrize("kind", [Follow, CarryOn])
def test_records_in_flight_and_bridges_are_announced_again_but_not_within_the_pause(
    kind: type[JournalTask], monkeypatch: pytest.MonkeyPatch
) -> None:
    left, told = phases(), list[Phase]()
    made: Sequence[list[Phase]] = [[], told] if kind is Follow else [told]
    workers = iter(Waiting(left, of) for of in made)
    for module in (tasks, bridge_tasks):
        monkeypatch.setattr(module, "CopyWorker", lambda *_, **__: next(workers))
    monkeypatch.setattr(bridge_tasks, "time", SimpleNamespace(sleep=lambda _: None))
    monkeypatch.setattr(Follow, "_prepare", lambda *_: None)
    nothing: Any = None
    follower: Any = Follower(left)
    units = [] if kind is Follow else units_of(PLAN.bridges)
    assert kind(nothing, PLAN, 1, "session").work(units, follower) == STOPPED
    assert set(told) == {Phase.WARMING}
    assert len(told) >= 3
    if kind is Follow:
        assert made[0] == [], "what copies all the time renews its positions by that"
