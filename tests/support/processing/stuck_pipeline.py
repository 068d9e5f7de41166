"""A pipeline that takes its time for each record, and does not return from one of them while a file is there."""

from __future__ import annotations

import os
import time
from pathlib import Path

from kafka_rescale.core.pipeline import STRING, Pipeline, StreamsBuilder

INPUT, OUTPUT = "stuck-input", "stuck-output"
TRAP, STUCK, SECONDS = "STUCK_PIPELINE_TRAP", "stuck", "STUCK_PIPELINE_SECONDS"
"""Names of environment variables: the file, and how long each record takes; and the value of the record."""


def counting() -> Pipeline:
    """Counts the records of each key."""
    builder = StreamsBuilder()
    records = builder.stream(INPUT, key=STRING, value=STRING).map_values(_slow, value=STRING)
    records.group_by_key().count(store="counts").to_stream().to(OUTPUT)
    return builder.build()


def _slow(value: str) -> str:
    time.sleep(float(os.environ.get(SECONDS, "0")))
    while value == STUCK and Path(os.environ[TRAP]).exists():
        time.sleep(0.1)
    return value
