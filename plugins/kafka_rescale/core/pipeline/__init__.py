"""Stateful pipelines with the methods of the Kafka Streams DSL, and the work of one task on its records.

A pipeline file makes a :class:`StreamsBuilder`, adds operations, and calls ``build()``. The module
:mod:`kafka_rescale.core.pipeline.task` is for the author of a runner: it lists the promises between a pipeline and
the runner of its tasks.
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
