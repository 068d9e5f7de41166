"""A record that stops one task of a job: the other tasks of the thread come to their ends before the job fails."""

from __future__ import annotations

import pickle
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from kafka_rescale.core.assignment.tasks import TaskId
from kafka_rescale.core.control.journal import PartitionOffsets
from kafka_rescale.core.errors import ClusterOutage, Fenced, InvalidInput, Outage, RescaleError, UnsafeState
from kafka_rescale.core.pipeline.failure import note
from kafka_rescale.core.pipeline.task import Record
from kafka_rescale.core.processing.request import ProcessRequest
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.spark.jobs.task_errors import TaskFailure
from kafka_rescale.spark.processing import job as process_job
from kafka_rescale.spark.processing import run
from kafka_rescale.spark.processing.run import RunTasks
from kafka_rescale.spark.processing.task_work import TaskDone, TaskStopped, TaskWork

from tests.support.processing.inline_jobs import session

CONNECTION = KafkaConnection({"bootstrap.servers": "b:9092"})
REPARTITION = "words-by-word-repartition"
BAD = InvalidInput("topic 'lines' partition 0 offset 7", found="0xff", expected="text", remedy="Skip it.")
ACTION = RunTasks(CONNECTION, "tests.support.words_pipeline:words")


def work(number: int) -> TaskWork:
    return TaskWork("words", TaskId(1, number), {}, {(REPARTITION, number): 9}, {}, "/state")


class Tasks:
    """Stands for ``run_task``: tasks that end, or fail by an error.

    :param dropped: how many records each task drops.
    :ivar begun: the numbers of the tasks that have begun.
    """

    def __init__(self, failures: dict[int, Exception], dropped: int = 0) -> None:
        self._failures, self._dropped, self.begun = failures, dropped, list[int]()

    def __call__(self, _: object, its: TaskWork, *__: object) -> TaskDone:
        number = its.task.partition
        self.begun.append(number)
        if number in self._failures:
            raise self._failures[number]
        return TaskDone(its.task, 9, 9, 1, 0, 0, {(REPARTITION, number): 9}, self._dropped, 0, 0.1)


