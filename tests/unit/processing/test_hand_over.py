"""Whether partitions have changed hands, or why they can't yet, by what is committed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import pytest
from kafka_rescale.core.assignment.tasks import TaskId
from kafka_rescale.core.cluster import TopicPartition
from kafka_rescale.core.control.processors import ProcessorCounts
from kafka_rescale.core.processing.state_copies import NewTask
from kafka_rescale.core.processing.static_topic import Placement
from kafka_rescale.core.processing.task_state import TaskMark
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.processing import hand_over
from kafka_rescale.kafka.processing.hand_over import HandOver, Sources

COUNTS = ProcessorCounts(initial=2, count=2, expanding_to=4)
TASKS = [NewTask("app", TaskId(0, number), COUNTS, Placement(2), (), {}) for number in (2, 3)]
BEFORE, AFTER = (TaskMark(at_ms=5, processors=n).model_dump_json() for n in (0, 4))
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
    monkeypatch.setattr(hand_over, "read_committed", read)
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
