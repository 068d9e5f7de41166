"""A client whose Spark starts no task any more is left out, unless no other client could take its tasks."""

from __future__ import annotations

from typing import Any

import pytest
from kafka_rescale.airflow.operators.process import alive
from kafka_rescale.core.application.pipeline import PipelineApplication
from kafka_rescale.core.assignment.stream_threads import client_of
from kafka_rescale.core.assignment.tasks import TaskId, Tasks
from kafka_rescale.core.assignment.thread_states import State
from kafka_rescale.core.control.job_failure import JobFailure
from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.processing import ClientRecord, Processing
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import ClusterOutage, Outage, RescaleError, UnsafeState
from kafka_rescale.core.processing.adjustments import clients_removed, clients_started
from kafka_rescale.core.processing.rebalance import Member, Rebalance
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.operations.processing import dead_threads
from kafka_rescale.operations.processing.dead_threads import Attempt, handle_failure

RUN, TASKS = "process_words/1", Tasks({TaskId(0, p): 0 for p in range(4)})
A, B = Member("a", 2, "/a"), Member("b", 2, "/b")
KILLED = Exception("Error code is: 1")


def of(kind: type[RescaleError]) -> JobFailure:
    return JobFailure.of(kind("job", found="x", expected="y", remedy="z"))


class World:
    """The control topic of a pipeline with two clients of two threads each.

    The Spark of the first client is gone.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *members: Member) -> None:
        self.processing = Rebalance(RUN, 0, TASKS, members or (A, B)).of(None)
        self.results: dict[str, JobResult] = {}
        self.says("b-StreamThread-1", progressed_ms=5)
        monkeypatch.setattr(ControlTopic, "__init__", lambda *_: None)
        monkeypatch.setattr(ControlTopic, "read", lambda _: self.state)
        monkeypatch.setattr(dead_threads, "update_despite_races", self._update)

    @property
    def state(self) -> ControlState:
        return ControlState(processing=self.processing, results=self.results)

    def says(self, thread: str, **fields: Any) -> None:
        job = f"process/1/{thread}"
        self.results[job] = JobResult(**{"job": job, "run": RUN, "attempt": 3, "state": "running", **fields})

    def fails(
        self, thread: str = "a-StreamThread-1", *, last: bool = True, handler: str = "REPLACE_THREAD"
    ) -> None:
        attempt = Attempt(RUN, f"process/1/{thread}", thread, 3 if last else 2, is_last=last)
        application = PipelineApplication.model_construct(
            application_id="words", uncaught_exception_handler=handler
        )
        connection: Any = None
        handle_failure(application, connection, attempt, KILLED)

    def client(self, name: str) -> ClientRecord:
        found = self.processing.client(name)
        assert found is not None
        return found

    def next_run(self, *members: Member) -> Processing:
        self.processing = Rebalance("process_words/2", 0, TASKS, members or (A, B)).of(self.processing)
        return self.processing

    def _update(self, _: ControlTopic, change: Any, **__: Any) -> ControlState:
        for value in change(self.state).values():
            if isinstance(value, Processing):
                self.processing = value
            else:
                self.results[value.job] = value
        return self.state


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


def owners(processing: Processing) -> set[str]:
    return {client_of(thread.name) for thread in processing.threads if thread.tasks}


def test_its_tasks_go_to_others_and_it_joins_again_when_it_is_started(world: World) -> None:
    world.fails()
    assert "its Spark has begun no task in run process_words/1" in world.client("a").put_out
    with pytest.raises(UnsafeState, match=r"put out\. .*start-client FILE --client a"):
        alive(world.processing, "a-StreamThread-1", KILLED)
    assert owners(world.next_run()) == {"b"}
    assert (world.client("a").state, world.client("b").state) == (State.ERROR, State.RUNNING)
    assert owners(world.next_run()) == {"b"}, "run after run"
    world.processing = clients_started(world.processing, {"a"})
    assert owners(world.next_run()) == {"a", "b"}
    assert world.client("a").put_out == ""


@pytest.mark.parametrize(
    "left",
    [{}, {"state": "failed", "failure": of(RescaleError)}, {"attempt": 2, "progressed_ms": 7}],
    ids=["said that it begins", "Spark's own error", "the first attempt has begun a task"],
)
def test_a_driver_may_have_begun_as_long_as_spark_has_begun_no_task(world: World, left: dict[str, Any]) -> None:
    world.says("a-StreamThread-1", **left)
    world.fails()
    assert world.client("a").put_out


def test_a_retry_is_to_come_before_that(world: World) -> None:
    world.fails(last=False)
    assert (world.client("a").put_out, world.processing.thread_for("a-StreamThread-1")) == ("", "a-StreamThread-3")


@pytest.mark.parametrize(
    "left",
    [
        {"progressed_ms": 7},
        {"state": "failed", "failure": of(ClusterOutage)},
        {"state": "failed", "failure": of(Outage)},
    ],
    ids=["a task had begun", "the brokers are away", "the job has a reason of its own"],
)
def test_what_is_not_sparks_fault_puts_nobody_out(world: World, left: dict[str, Any]) -> None:
    world.says("a-StreamThread-1", **left)
    world.fails()
    assert not world.client("a").put_out


def test_a_client_of_which_another_thread_works_stays(world: World) -> None:
    world.says("a-StreamThread-2", progressed_ms=7, state="done")
    world.fails()
    assert not world.client("a").put_out


def test_what_others_have_done_in_an_earlier_run_shows_nothing(world: World) -> None:
    world.says("b-StreamThread-1", progressed_ms=5, run="process_words/0")
    world.fails()
    assert not world.client("a").put_out, "all of Spark may be away"


def test_all_threads_of_the_client_may_fail_and_the_other_client_is_the_last(world: World) -> None:
    world.fails("a-StreamThread-1")
    world.fails("a-StreamThread-2")
    assert (world.client("a").state, world.client("a").failed_stream_threads) == (State.ERROR, 2)
    world.results.clear()
    world.says("a-StreamThread-1", progressed_ms=5)
    world.fails("b-StreamThread-1")
    assert not world.client("b").put_out


@pytest.mark.parametrize("members", [(Member("b", 2),), (A, Member("b", 2, "/b", absent="no such directory"))])
def test_the_only_client_that_can_go_on_is_never_put_out(
    monkeypatch: pytest.MonkeyPatch, members: tuple[Member, ...]
) -> None:
    world = World(monkeypatch, *members)
    thread = world.processing.running[0]
    world.fails(thread)
    assert not world.client(client_of(thread)).put_out


def test_a_client_that_a_person_has_removed_is_no_other_client(world: World) -> None:
    world.processing = clients_removed(world.processing, {"b"})
    world.fails()
    assert not world.client("a").put_out


def test_a_handler_that_decides_otherwise_is_obeyed(world: World) -> None:
    world.fails(handler="SHUTDOWN_APPLICATION")
    assert {c.state for c in world.processing.clients} == {State.PENDING_ERROR}
    assert not world.client("a").put_out
