"""If a job has failed or is silent, the wait for it ends, unless the cluster itself has a problem."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.keys import CONTROL_TOPIC
from kafka_rescale.core.errors import ClusterOutage, Outage
from kafka_rescale.operations.cutover import copies, jobs_beside
from kafka_rescale.operations.cutover.copies import await_copied, await_signs
from kafka_rescale.operations.cutover.jobs_beside import JobsBeside

from tests.support.expansion.gate_world import PLAN

AWAY = ClusterOutage("a test", found="no answer", expected="one", remedy="Wait.")
Told = tuple[int, str, str]


class Clock:
    """The clock advances only while the code sleeps, or a broker is slow."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def monotonic(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    for module in (jobs_beside, copies):
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr("kafka_rescale.kafka.client.waiting.time", clock)
    return clock


class World:
    """A job's records by their arrival, and slow brokers.

    :param told: records of the job: the time in seconds from now, the state, the detail.
    :param signs_until: until then, the job gives a sign of life every half second.
    :param slow: from when to when brokers are slow. They take ``seconds`` to answer, or don't answer.
    :param down: from when to when one of three brokers is down, and the others lead its partitions.
    :param hidden: from when to when a transaction of another application is open in the control topic. Nobody
        sees meanwhile what is written behind its first record.
    """

    def __init__(
        self,
        clock: Clock,
        *told: Told,
        signs_until: float = 0.0,
        slow: tuple[float, float] = (0.0, 0.0),
        seconds: float = 3.0,
        answers: bool = True,
        down: tuple[float, float] = (0.0, 0.0),
        hidden: tuple[float, float] = (0.0, 0.0),
    ) -> None:
        self._clock, self._began, self._told, self._down = clock, clock.seconds, told, down
        self._signs_until, self._slow, self._answers = signs_until, slow, answers
        self._seconds, self._hidden = seconds, hidden
        self.asked = self.followers = 0
        self.deaf_from: float | None = None

    @property
    def now(self) -> float:
        return self._clock.seconds - self._began

    @property
    def jobs(self) -> JobsBeside:
        control = SimpleNamespace(follow=self.follow)
        admin = SimpleNamespace(end_offsets=self.end_offsets, is_whole=self.is_whole)
        return JobsBeside(cast("Any", SimpleNamespace(control=control, admin=admin)), PLAN)

    def follow(self) -> Any:
        """Return a follower. The first one may hear nothing from a moment on, and later ones hear everything."""
        self.followers += 1
        is_first, heard = self.followers == 1, self.heard

        def hear(job: str) -> tuple[int, JobResult | None]:
            is_deaf = is_first and self.deaf_from is not None and self.now > self.deaf_from
            return heard(job, self.deaf_from if is_deaf else None)

        return SimpleNamespace(heard=hear, close=lambda: None)

    def is_whole(self) -> bool:
        return not self._down[0] <= self.now < self._down[1]

    def heard(self, job: str, until: float | None = None) -> tuple[int, JobResult | None]:
        now = self.visible(self.now if until is None else until)
        arrived = [(state, detail) for at, state, detail in self._told if at <= now]
        signs = int(2 * min(now, self._signs_until))
        if not arrived:
            return signs, None
        state, detail = arrived[-1]
        return len(arrived) + signs, JobResult(job=job, run="r", attempt=1, state=state, detail=detail)

    def visible(self, now: float) -> float:
        """Return up to when what was written until now is seen."""
        return self._hidden[0] if self._hidden[0] <= now < self._hidden[1] else now

    def end_offsets(self, _: Iterable[str], *, read_committed: bool) -> dict[str, Any]:
        self.asked += 1
        if self._slow[0] <= self.now <= self._slow[1]:
            self._clock.sleep(self._seconds)
            if not self._answers:
                raise AWAY
        end = self.visible(self.now) if read_committed else self.now
        return {CONTROL_TOPIC: {0: int(10 * end)}}


def waited(world: World) -> float:
    """Wait for the delta of the first attempt, and return how long it took. Its error is raised."""
    began = world.now
    await_copied(world.jobs, Journal(plan=PLAN, phase=Phase.QUIESCED), 300)
    return world.now - began


