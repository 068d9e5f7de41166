"""Aggregators may change the aggregate that they get in place. The old value is still the old value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kafka_rescale.core.pipeline import JSON, STRING, SessionWindows, StreamsBuilder, TimeWindows
from kafka_rescale.core.pipeline.grouped import KGroupedStream
from kafka_rescale.core.pipeline.tables import KTable

from tests.support.processing.pipeline_driver import PipelineDriver
from tests.support.processing.pipeline_programs import seconds

Add = Callable[[Any, Any, Any], Any]
Merge = Callable[[Any, Any, Any], Any]
TIMES = (0, 1_500, 700, 800, 900, 1_000)


def in_place(key: Any, value: Any, aggregate: Any) -> Any:
    aggregate["n"] += 1
    return aggregate


def anew(key: Any, value: Any, aggregate: Any) -> Any:
    return {"n": aggregate["n"] + 1}


def merged_in_place(key: Any, one: Any, two: Any) -> Any:
    two["n"] += one["n"]
    return two


def merged_anew(key: Any, one: Any, two: Any) -> Any:
    return {"n": one["n"] + two["n"]}


def plain(grouped: KGroupedStream, add: Add, merge: Merge) -> KTable:
    return grouped.aggregate(lambda: {"n": 0}, add, store="s", value=JSON)


def windowed(grouped: KGroupedStream, add: Add, merge: Merge) -> KTable:
    of_time = grouped.windowed_by(TimeWindows(seconds(10)))
    return of_time.aggregate(lambda: {"n": 0}, add, store="s", value=JSON)


def in_sessions(grouped: KGroupedStream, add: Add, merge: Merge) -> KTable:
    sessions = grouped.windowed_by(SessionWindows(seconds(1), grace=seconds(10)))
    return sessions.aggregate(lambda: {"n": 0}, add, merge, store="s", value=JSON)


Aggregated = Callable[[KGroupedStream, Add, Merge], KTable]


def written(aggregated: Aggregated, add: Add, merge: Merge, keep: Callable[[Any], bool]) -> list[Any]:
    """What a filter behind an aggregation lets through of six records.

    The third record merges sessions into one.
    """
    builder = StreamsBuilder()
    grouped = builder.stream("in", key=STRING, value=STRING).group_by_key()
    aggregated(grouped, add, merge).filter(lambda key, value: keep(value)).to_stream().to("out")
    driver = PipelineDriver(builder.build())
    return [[(e.key, e.value) for e in driver.pipe("in", b"k", b"v", time)] for time in TIMES]


@pytest.mark.parametrize(
    "keep", [lambda a: a["n"] < 2, lambda a: a["n"] < 3, lambda a: a["n"] > 2, lambda a: a["n"] % 2]
)
@pytest.mark.parametrize("aggregated", [plain, windowed, in_sessions])
def test_a_filter_behind_it_writes_the_same_as_of_one_that_makes_another_aggregate(
    aggregated: Aggregated, keep: Callable[[Any], bool]
) -> None:
    expected = written(aggregated, anew, merged_anew, keep)
    assert written(aggregated, in_place, merged_in_place, keep) == expected
    assert any(value is None for each in expected for _, value in each) or keep({"n": 6})


def test_counts_are_read_once() -> None:
    builder = StreamsBuilder()
    counts = builder.stream("in", key=STRING, value=STRING).group_by_key().count(store="s", value=Noted())
    counts.filter(lambda key, n: n < 3).to_stream().to("out")
    driver = PipelineDriver(builder.build())
    for time in range(5):
        driver.pipe("in", b"k", b"v", time)
    assert Noted.decoded == 4


class Noted:
    """Numbers as text. It counts how often a number was read."""

    decoded = 0

    def encode(self, value: int) -> bytes:
        return str(value).encode()

    def decode(self, data: bytes) -> int:
        Noted.decoded += 1
        return int(data)
