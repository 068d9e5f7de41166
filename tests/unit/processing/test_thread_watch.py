"""A thread's job without progress is noticed and ended. A job with progress is left alone."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowException
from kafka_rescale.airflow.operators.stuck_job import EndWhenStuck
from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import ClusterOutage, Fenced, TimedOut
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.kafka.reading.progress import Snapshot
from kafka_rescale.operations.processing.dead_threads import Attempt
from kafka_rescale.operations.processing.thread_watch import ThreadWatch
from kafka_rescale.spark.processing.thread_progress import ThreadProgress

RUN, THREAD = "process_words/1", "words-StreamThread-1"
ATTEMPT = Attempt(RUN, f"process/1/{THREAD}", THREAD, 2)
LIMIT = 600.0
STUCK = TimedOut("it", 1, "Look.")


class World:
    """The control topic and the clock of a watch."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.answers = 0.0, True
        self.result: JobResult | None = None
        monkeypatch.setattr(ControlTopic, "__init__", lambda *_: None)
        monkeypatch.setattr(ControlTopic, "read", lambda _: self.read())
        monkeypatch.setattr(f"{ThreadWatch.__module__}.time.monotonic", lambda: self.now)
        connection: Any = None
        self.watch = ThreadWatch(connection, "words", ATTEMPT, LIMIT)

    def read(self) -> ControlState:
        if not self.answers:
            raise ClusterOutage("brokers", found="no answer", expected="one", remedy="Wait.")
        return ControlState(results={} if self.result is None else {ATTEMPT.job: self.result})

    def says(self, **fields: Any) -> None:
        known = {"job": ATTEMPT.job, "run": RUN, "attempt": ATTEMPT.number, "state": "running"}
        self.result = JobResult(**{**known, **fields})

    def passes(self, seconds: float) -> TimedOut | None:
        """Look again and again for a time, and return what was found, if anything."""
        end = self.now + seconds
        while self.now < end:
            self.now += self.watch.pause_seconds
            if (found := self.watch.look()) is not None:
                return found
        return None


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


def test_a_job_that_never_begins_is_stuck_after_the_limit(world: World) -> None:
    assert world.passes(LIMIT - 60) is None
    found = world.passes(90)
    assert str(found).startswith(
        f"Timed out after {LIMIT:g} s waiting for stream thread {THREAD} to make progress."
    )
    assert "`max.poll.interval.ms`" in str(found)


def test_a_driver_that_reports_again_and_again_without_progress_is_stuck(world: World) -> None:
    for second in range(int(LIMIT) // 30 + 2):
        world.says(progressed_ms=5, seconds=second)
        if world.passes(30) is not None:
            return
    pytest.fail("reports alone counted as progress")


def test_hours_of_backlog_are_no_harm_as_long_as_there_is_progress(world: World) -> None:
    for minute in range(24 * 60):
        world.says(progressed_ms=minute)
        assert world.passes(60) is None


def test_what_earlier_attempts_and_runs_have_said_is_no_progress(world: World) -> None:
    for number in range(int(LIMIT) // 30 + 2):
        world.says(progressed_ms=number, attempt=1 + number % 2 * 2)
        if world.passes(30) is not None:
            return
    pytest.fail("another attempt counted")


def test_the_time_of_an_outage_of_the_brokers_does_not_count(world: World) -> None:
    world.says(progressed_ms=5)
    world.answers = False
    assert world.passes(3 * LIMIT) is None
    world.answers = True
    assert world.passes(LIMIT - 60) is None
    assert world.passes(90) is not None


def test_time_in_which_the_watch_itself_stood_still_does_not_count(world: World) -> None:
    world.says(progressed_ms=5)
    assert world.passes(60) is None
    world.now += 10 * LIMIT
    assert world.watch.look() is None


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "60"])
    yield process
    process.kill()
    process.wait()


def test_a_stuck_job_is_ended_and_its_error_takes_the_place_of_the_exit_code(
    sleeper: subprocess.Popen[bytes],
) -> None:
    def submit() -> None:
        with EndWhenStuck(lambda: STUCK, 0.01, sleeper.kill):
            raise AirflowException(f"Cannot execute. Error code is: {sleeper.wait(20)}.")

    with pytest.raises(TimedOut) as raised:
        submit()
    assert raised.value is STUCK


def test_a_job_that_outlives_its_end_is_ended_again(sleeper: subprocess.Popen[bytes]) -> None:
    tries: list[int] = []

    def end() -> None:
        tries.append(1)
        if len(tries) == 1:
            raise OSError("no answer from the cluster")
        sleeper.kill()

    def submit() -> None:
        with EndWhenStuck(lambda: STUCK, 0.01, end):
            raise AirflowException(str(sleeper.wait(20)))

    with pytest.raises(TimedOut):
        submit()
    assert len(tries) >= 2


@pytest.mark.parametrize("error", [Fenced("job", found="a", expected="b", remedy="c"), KeyboardInterrupt()])
def test_what_the_job_has_said_itself_is_not_replaced(error: BaseException) -> None:
    def submit() -> None:
        with EndWhenStuck(lambda: STUCK, 0.001, lambda: None):
            time.sleep(0.05)
            raise error

    with pytest.raises(type(error)) as raised:
        submit()
    assert raised.value is error


def test_a_look_that_fails_does_not_fail_the_job() -> None:
    def look() -> None:
        raise OSError("no file left")

    with EndWhenStuck(look, 0.001, lambda: pytest.fail("ended")):
        time.sleep(0.05)


def test_signs_of_progress_are_tasks_that_begin_or_end_and_commits_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = iter(range(1, 100))
    monkeypatch.setattr("kafka_rescale.spark.processing.thread_progress.now_ms", lambda: next(clock))
    stages: list[Any] = []
    tracker = SimpleNamespace(
        getJobIdsForGroup=lambda: [0, 1],
        getJobInfo=lambda job: SimpleNamespace(stageIds=range(len(stages))) if job == 1 else None,
        getStageInfo=lambda number: stages[number],
    )
    context: Any = SimpleNamespace(statusTracker=lambda: tracker)
    committed: Any = SimpleNamespace(committed={("t", 0): (0, "")}, read=lambda: Snapshot((), 7, 1.0))
    progress = ThreadProgress(committed, context)

    def read() -> int:
        snapshot = progress.read()
        assert replace(snapshot, progressed_ms=0) == Snapshot((), 7, 1.0)
        return snapshot.progressed_ms

    assert read() == 0, "no executor has a task yet"
    stages.append(SimpleNamespace(numActiveTasks=1, numCompletedTasks=0, numFailedTasks=0))
    assert (read(), read()) == (1, 1)
    committed.committed = {("t", 0): (0, "a newer mark")}
    assert (read(), read()) == (2, 2)
    stages[0] = SimpleNamespace(numActiveTasks=1, numCompletedTasks=1, numFailedTasks=0)
    assert (read(), read()) == (3, 3)
    stages[0] = SimpleNamespace(numActiveTasks=0, numCompletedTasks=1, numFailedTasks=1)
    assert (read(), read()) == (4, 4)
    stages[0] = None
    assert read() == 4, "Spark has forgotten the stage"
