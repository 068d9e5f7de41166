"""Workers that only wait announce themselves once an hour: brokers forget positions and transactional ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.errors import ClusterOutage, Fenced
from kafka_rescale.kafka.client.bounded_call import StuckCall
from kafka_rescale.kafka.copy import loop as copy_loop
from kafka_rescale.kafka.copy.loop import ANNOUNCED_SECONDS, TRIED_SECONDS, CopyWorker
from kafka_rescale.kafka.copy.marks import EMPTIED, SEEDING, Mark, Position
from kafka_rescale.kafka.copy.seeding import Flow
from kafka_rescale.kafka.copy.settings import BULK, LIVE, Rules
from kafka_rescale.kafka.copy.units import units_of
from kafka_rescale.kafka.reading.source_rules import SourceRules
from kafka_rescale.spark.copy import bridge_tasks, tasks
from kafka_rescale.spark.copy.bridge_tasks import CarryOn
from kafka_rescale.spark.copy.journal_task import JournalTask
from kafka_rescale.spark.copy.tasks import STOPPED, Follow

from tests.unit.plan.test_repartitioned import plan

PLAN = plan(2, 4)
SOURCE = ("orders", 0)
WAITING = Position(0, Mark(state=EMPTIED, attempt=3))


class Brokers:
    """What is committed, and the clients that a worker opens. Each commit may fail first, and each opening."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds = 0.0
        self.position = WAITING
        self.commits, self.opened = 0, 0
        self.failures, self.unopened, self.unread = list[Exception](), list[Exception](), list[Exception]()
        self.newer: Exception | None = None
        clock = SimpleNamespace(monotonic=lambda: self.seconds, sleep=lambda _: None)
        monkeypatch.setattr(copy_loop, "time", clock)
        monkeypatch.setattr(copy_loop, "ClusterAdmin", lambda _: None)
        monkeypatch.setattr(copy_loop, "rules_of", lambda *_: Rules({}, {}))
        monkeypatch.setattr(copy_loop, "CopyClients", self.clients)
        monkeypatch.setattr(copy_loop, "read_positions", self.read)

    def clients(self, *_: object) -> Any:
        self.opened += 1
        if self.unopened:
            raise self.unopened.pop(0)
        writer = SimpleNamespace(position=0, mark=Mark(), has_begun=True, is_dirty=False, unrecorded_ms=0)
        writer.unit, writer.begin = units_of(PLAN.bridges)[0], lambda *_, **__: None
        bucket = SimpleNamespace(writers={SOURCE: writer}, commit_at=self.commit)
        consumer = SimpleNamespace(assign=lambda _: None, consume=lambda *_: [], is_closed=False)
        return SimpleNamespace(
            await_answer=lambda _: None,
            assert_newest=self.assert_newest,
            go_on_from=self.go_on_from,
            abandon=lambda: setattr(consumer, "is_closed", True),
            writers=bucket.writers,
            buckets=[bucket],
            pool=SimpleNamespace(map=map),
            commits=SimpleNamespace(has_rewound=False, commit=lambda _: True, explain=None),
            consumer=consumer,
        )

    def assert_newest(self, _: str) -> None:
        if self.newer is not None:
            raise self.newer

    def go_on_from(self, _: object) -> None:
        if self.unread:
            raise self.unread.pop(0)

    def read(self, consumer: Any, *_: object) -> dict[object, Position]:
        if consumer.is_closed:
            raise RuntimeError("Consumer closed")
        return {SOURCE: self.position}

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


def away() -> ClusterOutage:
    return ClusterOutage("copy of orders-0", found="no coordinator", expected="an answer", remedy="Run again.")


def test_if_no_new_clients_can_be_opened_this_is_tried_again_too(brokers: Brokers, worker: CopyWorker) -> None:
    brokers.failures, brokers.unopened = [stuck()], [away(), away()]
    assert wait(brokers, worker, ANNOUNCED_SECONDS + TRIED_SECONDS) == 0
    assert wait(brokers, worker, TRIED_SECONDS) == 1
    assert brokers.opened == 4
    assert not worker.commits.has_rewound
    assert wait(brokers, worker, ANNOUNCED_SECONDS) == 2
    assert brokers.opened == 4


def test_new_clients_that_could_not_read_the_positions_are_not_taken(brokers: Brokers, worker: CopyWorker) -> None:
    first = worker.writers
    brokers.failures, brokers.unread = [stuck()], [away()]
    assert wait(brokers, worker, ANNOUNCED_SECONDS) == 0
    assert worker.writers is first
    assert wait(brokers, worker, TRIED_SECONDS) == 1
    assert brokers.opened == 3


