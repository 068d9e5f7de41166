"""Pipelines that have a twin in ``jvm/tests/PipelinePrograms.java``, by the same name."""

from __future__ import annotations

from collections.abc import Callable

from kafka_rescale.core.pipeline import LONG, STRING, Pipeline, StreamsBuilder
from kafka_rescale.core.pipeline.streams import KStream

Program = Callable[[StreamsBuilder], None]


def left(builder: StreamsBuilder) -> KStream:
    return builder.stream("left", key=STRING, value=STRING)


def right(builder: StreamsBuilder) -> KStream:
    return builder.stream("right", key=STRING, value=STRING)


def first(key: str | None, value: str | None) -> str | None:
    return None if value is None else value[:1]


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


PROGRAMS: dict[str, Program] = {each.__name__: each for each in (stateless, repartition, count, reduce, aggregate)}


def built(name: str) -> Pipeline:
    """Return the pipeline of a program."""
    builder = StreamsBuilder()
    PROGRAMS[name](builder)
    return builder.build()
