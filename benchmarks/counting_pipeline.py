"""What both contestants of the pipeline benchmark compute: the number of records of each key."""

from __future__ import annotations

from kafka_rescale.core.pipeline import BYTES, Pipeline, StreamsBuilder

INPUT, OUTPUT = "events", "counted"


def counting() -> Pipeline:
    """Return the pipeline."""
    builder = StreamsBuilder()
    events = builder.stream(INPUT, key=BYTES, value=BYTES)
    events.group_by_key().count(store="counts").to_stream().to(OUTPUT)
    return builder.build()