def test_it_ends_when_the_delta_is_copied(clock: Clock) -> None:
    world = World(clock, (0, "ready", ""), (9, "done", "attempt 1"), signs_until=9)
    assert waited(world) == pytest.approx(9, abs=0.2)
    assert world.asked == 0


@pytest.mark.parametrize("state", ["failed", "stopped"])
def test_a_failure_ends_it_at_once_with_its_reason(clock: Clock, state: str) -> None:
    world = World(clock, (0, "ready", ""), (7, state, "Outage: no space left"), signs_until=300)
    with pytest.raises(
        Outage, match=f"catch_up job of shop: found {state}: Outage: no space left; .* the log of the"
    ):
        waited(world)
    assert world.now == pytest.approx(7, abs=0.2)


def test_so_does_its_silence_while_the_brokers_answer(clock: Clock) -> None:
    world = World(clock, (0, "ready", ""), signs_until=10)
    with pytest.raises(Outage, match=r"found no sign of life for 4 s \(its last was 'ready'\)"):
        waited(world)
    assert world.now == pytest.approx(15, abs=0.6)


def test_a_busy_machine_does_not_make_its_silence_mute(clock: Clock) -> None:
    world = World(clock, (0, "ready", ""), signs_until=10, slow=(0.0, 300.0), seconds=1.5)
    with pytest.raises(Outage, match="found no sign of life for 4 s"):
        waited(world)
    assert world.now == pytest.approx(17, abs=1.5)


def test_a_sign_that_arrives_while_brokers_are_asked_counts(clock: Clock) -> None:
    told = (0, "ready", ""), (5, "running", ""), (8, "done", "attempt 1")
    assert waited(World(clock, *told, slow=(4.0, 5.0), seconds=1.5)) == pytest.approx(8, abs=0.2)


def test_one_that_was_never_heard_of(clock: Clock) -> None:
    with pytest.raises(Outage, match=r"found no sign of life for 4 s \(there was none before\)"):
        waited(World(clock))


@pytest.mark.parametrize("answers", [True, False], ids=["slow", "away"])
def test_brokers_that_answer_late_make_its_silence_mute_for_a_while(clock: Clock, answers: bool) -> None:
    world = World(
        clock, (0, "ready", ""), (40, "done", "attempt 1"), signs_until=1, slow=(2.0, 20.0), answers=answers
    )
    assert waited(world) == pytest.approx(40, abs=0.2)
    silent = World(clock, (0, "ready", ""), signs_until=1, slow=(2.0, 20.0), answers=answers)
    with pytest.raises(Outage, match="no sign of life"):
        waited(silent)
    assert 50 < silent.now < 60


def test_one_broker_that_is_down_makes_its_silence_mute_although_all_leaders_answer(clock: Clock) -> None:
    """The coordinator of the job's transactions may have been on that broker, and the job may wait for it."""
    world = World(clock, (0, "ready", ""), (20, "done", "attempt 1"), signs_until=1, down=(0, 15))
    assert waited(world) == pytest.approx(20, abs=0.2)
    silent = World(clock, (0, "ready", ""), signs_until=1, down=(0, 15))
    with pytest.raises(Outage, match="no sign of life"):
        waited(silent)
    assert 15 + jobs_beside.AFTER_OUTAGE_SECONDS - 2 < silent.now < 15 + jobs_beside.AFTER_OUTAGE_SECONDS + 6


def test_an_outage_that_another_step_has_seen_does_so_too(clock: Clock) -> None:
    world = World(clock, (0, "ready", ""), (20, "done", "attempt 1"), signs_until=1)
    jobs = world.jobs
    jobs.note_outage()
    await_copied(jobs, Journal(plan=PLAN, phase=Phase.QUIESCED), 300)
    assert world.now == pytest.approx(20, abs=0.2)


def test_after_an_outage_it_doubts_its_own_reading_first(clock: Clock) -> None:
    done = (60.0, "done", "attempt 1")
    world = World(clock, (0.0, "ready", ""), done, signs_until=100, slow=(5, 40))
    world.deaf_from = 20.0
    assert waited(world) < 80
    assert world.followers == 2
    # The second reading finds a dead job.
    dead = World(clock, (0.0, "ready", ""), signs_until=5, slow=(5, 40))
    with pytest.raises(Outage, match="no sign of life for 4 s"):
        waited(dead)
    assert dead.followers == 3, "after the outage, and before it is given up"
    assert dead.now < 90


