"""Joins: of streams by time, of streams with tables, of tables."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.pipeline import JSON, STRING, JoinWindows, StreamsBuilder
from kafka_rescale.core.pipeline.streams import KStream
from kafka_rescale.core.pipeline.tables import KTable

from tests.support.processing.pipeline_driver import PipelineDriver

Records = list[tuple[str, str, int]]
"""Side, key and time. The value is the index."""

sides = st.lists(
    st.tuples(st.sampled_from(["left", "right"]), st.sampled_from(["a", "ab"]), st.integers(0, 60)), max_size=25
)
windows = st.builds(
    lambda before, after: JoinWindows(ms(before), ms(after), grace=timedelta(days=1)),
    st.integers(0, 20),
    st.integers(0, 20),
)
LATER = 10**9


def ms(number: int) -> timedelta:
    return timedelta(milliseconds=number)


def pair(one: Any, two: Any) -> list[Any]:
    return [one, two]


def joined(kind: str, near: JoinWindows, *, swapped: bool = False) -> PipelineDriver:
    builder = StreamsBuilder()
    left, right = (builder.stream(topic, key=STRING, value=JSON) for topic in ("left", "right"))
    if swapped:
        swapped_windows = JoinWindows(near.after, near.before, near.grace)
        stream = getattr(right, kind)(left, lambda two, one: [one, two], swapped_windows)
    else:
        stream = getattr(left, kind)(right, pair, near)
    stream.to("out", value=JSON)
    return PipelineDriver(builder.build())


def pairs(driver: PipelineDriver, records: Records) -> Counter[tuple[Any, ...]]:
    """Return the indexes of the joined records, after all their windows have closed."""
    found: list[Any] = []
    for index, (side, key, time) in enumerate(records):
        found += driver.pipe(side, key.encode(), JSON.encode(index), time)
    for side in ("left", "right"):
        found += driver.pipe(side, b"later", b"-1", LATER)
    return Counter(pair for each in found if -1 not in (pair := tuple(JSON.decode(each.value))))


def partners(near: JoinWindows, records: Records) -> Counter[tuple[Any, ...]]:
    return Counter(
        (i, j)
        for i, (side, key, time) in enumerate(records)
        for j, (other_side, other_key, other) in enumerate(records)
        if (side, other_side) == ("left", "right") and key == other_key
        if -near.before_ms <= other - time <= near.after_ms
    )


class TestStreams:
    @given(sides, windows)
    def test_an_inner_join_pairs_what_is_near_in_time_whatever_the_order(
        self, records: Records, near: JoinWindows
    ) -> None:
        assert pairs(joined("join", near), records) == partners(near, records)

    @given(sides, windows)
    def test_joining_the_other_way_round_pairs_the_same(self, records: Records, near: JoinWindows) -> None:
        for kind in ("join", "outer_join"):
            assert pairs(joined(kind, near), records) == pairs(joined(kind, near, swapped=True), records)

    @given(sides, windows)
    def test_in_order_a_record_without_partner_comes_out_once_and_only_then(
        self, records: Records, near: JoinWindows
    ) -> None:
        records = sorted(records, key=lambda record: record[2])
        inner = partners(near, records)
        lonely = Counter(
            (i, None) if side == "left" else (None, i)
            for i, (side, _, _) in enumerate(records)
            if not any(i == pair[side == "right"] for pair in inner)
        )
        assert pairs(joined("outer_join", near), records) == inner + lonely
        left_lonely = Counter({each: n for each, n in lonely.items() if each[1] is None})
        assert pairs(joined("left_join", near), records) == inner + left_lonely

    def test_records_of_one_time_are_all_kept_also_over_a_restart(self) -> None:
        driver = joined("join", JoinWindows.of(ms(5)))
        driver.pipe("left", b"k", b"1", 10)
        driver.restart()
        driver.pipe("left", b"k", b"2", 10)
        found = driver.pipe("right", b"k", b"3", 10)
        assert [JSON.decode(each.value or b"") for each in found] == [[1, 3], [2, 3]]

    def test_what_the_store_has_forgotten_is_not_joined(self) -> None:
        driver = joined("join", JoinWindows.of(ms(5)))
        driver.pipe("left", b"k", b"1", 10)
        driver.pipe("left", b"k", b"2", 20)
        assert driver.pipe("right", b"k", b"3", 10) == []


class TestTables:
    def test_a_stream_gets_what_the_table_has_at_that_moment(self) -> None:
        builder = StreamsBuilder()
        table = builder.table("right", key=STRING, value=JSON)
        builder.stream("left", key=STRING, value=JSON).join(table, pair).to("out", value=JSON)
        driver = PipelineDriver(builder.build())
        assert driver.pipe("left", b"k", b"1", 5) == []
        assert driver.pipe("right", b"k", b"2", 9) == []
        (found,) = driver.pipe("left", b"k", b"3", 7)
        assert (found.value, found.timestamp_ms) == (b"[3,2]", 7)
        driver.pipe("right", b"k", None, 10)
        assert driver.pipe("left", b"k", b"4", 11) == []

    @given(
        st.lists(
            st.tuples(st.sampled_from(["left", "right"]), st.sampled_from("ab"), st.none() | st.integers(0, 9)),
            max_size=30,
        ),
        st.sampled_from(["join", "left_join", "outer_join"]),
        st.booleans(),
    )
    def test_a_join_of_tables_holds_at_last_what_the_tables_hold(
        self, updates: list[tuple[str, str, int | None]], kind: str, is_stored: bool
    ) -> None:
        builder = StreamsBuilder()
        left, right = (builder.table(topic, key=STRING, value=JSON) for topic in ("left", "right"))
        store = "joined" if is_stored else ""
        getattr(left, kind)(right, pair, store=store, value=JSON).to_stream().to("out")
        driver, found = PipelineDriver(builder.build()), dict[str, Any]()
        tables: dict[str, dict[str, int]] = {"left": {}, "right": {}}
        for topic, key, value in updates:
            for each in driver.pipe(topic, key.encode(), None if value is None else JSON.encode(value)):
                assert each.key is not None
                found[each.key.decode()] = None if each.value is None else JSON.decode(each.value)
            tables[topic] = {k: v for k, v in {**tables[topic], key: value}.items() if v is not None}
        one, two = tables["left"], tables["right"]
        keys = {"join": one.keys() & two.keys(), "left_join": set(one), "outer_join": one.keys() | two.keys()}
        expected = {key: [one.get(key), two.get(key)] for key in keys[kind]}
        assert {key: value for key, value in found.items() if value is not None} == expected


def test_a_stream_is_joined_with_windows_and_a_table_without() -> None:
    builder = StreamsBuilder()
    stream, table = builder.stream("left"), builder.table("right")
    near = JoinWindows.of(ms(5))
    wrong: list[tuple[KStream | KTable, JoinWindows | None, str]] = [
        (table, near, "a KTable with windows"),
        (stream, None, "a KStream without windows"),
    ]
    for other, given_windows, found in wrong:
        with pytest.raises(InvalidInput, match=found):
            stream.join(other, pair, given_windows)
    with pytest.raises(TypeError, match="serde"):
        stream.join(table, pair, serde=STRING)
