"""Stateful pipelines in the words of the Kafka Streams DSL, and what one task of them does with its records.

A pipeline file makes a :class:`StreamsBuilder`, adds operations, and calls ``build()``. What a runner of tasks
needs to know is in :mod:`kafka_rescale.core.pipeline.task`.
"""

from kafka_rescale.core.pipeline.builder import Pipeline, StreamsBuilder
from kafka_rescale.core.pipeline.serdes import BYTES, DOUBLE, INTEGER, JSON, LONG, STRING, Serde, avro
from kafka_rescale.core.pipeline.windows import JoinWindows, SessionWindows, TimeWindows, Windowed

__all__ = [
    "BYTES",
    "DOUBLE",
    "INTEGER",
    "JSON",
    "LONG",
    "STRING",
    "JoinWindows",
    "Pipeline",
    "Serde",
    "SessionWindows",
    "StreamsBuilder",
    "TimeWindows",
    "Windowed",
    "avro",
]
