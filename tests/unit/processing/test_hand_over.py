"""Whether partitions have changed hands, or why they can't yet, by what is committed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import pytest
from kafka_rescale.core.assignment.tasks import TaskId
from kafka_rescale.core.cluster import TopicDescription, TopicPartition
from kafka_rescale.core.control.processors import ProcessorCounts
from kafka_rescale.core.pipeline.task import StoreDefinition
from kafka_rescale.core.processing.state_copies import CopyMark, NewTask
from kafka_rescale.core.processing.static_topic import Placement
from kafka_rescale.core.processing.task_state import Changelog, TaskMark
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.processing import hand_over, state_copy
from kafka_rescale.kafka.processing.hand_over import HandOver, Sources
from kafka_rescale.kafka.processing.state_copy import StateCopy

COUNTS = ProcessorCounts(initial=2, count=2, expanding_to=4)
TASKS = [NewTask("app", TaskId(0, number), COUNTS, Placement(2), (), {}) for number in (2, 3)]
BEFORE, AFTER = (TaskMark(at_ms=5, processors=n).model_dump_json() for n in (0, 4))
CONNECTION = KafkaConnection({"bootstrap.servers": "b:9092"})
LOGGED = NewTask(
    "app",
    TaskId(0, 2),
    COUNTS,
    Placement(2),
    (StoreDefinition("counts", "timestamped-key-value"),),
    {"app-counts-changelog": TopicDescription("app-counts-changelog", 4, 1, topic_id="new")},
)
Committed = dict[TopicPartition, tuple[int, str | None]]


@pytest.fixture
def committed(monkeypatch: pytest.MonkeyPatch) -> Committed:
    """What the application's group has committed; a test may change it."""
    offsets: Committed = {("moves", p): (100, BEFORE) for p in range(4)}

    @contextmanager
    def consumer(*_: object, **__: object) -> Iterator[None]:
        yield

    def read(_: object, sources: Iterable[TopicPartition]) -> Committed:
        return {source: offsets[source] for source in sources if source in offsets}

    monkeypatch.setattr(hand_over, "closing_consumer", consumer)
    for module in (hand_over, state_copy):
        monkeypatch.setattr(module, "read_committed", read)
    return offsets


def of(partitions: int, settled: dict[int, int] | None) -> HandOver:
    return HandOver(
        KafkaConnection({"bootstrap.servers": "b:9092"}), TASKS, Sources({"moves": partitions}, {"moves": settled})
    )


def test_what_has_changed_hands_has_done_so_however_the_input_grows_before_a_run_records_it(
    committed: Committed,
) -> None:
    assert not any(map(of(4, {}).is_done, TASKS))
    committed |= {("moves", p): (50, AFTER) for p in (2, 3)}
    unsettled, settled = of(8, None), of(8, {p: 120 if p < 4 else 10 for p in range(8)})
    for over in (of(4, {}), unsettled, settled):
        assert all(map(over.is_done, TASKS))
        assert over.waits_for(10) == "", "the tasks that had the partitions can't go on with them"


@pytest.mark.parametrize(
    ("topic_id", "reason", "copied"),
    [
        pytest.param("new", "", 0, id="a hand-over that has begun"),
        pytest.param(
            "old", "has to be warmed up again: the changelog was deleted", 1, id="one of an earlier life"
        ),
    ],
)
def test_a_copy_is_final_only_for_the_changelog_that_it_has_read(
    topic_id: str, reason: str, copied: int, committed: Committed, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = CopyMark(topic_id=topic_id, as_of_ms=1, is_final=True)
    committed["app-counts-changelog", 0] = (500, mark.model_dump_json())
    end = Changelog("app-counts-changelog", "new", 0, 0, 90_000, None)
    monkeypatch.setattr(state_copy, "changelog_as_seen", lambda *_: end)
    over = HandOver(CONNECTION, [LOGGED], Sources({"moves": 4}, {"moves": {}}))
    assert reason in over.waits_for(10)
    assert bool(reason) is bool(over.waits_for(10))

    monkeypatch.setattr(state_copy, "TaskProducer", lambda *_: None)
    monkeypatch.setattr(state_copy, "copy_consumer", lambda *_: None)
    monkeypatch.setattr(StateCopy, "_anew", lambda *_: 1)
    assert StateCopy(CONNECTION, LOGGED).to_the_end(is_final=False, seconds=1) == copied
