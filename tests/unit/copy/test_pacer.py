"""A driver writes the rate with each report, logs a change once, and asks the brokers only if there is a limit."""

from __future__ import annotations

from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.core.cluster import Disks, LogDir
from kafka_rescale.core.control.pace import DiskRest, Instruction, Pace, Rate
from kafka_rescale.core.expansion.pacing import Readings
from kafka_rescale.kafka.copy import disk_watch
from kafka_rescale.kafka.copy.disk_watch import DiskWatch
from kafka_rescale.kafka.reading.progress import Snapshot
from kafka_rescale.spark.copy import pacer as module
from kafka_rescale.spark.copy.pacer import Pacer

from testbed.processes import wait_until

LIMIT = 1_000_000
WELL = Readings(10**12, 3.0, 10**9, throttled_ms=0, under_replicated=(), input_lag="")
NOW = Snapshot((), 0, 0.0)
REST = DiskRest(broker=1, path="/data", usable=1, copied=90, percent=10, enough=11, since_ms=0)


class World:
    """A job whose pace, readings and disks a test sets."""

    def __init__(self, pace: Pace | None) -> None:
        self.pace, self.rate, self.seen = pace, None, WELL
        self.written: list[Any] = []
        self.asked = 0
        arguments = SimpleNamespace(run="r", attempt=1)
        job: Any = SimpleNamespace(
            key="restore/1", arguments=arguments, put=lambda _, records: self.written.append(records)
        )
        self.rest: DiskRest | None = None
        self.untold: tuple[str, ...] = ()
        self.looks: list[tuple[int, DiskRest | None]] = []
        self.is_let_through = False
        follower: Any = SimpleNamespace(
            pace=lambda: self.pace, rate=lambda: self.rate, is_let_through=lambda: self.is_let_through
        )
        harm: Any = SimpleNamespace(read=self.read)
        disks: Any = SimpleNamespace(look=self.look)
        self.pacer = Pacer(job, "p", follower, harm, 4, lambda: 2, disks)

    def look(self, percent: int, before: DiskRest | None) -> tuple[DiskRest | None, tuple[str, ...]]:
        self.looks.append((percent, before))
        return self.rest, self.untold

    def read(self, _: Snapshot) -> Readings:
        self.asked += 1
        return self.seen

    def adapted(self) -> Rate:
        found: Any = self.pacer.adapted(NOW)["rate/restore/1"]
        return Rate.model_validate(found)


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lines: list[str] = []
    monkeypatch.setattr(module, "say", lines.append)
    return lines


def test_the_first_rate_is_written_before_the_tasks_begin(said: list[str]) -> None:
    world = World(Pace(plan="p", limit=LIMIT))
    paced = world.pacer.begin()
    assert world.written == [{"rate/restore/1": paced.first}]
    assert (paced.job, paced.first.share) == ("restore/1", LIMIT / 4)
    assert said == ["restore/1: It may use its limit, 1.0 MB/s."]


def test_a_change_is_logged_once_with_its_reason(said: list[str]) -> None:
    world = World(Pace(plan="p", limit=LIMIT))
    assert world.adapted().share == LIMIT / 2, "two of four tasks run now"
    assert not world.pacer.has_news
    world.seen = Readings(2 * 10**12, 3.0, 10**9, throttled_ms=0, under_replicated=("t-0",), input_lag="")
    assert world.adapted().bytes_per_second == LIMIT // 2
    assert world.pacer.has_news
    world.adapted()
    assert not world.pacer.has_news
    reason = "1 partition has fewer replicas in sync than replicas: t-0"
    assert said == [f"restore/1: It may use 500.0 kB/s of 1.0 MB/s: {reason}."]


def test_a_word_is_obeyed_in_the_next_report(said: list[str]) -> None:
    world = World(Pace(plan="p", limit=LIMIT))
    world.pace = Pace(plan="p", limit=LIMIT, paused=Instruction(by="ada", at_ms=0))
    assert world.adapted().share == 0.0
    assert world.pacer.is_paused
    world.pace = Pace(plan="p", limit=2 * LIMIT)
    assert world.adapted().bytes_per_second == 2 * LIMIT
    assert [line.partition(": ")[2] for line in said] == [
        "It is paused by ada since Thu 01 Jan 1970 00:00 UTC.",
        "It may use its limit, 2.0 MB/s.",
    ]


@pytest.mark.parametrize("pace", [None, Pace(plan="p"), Pace(plan="another", limit=1)])
def test_without_a_limit_brokers_are_asked_nothing_and_nothing_is_logged(
    pace: Pace | None, said: list[str]
) -> None:
    world = World(pace)
    assert world.pacer.begin().first.share is None
    assert world.adapted().share is None
    assert (world.asked, said) == (0, [])


