"""Pipelines over the flights. Each has a twin of the same name in ``jvm/tests/FlightPrograms.java``.

Together they use every operation of the DSL. The attribute ``<program>_pipeline`` is the pipeline of a program.
The names of its topics begin with the values of ``FLIGHTS_INPUTS`` and ``FLIGHTS_OUTPUTS``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from kafka_rescale.core.pipeline import STRING, JoinWindows, Pipeline, SessionWindows, StreamsBuilder, TimeWindows
from kafka_rescale.core.pipeline.streams import KStream
from kafka_rescale.core.pipeline.tables import KTable

INPUTS, OUTPUTS = "FLIGHTS_INPUTS", "FLIGHTS_OUTPUTS"
DELAYED_MINUTES = 15


def field(value: str, name: str) -> str | None:
    """A field of a JSON value as text."""
    found = json.loads(value)[name]
    return None if found is None else str(found)


def is_delayed(key: str | None, value: str) -> bool:
    return int(field(value, "arr_delay") or 0) > DELAYED_MINUTES


def route(value: str) -> str:
    return f"{field(value, 'carrier')}{field(value, 'flight')} {field(value, 'origin')}-{field(value, 'dest')}"


def by(name: str) -> Callable[[str | None, str], str | None]:
    return lambda key, value: field(value, name)


def both(one: str | None, two: str | None) -> str:
    return f"{route(one) if one else '-'}|{field(two, 'model') if two else '-'}"


def pair(one: str | None, two: str | None) -> str:
    return f"{route(one) if one else '-'}|{route(two) if two else '-'}"


def longer(one: str, two: str) -> str:
    return two if int(field(two, "distance") or 0) > int(field(one, "distance") or 0) else one


def miles(key: str | None, value: str, total: str) -> str:
    flights, distance = total.split(",")
    return f"{int(flights) + 1},{int(distance) + int(field(value, 'distance') or 0)}"


def added(key: str | None, one: str, two: str) -> str:
    ours, theirs = one.split(","), two.split(",")
    return f"{int(ours[0]) + int(theirs[0])},{int(ours[1]) + int(theirs[1])}"


def hours(number: float) -> timedelta:
    return timedelta(hours=number)


@dataclass(frozen=True)
class FlightsBuilder:
    """A builder over the topics of one test. It knows where the outputs go."""

    builder: StreamsBuilder
    inputs: str
    outputs: str

    def stream(self, topic: str) -> KStream:
        return self.builder.stream(f"{self.inputs}-{topic}", key=STRING, value=STRING)

    def table(self, topic: str, **how: Any) -> KTable:
        return self.builder.table(f"{self.inputs}-{topic}", key=STRING, value=STRING, **how)

    def out(self, topic: str) -> str:
        return f"{self.outputs}-{topic}"


def stateless(at: FlightsBuilder) -> None:
    flights = at.stream("flights")
    delayed = flights.filter(is_delayed).map_values(route, value=STRING)
    delayed.select_key(lambda key, value: value[-3:], key=STRING).to(at.out("delayed"))
    spread = flights.select_key(by("carrier"), key=STRING).repartition(name="by-carrier", partitions=3)
    spread.map_values(lambda key, value: f"{key}: {route(value)}", with_key=True, value=STRING).to(
        at.out("routes")
    )


def aggregates(at: FlightsBuilder) -> None:
    grouped = at.stream("flights").select_key(by("carrier")).group_by_key(name="by-carrier", key=STRING)
    grouped.count(store="flights").to_stream().to(at.out("flights"))
    grouped.reduce(longer, store="longest", value=STRING).to_stream().to(at.out("longest"))
    grouped.aggregate(lambda: "0,0", miles, store="miles", value=STRING).to_stream().to(at.out("miles"))


def windows(at: FlightsBuilder) -> None:
    departed = at.stream("departures").group_by_key()
    hopping = departed.windowed_by(TimeWindows(hours(6), advance=hours(2)))
    hopping.count(store="hopping").to_stream().to(at.out("hopping"))
    arrived = at.stream("arrivals").group_by_key()
    tumbling = arrived.windowed_by(TimeWindows(hours(3), grace=hours(0.5)))
    tumbling.aggregate(lambda: "0,0", miles, store="tumbling", value=STRING).to_stream().to(at.out("tumbling"))
    tumbling.reduce(longer, store="longest", value=STRING).to_stream().to(at.out("longest"))


def sessions(at: FlightsBuilder) -> None:
    arrived = at.stream("arrivals").group_by_key().windowed_by(SessionWindows(hours(5), grace=hours(1)))
    arrived.count(store="visits").to_stream().to(at.out("visits"))
    arrived.reduce(longer, store="longest", value=STRING).to_stream().to(at.out("longest"))
    arrived.aggregate(lambda: "0,0", miles, added, store="miles", value=STRING).to_stream().to(at.out("miles"))


def stream_table_joins(at: FlightsBuilder) -> None:
    planes = at.table("planes", store="planes")
    by_plane = at.stream("flights").select_key(by("tailnum"), key=STRING)
    joined = by_plane.join(planes, both, name="with-plane")
    joined.to(at.out("joined"), value=STRING)
    by_plane.left_join(planes, both, name="with-any-plane").to(at.out("left-joined"), value=STRING)
    per_hour = joined.group_by_key(value=STRING).windowed_by(TimeWindows(hours(1), grace=hours(1 / 6)))
    per_hour.count(store="per-hour").to_stream().to(at.out("per-hour"))


def table_table_joins(at: FlightsBuilder) -> None:
    planes, latest = at.table("planes"), at.table("departures", store="latest")
    latest.join(planes, both).to_stream().to(at.out("joined"), value=STRING)
    latest.left_join(planes, both, store="left", value=STRING).to_stream().to(at.out("left-joined"))
    outer = latest.outer_join(planes, both, store="outer", value=STRING)
    outer.filter(lambda key, value: value.startswith("UA")).to_stream().to(at.out("outer-joined"))
    latest.filter(is_delayed, store="delayed").map_values(route, value=STRING).to_stream().to(at.out("delayed"))


def stream_stream_joins(at: FlightsBuilder) -> None:
    departed, arrived = at.stream("departures"), at.stream("arrivals")
    near = JoinWindows.of(hours(4), grace=hours(1))
    departed.join(arrived, pair, near, name="inner").to(at.out("joined"), value=STRING)
    departed.left_join(arrived, pair, near, name="lefty").to(at.out("left-joined"), value=STRING)
    after = JoinWindows(before=hours(0), after=hours(6), grace=hours(1))
    departed.outer_join(arrived, pair, after, name="outer").to(at.out("outer-joined"), value=STRING)


PROGRAMS: dict[str, Callable[[FlightsBuilder], None]] = {
    each.__name__: each
    for each in (
        stateless,
        aggregates,
        windows,
        sessions,
        stream_table_joins,
        table_table_joins,
        stream_stream_joins,
    )
}


def built(program: str, inputs: str, outputs: str) -> Pipeline:
    """The pipeline of a program."""
    builder = StreamsBuilder()
    PROGRAMS[program](FlightsBuilder(builder, inputs, outputs))
    return builder.build()


def __getattr__(name: str) -> Any:
    program = name.removesuffix("_pipeline")
    if program == name or program not in PROGRAMS:
        raise AttributeError(name)
    return lambda: built(program, os.environ[INPUTS], os.environ[OUTPUTS])
