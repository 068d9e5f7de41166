"""Which partition a key belongs to, as a vectorised function of Spark columns."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as sf

from kafka_rescale.core.formats.changelog_formats import ChangelogFormat
from kafka_rescale.core.partitioning.partitioners import partitioner_named

MALFORMED = -1


def partition_udf(
    form: ChangelogFormat, partitioner: str, key_topic: str, partitions: int
) -> Callable[[Column], Column]:
    """Return a function of changelog keys: their partition, or ``MALFORMED``.

    :param key_topic: the topic by whose name a user's partitioner is asked.
    """

    def partition_of(keys: pa.Array) -> pa.Array:
        # By its name: a user's function is imported where it runs, and never pickled.
        partition_batch = partitioner_named(partitioner, key_topic).partition_batch
        extracted = form.layout.extract(keys.to_pylist())
        homes = partition_batch([key or b"" for key in extracted], partitions)
        return pa.array(
            [MALFORMED if key is None else home for key, home in zip(extracted, homes, strict=True)], pa.int32()
        )

    udf: Callable[[Column], Column] = sf.arrow_udf(partition_of, "int")
    return udf
