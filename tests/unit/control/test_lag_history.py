"""The history of lags stays small, and always has its newest reading."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka_rescale.core.control.lag_history import MAX_ROWS, MAX_SAMPLES, LagHistory
from kafka_rescale.core.control.progress import NO_POSITION, PartitionProgress

TOPIC = "x-s-changelog"


def reading(*lags: int | None, topic: str = TOPIC) -> list[PartitionProgress]:
    return [
        PartitionProgress(topic=topic, partition=p, position=-1 if lag is None else 1000 - lag, end=1000)
        for p, lag in enumerate(lags)
    ]


def history(totals: list[int], seconds_between: int = 1) -> LagHistory:
    found = LagHistory()
    for number, total in enumerate(totals):
        found = found.observed(reading(total), number * seconds_between * 1000, 10)
    return found


@settings(deadline=None)
@given(st.integers(1, 700))
def test_it_keeps_the_first_and_the_newest_reading_and_never_grows_beyond_its_bound(readings: int) -> None:
    found = history(list(range(readings)))
    assert found.seen == readings
    assert len(found.samples) <= MAX_SAMPLES
    assert (found.samples[0].at_ms, found.samples[-1].at_ms) == (0, (readings - 1) * 1000)
    apart = [b.at_ms - a.at_ms for a, b in zip(found.samples[:-1], found.samples[1:-1], strict=False)]
    assert set(apart) <= {found.every * 1000}


def test_a_thousand_partitions_share_rows_and_the_worst_of_each_row_shows() -> None:
    lags = [0] * 1000
    lags[777] = 500
    found = LagHistory().observed(reading(*lags), 0, 10)
    assert len(found.rows) <= MAX_ROWS
    assert [(r.first, r.last) for r in found.rows][:1] == [(0, 10)]
    (holding,) = [row for row, worst in zip(found.rows, found.samples[0].worst, strict=True) if worst]
    assert holding.first <= 777 <= holding.last
    assert found.samples[0].total == 500
    assert found.rows[-1].last == 999


def test_its_size_is_bounded_whatever_it_is_of() -> None:
    found, readings = LagHistory(), [reading(*([10**9 + number] * 5000)) for number in range(2)]
    for number in range(200):
        found = found.observed(readings[number % 2], number, 10)
    assert len(found.model_dump_json()) < 120_000


def test_a_partition_without_a_position_marks_its_row() -> None:
    assert LagHistory().observed(reading(3, None), 0, 10).samples[0].worst == (3, NO_POSITION)


def test_other_partitions_begin_another_history() -> None:
    first = LagHistory().observed(reading(1), 0, 10)
    second = first.observed(reading(1, topic="x-other-changelog"), 1000, 10)
    assert (second.seen, len(second.samples)) == (1, 1)


@pytest.mark.parametrize(
    ("totals", "seconds"),
    [
        ([900, 600, 300], 1.0),
        ([900, 900, 900], None),
        ([100, 200, 300], None),
        ([300], None),
        ([300, 0], 0.0),
        ([1000] * 6 + [900, 800, 700], 7.0),
    ],
    ids=["shrinks", "stands still", "grows", "one reading", "nothing left", "pace of the last third"],
)
def test_the_time_left_follows_from_the_present_pace(totals: list[int], seconds: float | None) -> None:
    assert history(totals).seconds_left() == seconds


def test_nobody_knows_whether_it_shrinks_before_two_readings_of_a_copy_that_has_begun() -> None:
    found = LagHistory()
    paces = []
    for number, lags in enumerate([(None, None), (None, None), (900, None), (900, None), (900, 900)]):
        found = found.observed(reading(*lags), number * 1000, 10)
        paces.append(found.has_pace)
    assert paces == [False, False, False, True, True]
    assert not history([300]).has_pace
