"""Within the pause, a driver gives signs of life, often and without a request to the brokers before them."""

from __future__ import annotations

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
