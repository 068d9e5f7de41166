"""An outer join scans waiting records again and again. The scans do not pass removed records every time."""

from __future__ import annotations

from typing import Any

import pytest
from kafka_rescale.core.pipeline import STRING, JoinWindows, StreamsBuilder
from kafka_rescale.core.pipeline.stores.sorted_keys import SortedKeys
from kafka_rescale.core.pipeline.task import Record, SubTopology
from kafka_rescale.spark.processing.state_store import SortedRows, TaskStore

from tests.support.processing.pipeline_programs import seconds

WINDOW = 5
"""The number of records in a window: there is one record per second."""


def left_join(window: int = WINDOW) -> SubTopology:
    builder = StreamsBuilder()
    left, right = (builder.stream(topic, key=STRING, value=STRING) for topic in ("left", "right"))
    pairs = left.outer_join(right, lambda one, two: f"{one}|{two}", JoinWindows.of(seconds(window)), store="pairs")
    pairs.to("out", value=STRING)
    return builder.build().sub_topologies()[0]


def unlogged(*_: object) -> None:
    pass


def stores(part: SubTopology) -> dict[str, TaskStore]:
    return {store.name: TaskStore(unlogged) for store in part.stores}


def pipe(task: Any, first: int, end: int) -> int:
    """Pipe records of both sides in turns, and return how many came out. None of them has a partner."""
    return sum(
        len(task.process(Record(("left", "right")[at % 2], 0, at, at * 1_000, b"k%d" % at, b"v")))
        for at in range(first, end)
    )


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of keys and rows that each look into a store has passed."""
    found: list[int] = []
    keys, row = SortedKeys.range, SortedRows._entry

    def counted(self: SortedKeys, first: bytes, last: bytes) -> list[bytes]:
        listed = keys(self, first, last)
        found.append(len(listed))
        return listed

    def counted_row(self: SortedRows, at: int) -> Any:
        found.append(1)
        return row(self, at)

    monkeypatch.setattr(SortedKeys, "range", counted)
    monkeypatch.setattr(SortedRows, "_entry", counted_row)
    return found


@pytest.mark.parametrize("records", [200, 2_000])
def test_records_that_came_out_in_this_run_are_passed_once(records: int, looked_at: list[int]) -> None:
    part = left_join()
    came_out = pipe(part.processor(stores(part), 0), 0, records)
    assert came_out >= records - 3 * WINDOW
    assert sum(looked_at) < 10 * WINDOW * records


def test_records_of_earlier_runs_are_passed_once(looked_at: list[int]) -> None:
    waiting = 1_000
    part = left_join(window=waiting)
    kept = stores(part)
    before = part.processor(kept, 0)
    pipe(before, 0, waiting)
    for store in kept.values():
        store.load(store.all_rows(), [])
    after = left_join().processor(kept, 0)
    after.restore(before.checkpoint())
    looked_at.clear()
    assert pipe(after, waiting, 2 * waiting) >= 2 * waiting - 3 * WINDOW
    assert sum(looked_at) < 20 * WINDOW * waiting


def test_a_record_that_waits_from_before_all_others_is_found() -> None:
    part = left_join(window=100)
    task = part.processor(stores(part), 0)
    pipe(task, 500, 1_000)
    late = Record("left", 0, 0, 899_500, b"late", b"late")
    assert task.process(late) == []
    later = [Record("right", 0, 0, at * 1_000, b"k", b"v") for at in (1_001, 1_100)]
    assert b"late|None" in [each.value for record in later for each in task.process(record)]