def test_a_full_disk_stops_it_without_a_limit_and_both_ends_of_the_rest_are_logged_once(said: list[str]) -> None:
    world = World(None)
    world.rest = REST
    assert world.adapted().share == 0.0
    assert (world.pacer.is_paused, world.pacer.has_news) == (True, True)
    world.rest = REST.model_copy(update={"usable": 2})
    assert world.adapted().disk == world.rest
    assert not world.pacer.has_news, "the figures alone are no news"
    world.rest = None
    assert world.adapted().share is None
    assert (world.pacer.is_paused, world.pacer.has_news) == (False, True)
    assert world.looks == [(10, None), (10, REST), (10, REST.model_copy(update={"usable": 2}))]
    assert [line.partition(". It has")[0] for line in said] == [
        "restore/1: It is at rest since Thu 01 Jan 1970 00:00 UTC: log dir '/data' of broker 1 is too full",
        "restore/1: It no longer rests for a disk.",
    ]


def test_without_a_percent_brokers_are_not_asked_and_a_rest_ends(said: list[str]) -> None:
    world = World(Pace(plan="p"))
    world.rest = REST
    world.adapted()
    world.pace = Pace(plan="p", free_disk_percent=None)
    assert world.adapted().share is None
    assert len(world.looks) == 1


def test_once_the_switch_is_let_through_only_speed_matters(said: list[str]) -> None:
    world = World(None)
    world.rest = REST
    world.adapted()
    world.is_let_through = True
    assert (world.adapted().share, world.pacer.is_paused) == (None, False)


def test_what_brokers_do_not_tell_is_logged_once_and_stops_nothing(said: list[str]) -> None:
    world = World(None)
    world.untold = ("broker 1 (the role copy has no Describe on the cluster)",)
    for _ in range(3):
        assert world.adapted().share is None
    unknown = "the free space of broker 1 (the role copy has no Describe on the cluster)"
    assert said == [f"restore/1: It has no limit (not known: {unknown})."]


class TestTheWatch:
    """It asks beside the driver's work: a broker that does not answer must not hold up the driver."""

    COPY = "shop-g2-changelog"

    @pytest.fixture
    def answers(self, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
        made: list[Any] = []

        def read(_: object, counts: dict[str, int], role: str) -> Disks:
            assert (counts, role) == ({self.COPY: 4}, "copy")
            found = made.pop(0)
            if isinstance(found, Exception):
                raise found
            disks: Disks = found() if callable(found) else found
            return disks

        monkeypatch.setattr(disk_watch, "read_disks", read)
        return made

    def disks(self, usable: int) -> Disks:
        return Disks((LogDir(1, "/data", 10**6, usable, {(self.COPY, 0): 9_000}),))

    def watch(self, seconds: float = 0.0) -> DiskWatch:
        connection: Any = None
        plan: Any = SimpleNamespace(moves=[SimpleNamespace(target=self.COPY, target_partitions=4)])
        return DiskWatch(connection, plan, seconds)

    def test_it_asks_one_question_at_a_time_and_does_not_wait_for_the_answer(self, answers: list[Any]) -> None:
        answered, watch = Event(), self.watch()

        def late() -> Disks:
            answered.wait(30)
            return self.disks(1)

        answers += [late, self.disks(1), self.disks(10**6)]
        for _ in range(3):
            assert watch.look(10, None) == (None, ())
        assert len(answers) == 2
        answered.set()
        wait_until(lambda: watch.look(10, None)[0], timeout=30, what="the answer")
        wait_until(lambda: watch.look(10, REST)[0] is None, timeout=30, what="the next answer")

    def test_it_asks_rarely(self, answers: list[Any]) -> None:
        watch = self.watch(seconds=3_600)
        answers += [self.disks(1), self.disks(10**6)]
        wait_until(lambda: watch.look(10, None)[0], timeout=30, what="the answer")
        assert len(answers) == 1

    def test_a_question_that_fails_changes_nothing_and_is_told_once(
        self, answers: list[Any], caplog: pytest.LogCaptureFixture
    ) -> None:
        answers += [self.disks(1), RuntimeError("no broker"), RuntimeError("no broker"), self.disks(10**6)]
        watch = self.watch()
        wait_until(lambda: watch.look(10, None)[0], timeout=30, what="the answer")
        wait_until(lambda: not answers or watch.look(10, REST)[0] is None, timeout=30, what="the last answer")
        assert [record.getMessage() for record in caplog.records] == [
            "the free space of the brokers is not known now, and changes nothing: no broker"
        ]
