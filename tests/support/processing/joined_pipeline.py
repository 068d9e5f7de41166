"""A pipeline of one sub-topology with every kind of windowed state: windows, sessions and both sides of a join."""

from __future__ import annotations

from datetime import timedelta

from kafka_rescale.core.pipeline import STRING, JoinWindows, SessionWindows, StreamsBuilder, TimeWindows
from kafka_rescale.core.pipeline.task import SubTopology

from tests.support.processing.counting_pipeline import SINK, SOURCES, STORE


def both(one: str | None, two: str | None) -> str:
    return f"{one or '-'}|{two or '-'}"


def ms(number: int) -> timedelta:
    return timedelta(milliseconds=number)


def joined() -> SubTopology:
    """The sub-topology: an outer join in windows, counts per window, and sessions."""
    builder = StreamsBuilder()
    left, right = (builder.stream(source, key=STRING, value=STRING) for source in SOURCES)
    left.outer_join(right, both, JoinWindows.of(ms(50), grace=ms(100)), name="near").to(SINK, value=STRING)
    windowed = left.group_by_key().windowed_by(TimeWindows(ms(200), grace=ms(100)))
    windowed.count(store=STORE).map_values(str, value=STRING).to_stream().to(SINK)
    sessions = right.group_by_key().windowed_by(SessionWindows(ms(80), grace=ms(50)))
    sessions.reduce(lambda one, two: f"{one},{two}"[-50:], store="visits").to_stream().to(SINK)
    return builder.build().sub_topologies()[0]