def test_what_rests_goes_on_with_new_clients_although_they_could_not_be_opened_at_first(
    brokers: Brokers,
) -> None:
    share: list[float | None] = [0.0]
    nobody: Any = SimpleNamespace(copy_group="group", green="green")
    paused = CopyWorker(nobody, nobody, units_of(PLAN.bridges)[:1], LIVE, share=lambda: share[0])
    brokers.failures, brokers.unopened = [stuck()], [away()]
    brokers.seconds += ANNOUNCED_SECONDS
    for _ in range(3):
        assert paused.step() == 0
    assert brokers.opened == 2, "not before a minute has passed"
    brokers.seconds += TRIED_SECONDS
    assert paused.step() == 0
    assert (brokers.opened, brokers.commits) == (3, 1)


def test_the_pause_may_begin_within_that_minute(brokers: Brokers, worker: CopyWorker) -> None:
    brokers.failures, brokers.unopened = [stuck()], [away()]
    wait(brokers, worker, ANNOUNCED_SECONDS)
    worker.run_to({}, 0)
    brokers.failures, brokers.unopened = [stuck()], [away()]
    wait(brokers, worker, ANNOUNCED_SECONDS)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(copy_loop, "log_range", lambda consumer, _: brokers.read(consumer))
        patched.setattr(copy_loop, "start_of", lambda *_: WAITING)
        worker._rules = {"orders": SourceRules(None, True)}
        worker.begin({SOURCE: 0})
    assert brokers.opened == 5


def test_a_copy_that_a_person_resumes_meanwhile_opens_them_at_once(brokers: Brokers) -> None:
    share: list[float | None] = [0.0]
    nobody: Any = SimpleNamespace(copy_group="group", green="green")
    resumed = CopyWorker(nobody, nobody, units_of(PLAN.bridges)[:1], LIVE, share=lambda: share[0])
    brokers.failures, brokers.unopened = [stuck()], [away(), away()]
    brokers.seconds += ANNOUNCED_SECONDS
    resumed.step()
    share[0] = None
    with pytest.raises(ClusterOutage):
        resumed.step()
    brokers.newer = Fenced("copy", found="another", expected="to be the newest", remedy="Nothing.")
    with pytest.raises(Fenced):
        resumed.step()
    assert brokers.opened == 3, "a newer worker is not fenced"


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


class TestSeeding:
    """A worker that rests for hours between the rows of a snapshot."""

    POSITION: ClassVar = Position(7, Mark(as_of_ms=5, state=SEEDING, records=3))

    def begin(self, brokers: Brokers, rests: Sequence[float], *, is_known: bool = True) -> None:
        nobody: Any = SimpleNamespace(copy_group="group", green="green")
        worker = CopyWorker(nobody, nobody, units_of(PLAN.bridges)[:1], BULK)
        brokers.position = self.POSITION

        def seed_with(*given: object) -> int:
            (flow,) = (each for each in given if isinstance(each, Flow))
            for rest in rests:
                brokers.seconds += rest
                flow.renew()
            return 5

        seeding: Any = SimpleNamespace(fits=lambda *_: True)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(copy_loop, "seed_with", seed_with)
            patched.setattr(copy_loop, "log_range", lambda *_: None)
            if not is_known:
                patched.setattr(copy_loop, "read_positions", lambda *_: {})
                for writer in worker.writers.values():
                    writer.has_begun = False
            assert worker.begin(seeding=seeding) == {SOURCE: 5}

    def test_its_mark_is_renewed_once_an_hour(self, brokers: Brokers) -> None:
        self.begin(brokers, [ANNOUNCED_SECONDS / 2] * 48)
        assert (brokers.commits, brokers.position, brokers.opened) == (24, self.POSITION, 1)

    def test_an_outage_is_survived(self, brokers: Brokers) -> None:
        brokers.failures = [away()]
        self.begin(brokers, [ANNOUNCED_SECONDS, 1.0, TRIED_SECONDS])
        assert (brokers.commits, brokers.opened) == (1, 1)

    def test_its_clients_are_not_replaced(self, brokers: Brokers) -> None:
        brokers.failures = [stuck()]
        with pytest.raises(StuckCall):
            self.begin(brokers, [ANNOUNCED_SECONDS])
        assert brokers.opened == 1

    def test_a_copy_that_has_not_begun_gets_no_position(self, brokers: Brokers) -> None:
        self.begin(brokers, [ANNOUNCED_SECONDS], is_known=False)
        assert brokers.commits == 0


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
