"""Pipelines with a twin of the same name in ``jvm/tests/PipelinePrograms.java``."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta

from kafka_rescale.core.pipeline import (
    LONG,
    STRING,
    JoinWindows,
    Pipeline,
    SessionWindows,
    StreamsBuilder,
    TimeWindows,
)
from kafka_rescale.core.pipeline.streams import KStream
from kafka_rescale.core.pipeline.tables import KTable

from tests.support.processing.pipeline_driver import Piped

Program = Callable[[StreamsBuilder], None]
SECOND_MS = 1000


def left(builder: StreamsBuilder) -> KStream:
    return builder.stream("left", key=STRING, value=STRING)


def right(builder: StreamsBuilder) -> KStream:
    return builder.stream("right", key=STRING, value=STRING)


def first(key: str | None, value: str | None) -> str | None:
    return None if value is None else value[:1]


def moved(key: str | None, value: str | None) -> str | None:
    return "m" if value == "zz" else key


def stateless(builder: StreamsBuilder) -> None:
    stream = left(builder)
    (
        stream.filter(lambda k, v: v is not None and "a" not in v)
        .map_values(lambda v: f"{v}!", value=STRING)
        .to("out")
    )
    (
        stream.filter(lambda k, v: k is not None, name="keyed")
        .map_values(lambda k, v: k + ("null" if v is None else v), with_key=True, name="joined")
        .to("out-2", key=STRING, value=STRING, name="sink")
    )
    builder.stream("right", "third", key=STRING, value=STRING).select_key(first).to("out", key=STRING)
    left(builder).filter(lambda k, v: k is None).to("out-3")


def repartition(builder: StreamsBuilder) -> None:
    left(builder).select_key(first).repartition(key=STRING).to("out")
    left(builder).repartition(name="again", partitions=3).to("out-2")


def count(builder: StreamsBuilder) -> None:
    (
        left(builder)
        .filter(lambda k, v: v is not None)
        .select_key(first)
        .group_by_key(key=STRING)
        .count(store="counts")
        .to_stream()
        .to("out")
    )
    left(builder).group_by_key().count().to_stream().to("out-2")
    left(builder).select_key(first).group_by_key(key=STRING).count().to_stream().to("out-3")


def reduce(builder: StreamsBuilder) -> None:
    grouped = left(builder).group_by_key()
    grouped.reduce(lambda a, v: None if v == "zz" else a + v).to_stream().to("out")
    grouped.reduce(lambda a, v: v, store="last").to_stream().to("out-2")


def aggregate(builder: StreamsBuilder) -> None:
    grouped = left(builder).select_key(first, name="by-first").group_by_key(name="grouping", key=STRING)
    grouped.aggregate(
        lambda: "", lambda k, v, a: None if len(a) > 20 else a + k + v, store="all", value=STRING
    ).to_stream(name="stream").to("out")
    grouped.aggregate(lambda: 0, lambda k, v, a: a + len(v), value=LONG, name="lengths").to_stream().to("out-2")


def tables(builder: StreamsBuilder) -> None:
    table = left_table(builder)
    table.to_stream().to("out")
    table.filter(lambda k, v: "a" in v, store="only-filtered").to_stream().to("out-5")
    kept = builder.table("right", key=STRING, value=STRING, store="kept", name="kept-table")
    kept.filter(lambda k, v: "a" in v).map_values(lambda v: f"{v}?", value=STRING).to_stream().to("out-2")
    kept.filter(lambda k, v: "b" in v, store="filtered", name="bs").to_stream(name="b-stream").to("out-3")
    mapped = kept.map_values(lambda k, v: k + v, with_key=True, store="mapped", value=STRING)
    mapped.filter(lambda k, v: "c" in v).to_stream().to("out-4")


def left_table(builder: StreamsBuilder) -> KTable:
    return builder.table("left", key=STRING, value=STRING)


def both(one: str | None, two: str | None) -> str:
    return f"{one or '-'}|{two or '-'}"


def stream_table_joins(builder: StreamsBuilder) -> None:
    table = builder.table("right", key=STRING, value=STRING)
    stream = left(builder)
    stream.join(table, both).to("out", value=STRING)
    stream.left_join(table.filter(lambda k, v: "a" in v), both, name="lefty").to("out-2", value=STRING)
    keyed = stream.select_key(moved)
    keyed.join(table, both, key=STRING).map_values(len, value=LONG).to("out-3")
    keyed.left_join(table, both, key=STRING, name="named").to("out-4", value=STRING)
    keyed.join(table.map_values(lambda v: f"{v}!"), both, key=STRING).to("out-5", value=STRING)


def stream_table_join_of_keyed_only(builder: StreamsBuilder) -> None:
    counts = left(builder).group_by_key().count(store="counts")
    left(builder).join(counts, lambda v, n: n, name="own").to("out", value=LONG)
    right(builder).select_key(moved).join(counts, lambda v, n: n, key=STRING).to("out-2", value=LONG)


def table_table_joins(builder: StreamsBuilder) -> None:
    one, two = left_table(builder), builder.table("right", key=STRING, value=STRING)
    inner = one.join(two, both)
    inner.to_stream().to("out", value=STRING)
    one.left_join(two, both, store="left-joined", value=STRING).to_stream().to("out-2")
    one.outer_join(two, both, name="outer", store="outer-joined", value=STRING).to_stream().to("out-3")
    one.left_join(two, both).to_stream().to("out-4", value=STRING)
    one.outer_join(two, both).to_stream().to("out-5", value=STRING)


def joins_of_joins(builder: StreamsBuilder) -> None:
    one, two = left_table(builder), builder.table("right", key=STRING, value=STRING)
    three = builder.table("third", key=STRING, value=STRING).filter(lambda k, v: "z" not in v)
    one.join(two, both).left_join(three, both).to_stream().to("out", value=STRING)
    one.left_join(two, both).outer_join(three, both, store="all", value=STRING).to_stream().to("out-2")
    one.outer_join(two, both).join(three, both, name="last").filter(lambda k, v: "a" in v).to_stream().to(
        "out-3", value=STRING
    )
    counts = builder.stream("fourth", key=STRING, value=STRING).group_by_key().count()
    counts.filter(lambda k, n: n % 2).left_join(one, lambda n, v: both(str(n), v)).to_stream().to(
        "out-4", value=STRING
    )


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


def windows(builder: StreamsBuilder) -> None:
    grouped = left(builder).group_by_key()
    tumbling = grouped.windowed_by(TimeWindows(seconds(10), grace=seconds(15)))
    tumbling.count(store="tumbling").to_stream().to("out")
    hopping = grouped.windowed_by(TimeWindows(seconds(30), advance=seconds(7)))
    hopping.reduce(lambda a, v: f"{a or 'null'}{v or 'null'}"[-20:]).to_stream().to("out-2")
    hopping.aggregate(
        lambda: "",
        lambda k, v, a: f"{k}{a}{v or 'null'}"[:30],
        store="joined",
        retention=seconds(100),
        value=STRING,
    ).filter(lambda k, v: k.start % 2 == 0 and "b" in v).to_stream().to("out-3")
    keyed = left(builder).select_key(first).group_by_key(key=STRING)
    keyed.windowed_by(TimeWindows(seconds(5))).count(name="by-five").map_values(str, value=STRING).to_stream().to(
        "out-4"
    )


def sessions(builder: StreamsBuilder) -> None:
    grouped = left(builder).filter(lambda k, v: v is not None).group_by_key()
    short = grouped.windowed_by(SessionWindows(seconds(8), grace=seconds(10)))
    short.count(store="visits").to_stream().to("out")
    short.reduce(lambda a, v: a + v).to_stream().to("out-2")
    grouped.windowed_by(SessionWindows(seconds(20))).aggregate(
        lambda: "", lambda k, v, a: a + v, lambda k, one, two: f"{one}+{two}", store="long", value=STRING
    ).filter(lambda k, v: "a" in v).to_stream().to("out-3")


def windowed_tables(builder: StreamsBuilder) -> None:
    near = TimeWindows(seconds(20), advance=seconds(10), grace=seconds(30))
    one = left(builder).group_by_key().windowed_by(near).count(store="lefts")
    two = right(builder).group_by_key().windowed_by(near).count(store="rights")
    one.join(two, lambda m, n: both(str(m), str(n)), value=STRING).to_stream().to("out", value=STRING)
    visits = SessionWindows(seconds(30), grace=seconds(30))
    three = left(builder).group_by_key().windowed_by(visits).count(store="left-visits")
    four = right(builder).group_by_key().windowed_by(visits).count(store="right-visits")
    three.left_join(four, lambda m, n: both(str(m), n and str(n))).to_stream().to("out-2", value=STRING)


def stream_stream_joins(builder: StreamsBuilder) -> None:
    one, two = left(builder), right(builder)
    near = JoinWindows.of(seconds(5), grace=seconds(20))
    one.join(two, both, near).to("out", value=STRING)
    one.left_join(two, both, near, name="lefty").to("out-2", value=STRING)
    one.outer_join(two, both, near, store="kept").to("out-3", value=STRING)


def narrow_stream_stream_joins(builder: StreamsBuilder) -> None:
    one, two = left(builder), right(builder)
    earlier = JoinWindows(before=seconds(12), after=seconds(0))
    one.join(two, both, earlier, name="named", store="named-store").to("out", value=STRING)
    one.left_join(two, both, earlier).to("out-2", value=STRING)
    one.outer_join(two, both, JoinWindows(before=seconds(1), after=seconds(9), grace=seconds(3))).to(
        "out-3", value=STRING
    )
    one.join(one, both, JoinWindows.of(seconds(2))).to("out-4", value=STRING)


def repartitioned_joins(builder: StreamsBuilder) -> None:
    one, two = left(builder).select_key(moved), right(builder)
    near = JoinWindows.of(seconds(5))
    one.join(two, both, near, key=STRING).to("out", value=STRING)
    one.left_join(two, both, near, key=STRING, name="lefty", store="kept").to("out-2", value=STRING)
    two.outer_join(one, both, near, key=STRING).to("out-3", value=STRING)


PROGRAMS: dict[str, Program] = {
    each.__name__: each
    for each in (
        stateless,
        repartition,
        count,
        reduce,
        aggregate,
        tables,
        stream_table_joins,
        stream_table_join_of_keyed_only,
        table_table_joins,
        joins_of_joins,
        windows,
        sessions,
        windowed_tables,
        stream_stream_joins,
        narrow_stream_stream_joins,
        repartitioned_joins,
    )
}


def built(name: str) -> Pipeline:
    """Return the pipeline of a program."""
    builder = StreamsBuilder()
    PROGRAMS[name](builder)
    return builder.build()


def program_records(program: str, number: int) -> list[Piped]:
    """Return records of a program's inputs: few keys, records without a key, tombstones, times that go back."""
    chance = random.Random(program)
    topics = built(program).topology.inputs
    now, found = 1_600_000_000_000, []
    for index in range(number):
        now += chance.choice((0, 1, SECOND_MS, 2 * SECOND_MS, 5 * SECOND_MS))
        late = chance.choice((0, 0, 0, 1, SECOND_MS, 5 * SECOND_MS, 20 * SECOND_MS, 60 * SECOND_MS))
        key = chance.choice((None, b"k", b"kk", b"k\0", b"l", b"m", b"m", b"m"))
        value = chance.choice((None, b"a", b"ab", b"b", b"bc", b"cc", b"zz"))
        topic = chance.choice(topics)
        found.append(Piped(topic, key, value, now - late, str(index).encode()))
    return found
