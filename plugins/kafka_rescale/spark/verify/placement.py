"""Which partition a key belongs to, as a vectorised function of Spark columns."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from kafka_rescale.core.formats.changelog_formats import ChangelogFormat
from kafka_rescale.core.partitioning.partitioners import partitioner_named

MALFORMED = -1


def partition_udf(
    form: ChangelogFormat, partitioner: str, key_topic: str, partitions: int
) -> Callable[[Column], Column]:
    """Return a function of changelog keys: their partition, or ``MALFORMED``.

    :param key_topic: the topic name that is passed to a user's partitioner.
    """

    def partition_of(keys: pa.Array) -> pa.Array:
        # Look it up by name: a user's function is imported where it runs, and never pickled.
        partition_batch = partitioner_named(partitioner, key_topic).partition_batch
        extracted = form.layout.extract(keys.to_pylist())
        homes = partition_batch([key or b"" for key in extracted], partitions)
        return pa.array(
            [MALFORMED if key is None else home for key, home in zip(extracted, homes, strict=True)], pa.int32()
        )

    udf: Callable[[Column], Column] = sf.arrow_udf(partition_of, "int")
    return udf


def without_left_behind(log: DataFrame, home: Column) -> DataFrame:
    """Return a log without records outside their key's home, if the key's last record there is a tombstone.

    Such a key is live only in its home partition. Without the tombstone the records stay, and the proof finds
    them: as misplaced, and as one key in two partitions if it was copied as well.

    :param home: the partition that each key belongs to.
    """
    newest_first = Window.partitionBy("key", "partition").orderBy(sf.desc("offset"))
    left_behind = sf.col("is_buried") & (sf.col("partition") != sf.col("home"))
    marked = log.withColumns({"home": home, "is_buried": sf.first("tombstone").over(newest_first)})
    return marked.filter(~sf.coalesce(left_behind, sf.lit(False))).drop("home", "is_buried")
