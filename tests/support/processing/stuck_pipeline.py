"""A pipeline that is slow for each record, and hangs in one of them as long as a file exists."""

from __future__ import annotations

import os
import time
from pathlib import Path

from kafka_rescale.core.pipeline import STRING, Pipeline, StreamsBuilder

INPUT, OUTPUT = "stuck-input", "stuck-output"
TRAP, STUCK, SECONDS = "STUCK_PIPELINE_TRAP", "stuck", "STUCK_PIPELINE_SECONDS"
"""TRAP and SECONDS are environment variables: the file, and how long each record takes.
STUCK is the value of the record that hangs.
"""


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
