"""A job that is tried again tells what its earlier tries have copied."""

from __future__ import annotations

from typing import Any

import pytest
from kafka_rescale.core.control.job_results import JobResult, Worked
from kafka_rescale.core.control.journal import Journal
from kafka_rescale.core.control.progress import PartitionProgress
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.reading.progress import Snapshot
from kafka_rescale.spark.jobs.arguments import Arguments
from kafka_rescale.spark.jobs.job import Job

from tests.support.plans import plan_for


class Control:
    """The control topic of an attempt."""

    def __init__(self) -> None:
        self.state = ControlState(journal=Journal(plan=plan_for("shop")))

    def read(self) -> ControlState:
        return self.state

    def put_result(self, result: JobResult, _: Any) -> None:
        results = {**self.state.results, result.job: result}
        self.state = self.state.model_copy(update={"results": results})


def begun(control: Control, attempt: int, name: str = "restore", stage: int | None = 1) -> Job:
    """One try at a job, before anything else knows of it."""
    arguments = Arguments(application="shop", run="r", attempt=attempt, stage=stage)
    job = Job(name, arguments, KafkaConnection({"bootstrap.servers": "localhost:1"}))
    stand_in: Any = control
    job.control = stand_in
    return job


def copied(records: int, seconds: float) -> Snapshot:
    part = PartitionProgress(topic="t", partition=0, position=1, end=1, records=records, bytes=10 * records)
    return Snapshot((part,), 0, seconds)


def test_what_each_try_has_copied_is_added_up() -> None:
    control = Control()
    for attempt, (records, seconds) in enumerate([(900_000, 3_600.0), (60_000, 30.0), (40_000, 30.0)], start=1):
        job = begun(control, attempt)
        job.own_journal()
        job.put("running")
        job.put("running", copied(records // 2, seconds / 2))
        job.put("done", copied(records, seconds))
    found = control.state.results["restore/1"]
    assert (found.records, found.seconds) == (40_000, 30.0)
    assert found.worked == Worked(records=1_000_000, bytes=10_000_000, seconds=3_660.0)


def test_a_try_that_fails_before_it_has_read_anything_loses_nothing() -> None:
    control = Control()
    begun(control, 1).put("running", copied(5, 1.0))
    begun(control, 2).put("failed")
    begun(control, 3).put("done", copied(2, 1.0))
    assert control.state.results["restore/1"].worked == Worked(records=7, bytes=70, seconds=2.0)


def test_the_parts_of_a_move_know_their_own_earlier_tries() -> None:
    control = Control()
    for attempt, records in ((1, 30), (2, 0)):
        job = begun(control, attempt, "move", None)
        job.own_journal()
        part = job.part(1)
        part.control = job.control
        part.put("done", copied(records, 1.0))
    assert control.state.results["move/1"].worked.records == 30


@pytest.mark.parametrize("name", ["process", "bridge", "prove"])
def test_other_jobs_begin_anew(name: str) -> None:
    """Their results outlive an attempt, or count something else."""
    control = Control()
    for attempt in (1, 2):
        begun(control, attempt, name, None).put("done", copied(5, 1.0))
    assert control.state.results[name].worked.records == 5
