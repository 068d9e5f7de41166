"""A task adds or removes one stream thread, however often Airflow repeats it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.airflow.operators.stream_threads import AddStreamThreadOperator, RemoveStreamThreadOperator
from kafka_rescale.core.assignment.thread_states import State, ThreadState
from kafka_rescale.core.control.processing import ClientRecord, Processing, ThreadRecord
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import TimedOut
from kafka_rescale.core.processing.adjustments import REMEMBERED, changed_by
from kafka_rescale.core.processing.rebalance import settled
from kafka_rescale.operations.processing import stream_threads

from tests.support.words_pipeline import write_pipeline

NAMES = [f"words-StreamThread-{index}" for index in (1, 2, 3)]
KINDS = [AddStreamThreadOperator, RemoveStreamThreadOperator]
Task = AddStreamThreadOperator | RemoveStreamThreadOperator


class Topic:
    """The control topic of a client with three threads."""

    def __init__(self) -> None:
        threads = tuple(ThreadRecord(name=name, state=ThreadState.RUNNING) for name in NAMES)
        client = ClientRecord(client_id="words", state=State.RUNNING, state_dir="/w", threads=threads)
        self.processing = Processing(clients=(client,))

    def read(self) -> ControlState:
        return ControlState(processing=self.processing)

    def update(self, change: Callable[[ControlState], Any]) -> ControlState:
        self.processing = next(iter(change(self.read()).values()), self.processing)
        return self.read()

    def next_run(self) -> None:
        """Let the next run of the pipeline begin."""
        (client,) = self.processing.clients
        self.processing = self.processing.with_clients(client.with_client(settled(client.client)))

    def in_state(self, state: ThreadState) -> list[str]:
        return [thread.name for thread in self.processing.threads if thread.state is state]


@pytest.fixture
def topic(monkeypatch: pytest.MonkeyPatch) -> Topic:
    made = Topic()
    monkeypatch.setattr(stream_threads, "ControlTopic", lambda *_: made)
    return made


@pytest.fixture
def task(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Task]:
    file = write_pipeline(tmp_path)

    def make(kind: type[Task], **arguments: Any) -> Task:
        monkeypatch.setattr(kind, "connection", lambda *_: None)
        return kind(task_id="change", application_file=str(file), **arguments)

    return make


def of(run: str, map_index: int = -1) -> Any:
    """Return the context of a task instance."""
    run_of = SimpleNamespace(dag_id="mine", run_id=run)
    return {"dag_run": run_of, "ti": SimpleNamespace(task_id="change", map_index=map_index)}


@pytest.mark.parametrize("kind", KINDS)
def test_who_has_waited_in_vain_waits_for_the_same_thread_again(
    topic: Topic, task: Callable[..., Task], kind: type[Task]
) -> None:
    change = task(kind, timeout_seconds=0)
    for _ in range(3):
        with pytest.raises(TimedOut):
            change.execute(of("r"))
    changed = topic.in_state(ThreadState.STARTING) + topic.in_state(ThreadState.PENDING_SHUTDOWN)
    assert len(changed) == 1
    topic.next_run()
    assert change.execute(of("r")) == changed[0]
    assert len(topic.processing.threads) == (4 if kind is AddStreamThreadOperator else 2)


@pytest.mark.parametrize("kind", KINDS)
def test_another_run_and_another_mapped_task_change_another_thread(
    topic: Topic, task: Callable[..., Task], kind: type[Task]
) -> None:
    change = task(kind)
    contexts = [of("r"), of("s"), of("r", map_index=0)]
    assert len({change.execute(context) for context in contexts}) == 3
    assert [change.execute(context) for context in contexts] == list(topic.processing.changed_threads.values())


def test_a_command_is_no_repetition_of_another_one(topic: Topic) -> None:
    nobody: Any = None
    names = {stream_threads.remove_stream_thread("words", nobody) for _ in range(2)}
    assert len(names) == 2
    assert not topic.processing.changed_threads


def test_what_changed_nothing_is_tried_again(topic: Topic, task: Callable[..., Task]) -> None:
    """The pipeline may run by then."""
    known, topic.processing = topic.processing, Processing(clients=(ClientRecord(client_id="words"),))
    add = task(AddStreamThreadOperator)
    assert add.execute(of("r")) is None
    topic.processing = known
    assert add.execute(of("r")) == "words-StreamThread-4"


def test_the_record_remembers_the_latest_and_an_earlier_version_has_none() -> None:
    record = Processing()
    assert "changed_threads" not in record.model_dump()
    for number in range(REMEMBERED + 1):
        record = changed_by(record, f"mine/{number}/change", "words-StreamThread-1")
    assert len(record.changed_threads) == REMEMBERED
    assert "mine/0/change" not in Processing.model_validate_json(record.model_dump_json()).changed_threads
