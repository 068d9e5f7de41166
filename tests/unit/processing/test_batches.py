"""A batch keeps its limit of time, however slowly its records arrive or are processed."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from kafka_rescale.kafka.processing import batches
from kafka_rescale.kafka.processing.batches import BatchSize, batch_of


def test_batches_grow_as_long_as_they_are_quick() -> None:
    size = BatchSize(1_000, seconds=5)
    sizes = [size.now]
    for _ in range(3):
        size.took(size.now, 0.01 * size.now / 100)
        sizes.append(size.now)
    assert sizes == [10, 100, 1_000, 1_000]


def test_slow_records_are_taken_one_by_one() -> None:
    size = BatchSize(1_000, seconds=5)
    size.took(10, 100)
    assert size.now == 1
    size.took(1, 0.4)
    assert size.now == 10
    size.took(10, 4)
    assert size.now == 10, "ten times as many would take too long"
    size.took(3, 0.001)
    assert size.now == 10, "those were only the last ones"


def test_no_batch_is_larger_than_asked_for() -> None:
    assert BatchSize(7, seconds=5).now == 7
    assert batch_of(iter(range(5)), 3, 60) == [0, 1, 2]


def test_records_that_are_slow_to_come_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    times: Iterator[float] = iter(range(100))
    monkeypatch.setattr(batches, "time", SimpleNamespace(monotonic=lambda: next(times)))
    records = iter(range(100))
    assert batch_of(records, 50, seconds=2) == [0, 1, 2]
    assert next(records) == 3, "none is lost"
    assert batch_of(iter(()), 50, seconds=2) == []