def test_its_own_client_may_stand_still_without_an_outage(clock: Clock) -> None:
    world = World(clock, (0.0, "ready", ""), (30, "done", "attempt 1"), signs_until=100)
    world.deaf_from = 10.0
    assert waited(world) == pytest.approx(30, abs=0.2)
    assert world.followers == 2


def test_an_open_transaction_of_another_application_may_hide_its_signs(clock: Clock) -> None:
    """All applications share one partition. The transaction of a killed writer ends up to 20 s later."""
    world = World(clock, (0, "ready", ""), (14, "done", "attempt 1"), signs_until=100, hidden=(2, 20))
    assert waited(world) == pytest.approx(20, abs=0.2)
    dead = World(clock, (0, "ready", ""), signs_until=5, hidden=(2, 20))
    with pytest.raises(Outage, match="no sign of life for 4 s"):
        waited(dead)
    assert 20 + jobs_beside.SILENT_SECONDS < dead.now < 32


def test_brokers_that_do_not_tell_whether_its_signs_are_hidden_make_its_silence_mute(clock: Clock) -> None:
    """They go away while a new client listens for it."""
    world = World(clock, (0, "ready", ""), (30, "done", "attempt 1"), signs_until=1, slow=(5.5, 7), answers=False)
    assert waited(world) == pytest.approx(30, abs=0.2)
    assert world.followers > 1


def test_a_process_that_stood_still_itself_blames_nobody(clock: Clock) -> None:
    world = World(clock, (0, "ready", ""), (61, "done", "attempt 1"), signs_until=1)
    jobs = world.jobs
    jobs.assert_at_work("catch_up", "")
    clock.sleep(60)
    await_copied(jobs, Journal(plan=PLAN, phase=Phase.QUIESCED), 300)
    assert world.now == pytest.approx(61, abs=0.2)


def test_what_it_depends_on_behind_the_promotion_has_to_be_heard_of_before(clock: Clock) -> None:
    world = World(clock, (0, "ready", ""), signs_until=300)
    await_signs(world.jobs, {"move": 1, "bridge": 1}, 300)
    assert world.now < 1
    with pytest.raises(Outage, match="move job of shop: found no sign of life"):
        await_signs(World(clock, (0, "ready", "")).jobs, {"move": 1}, 300)
    away = World(clock, (0, "ready", ""), slow=(0.0, 1000.0), answers=False)
    with pytest.raises(Outage, match="Timed out after 60 s waiting for another sign of life of the job move"):
        await_signs(away.jobs, {"move": 1}, 60)


class TestReady:
    """Before the pause, waiting costs nothing, and Airflow starts a failed job again."""

    @staticmethod
    def wait(world: World) -> None:
        copies.await_ready(world.jobs, "catch_up", "say so", "Look at its log.")

    def test_one_that_is_begun_again_is_waited_for(self, clock: Clock) -> None:
        world = World(clock, (1, "failed", "Outage: away"), (50, "running", ""), (60, "ready", ""))
        self.wait(world)
        assert world.now == pytest.approx(60, abs=0.2)

    def test_one_that_is_not_ends_it(self, clock: Clock) -> None:
        world = World(clock, (1, "failed", "Outage: away"))
        with pytest.raises(Outage, match="catch_up job: found failed: Outage: away; expected the job to say so"):
            self.wait(world)
        assert world.now == pytest.approx(1 + copies.AGAIN_SECONDS, abs=0.2)

    def test_what_nobody_tries_again_ends_it_at_once(self, clock: Clock) -> None:
        world = World(clock, (1, "failed", "UnsafeState: records behind the captured end"))
        with pytest.raises(Outage, match="records behind the captured end"):
            self.wait(world)
        assert world.now == pytest.approx(1, abs=0.2)

    def test_what_was_left_before_says_nothing(self, clock: Clock) -> None:
        world = World(clock, (0, "ready", ""), (100, "running", ""), (120, "ready", ""))
        self.wait(world)
        assert world.now == pytest.approx(120, abs=0.2)