def of_the_pipeline() -> Exception:
    error = ValueError("no number")
    note(error, "1_0", [Record("lines", 0, 7, 1, b"k", b"v")])
    return error


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (BAD, "offset 7"),
        (UnsafeState("task 1_0", found="a", expected="b", remedy="c"), "task 1_0"),
        (of_the_pipeline(), "record lines-0 at offset 7"),
    ],
)
def test_what_stops_one_task_stands_in_the_way_of_no_other(
    raised: Exception, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = Tasks({0: raised})
    monkeypatch.setattr(run, "run_task", tasks)
    ended = pickle.loads(pickle.dumps(list(ACTION(map(work, range(3))))))
    assert tasks.begun == [0, 1, 2]
    stopped, *done = ended
    assert isinstance(stopped, TaskStopped)
    assert told in str(stopped.failure.error)
    assert str(stopped.failure.error.__cause__ or raised) == str(raised)
    assert "in __call__" in stopped.trace
    assert [each.task for each in done] == [TaskId(1, 1), TaskId(1, 2)]


@pytest.mark.parametrize(
    "raised",
    [
        Fenced("task 1_0", found="a", expected="b", remedy="c"),
        ClusterOutage("task 1_0", found="a", expected="b", remedy="c"),
        KafkaException(KafkaError(KafkaError._FENCED)),
        MemoryError("not of this project"),
    ],
)
def test_no_task_begins_after_a_fence_or_an_outage(raised: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task that began then would fence the task of the run that has fenced this one."""
    tasks = Tasks({0: raised})
    monkeypatch.setattr(run, "run_task", tasks)
    with pytest.raises(TaskFailure if isinstance(raised, RescaleError) else type(raised)):
        list(ACTION(map(work, range(3))))
    assert tasks.begun == [0]


class Admin:
    """A cluster of which only records are deleted."""

    def __init__(self, failure: Exception | None = None) -> None:
        self._failure, self.deleted = failure, dict[str, dict[int, int]]()

    def delete_records(self, before: PartitionOffsets) -> None:
        if self._failure is not None:
            raise self._failure
        self.deleted = {topic: dict(offsets) for topic, offsets in before.items()}


class Job:
    """A job of a thread with three tasks.

    :ivar states: the states that were reported.
    :ivar result: the fields of the last result.
    """

    def __init__(self) -> None:
        request = ProcessRequest(
            pipeline="tests.support.words_pipeline:words",
            state_dir="/state",
            thread="words-StreamThread-1",
            level=2,
        )
        self.arguments = SimpleNamespace(request=request.model_dump_json(), application="words", run="process/1")
        self.key, self.connection, self.states = "", CONNECTION, list[str]()
        self.result: dict[str, Any] = {}

    spark = session

    def put(self, state: str) -> None:
        self.states.append(state)

    def report(self, _: object, state_of: Any) -> None:
        self.states.append(state_of(None))

    def run_reported(self, action: Any, _: object) -> Any:
        ended = action()
        self.states.append("all ended")
        return ended

    def finish(self, **fields: object) -> None:
        self.states.append("done")
        self.result = fields


def job_of(monkeypatch: pytest.MonkeyPatch, tasks: Tasks, admin: Admin) -> Any:
    """Return a job of these tasks, before its body has begun."""
    processing = SimpleNamespace(
        tasks_of=lambda *_: [TaskId(1, n) for n in range(3)],
        input_ends={},
        the_client=lambda _: SimpleNamespace(cache_bytes_of_thread=lambda _: 0),
    )
    monkeypatch.setattr(run, "run_task", tasks)
    monkeypatch.setattr(process_job, "assigned", lambda _: (processing, None))
    monkeypatch.setattr(process_job, "ClusterAdmin", lambda _: admin)
    monkeypatch.setattr(process_job, "works_of", lambda *_, **__: list(map(work, range(3))))
    monkeypatch.setattr(process_job, "TaskProgress", lambda *_: None)
    return Job()


def processed(monkeypatch: pytest.MonkeyPatch, failures: dict[int, Exception], admin: Admin) -> Job:
    """Return a job whose tasks have failed, after its body has failed by the first of the failures."""
    job = job_of(monkeypatch, Tasks(failures), admin)
    with pytest.raises(type(next(iter(failures.values()))), match="offset 7") as failed:
        process_job.process(job)
    assert not isinstance(failed.value, TaskFailure)
    found: Job = job
    return found


def test_the_job_fails_by_the_first_error_when_the_others_are_done_and_their_input_is_deleted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    other = UnsafeState("task 1_2", found="a", expected="b", remedy="c")
    admin = Admin()
    job = processed(monkeypatch, {0: BAD, 2: other}, admin)
    assert admin.deleted == {REPARTITION: {1: 9}}
    assert job.states[-2:] == ["all ended", "running"], "the last report says how far the others have come"
    said = capsys.readouterr().out
    assert f"task 1_0 was stopped: {BAD}" in said
    assert f"task 1_2 was stopped: {other}" in said


def test_brokers_that_do_not_delete_what_is_processed_do_not_hide_what_has_stopped_the_task(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    away = Outage("records", found="a", expected="b", remedy="c")
    assert "done" not in processed(monkeypatch, {0: BAD}, Admin(away)).states


def test_what_the_tasks_have_dropped_is_in_the_result_and_a_warning_in_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    job = job_of(monkeypatch, Tasks({}, dropped=100), Admin())
    process_job.process(job)
    assert job.result["dropped"] == 300
    warned = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert [text.partition(".")[0] for text in warned] == [f"task 1_{n}: records dropped: 100" for n in range(3)]
