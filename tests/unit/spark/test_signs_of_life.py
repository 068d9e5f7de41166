"""Within the pause, a driver gives signs of life, often and without a request to the brokers before them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from typing import Any

import pytest
from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import ClusterOutage
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.reading.progress import Snapshot
from kafka_rescale.spark.jobs import job as module
from kafka_rescale.spark.jobs.arguments import Arguments
from kafka_rescale.spark.jobs.job import Job

AWAY = ClusterOutage("a test", found="no answer", expected="one", remedy="Wait.")


class Control:
    """Keeps results and signs. The action ends with the last of them that a test wants."""

    def __init__(self, wanted: int, *, outages: int = 0) -> None:
        self.put: list[JobResult] = []
        self.signs = 0
        self.wanted, self.outages = wanted, outages
        self.over = Event()

    def read(self) -> ControlState:
        return ControlState()

    def put_result(self, result: JobResult, _: Any) -> None:
        self.put.append(result)
        self._count()

    def put_sign(self, result: JobResult) -> None:
        if self.outages:
            self.outages -= 1
            raise AWAY
        assert (result.job, result.run, result.attempt) == ("catch_up", "r", 1)
        self.signs += 1
        self._count()

    def _count(self) -> None:
        if len(self.put) + self.signs == self.wanted:
            self.over.set()


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SIGN_SECONDS", 0.01)


def job_with(control: Control) -> Job:
    nobody = KafkaConnection({"bootstrap.servers": "localhost:1"})
    job = Job("catch_up", Arguments(application="shop", run="r", attempt=1), nobody)
    stand_in: Any = control
    job.control = stand_in
    return job


def asks_nothing() -> None:
    pytest.fail("within the pause nothing is asked that could take long")


def fails() -> None:
    raise AWAY


@contextmanager
def work() -> Iterator[Event]:
    """An action that would go on for minutes."""
    over = Event()
    yield over
    over.set()


def test_a_report_that_fails_does_not_keep_a_job_from_ending() -> None:
    """A person who rolls back, perhaps to spare the brokers, has taken the lease meanwhile."""
    with work() as over:
        assert (
            job_with(Control(0)).run_beside(lambda: over.wait(30), fails, until=lambda: True, seconds=0.0) is None
        )


class Progress:
    """A copy whose progress can't be read any more after the first time."""

    def __init__(self, *found: Snapshot) -> None:
        self.found = list(found)

    def read(self) -> Snapshot:
        if not self.found:
            raise AWAY
        return self.found.pop(0)


@pytest.mark.parametrize("known", [True, False])
def test_the_rate_is_written_although_the_progress_can_t_be_read(known: bool) -> None:
    """Tasks learn of a person's pause or limit by that record alone."""
    control, written = Control(0), list[Any]()
    job: Any = job_with(control)
    job.control.put_result = lambda result, records: written.append(
        (result.state, result.as_of_ms, result.detail, records)
    )
    progress = Progress(*[Snapshot((), 7, 1.0)] * known)
    states = ["ready"] * known

    def state_of(_: Snapshot) -> str:
        if not states:  # it asks the same brokers
            raise AWAY
        return states.pop()

    def report(**rate: int) -> None:
        job.report(progress, state_of, lambda _: rate, lambda _: "told")

    if known:
        report(rate=1)
    with pytest.raises(ClusterOutage):
        report(rate=0)
    # How near the copy is was never known: it is not ready.
    at_last = ("ready", 7, "told", {"rate": 0}) if known else ("running", 0, "", {"rate": 0})
    assert written[-1] == at_last
    with pytest.raises(ClusterOutage):
        report()
    assert written[-1] == at_last, "there is no rate to tell"


@pytest.mark.parametrize("outages", [0, 2])
def test_signs_are_given_and_the_last_result_stays(outages: int) -> None:
    control = Control(4)
    job = job_with(control)
    job.put("ready", Snapshot((), 7, 1.0))
    control.outages = outages
    assert job.run_beside(lambda: control.over.wait(30), asks_nothing, seconds=0.0, is_paused=lambda: True)
    assert [(r.state, r.as_of_ms) for r in control.put] == [("ready", 7)]
    assert control.signs >= 3


def test_at_other_times_it_reports_at_its_own_pace() -> None:
    control = Control(1)
    job, beats = job_with(control), []

    def beat() -> None:
        beats.append(1)
        job.put("running")

    assert job.run_beside(lambda: control.over.wait(30), beat, seconds=0.05)
    assert len(beats) == len(control.put)
    assert not job.run_beside(lambda: False, asks_nothing, seconds=1e9)
