"""Foreign-key subscriptions in the comparison: their values differ in one number, which has a rule of its own.

This repeats the layout of ``core/formats/subscription_wrapper.py`` in Spark's terms instead of calling that
module: the copy calls it, and a mistake there must not hide itself.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from kafka_rescale.core.formats.changelog_formats import FORMATS
from kafka_rescale.spark.verify.placement import partition_udf

FIELDS = ("primary", "primary_home")

_FIRST = "int(conv(hex(substring(value, 1, 1)), 16, 10))"
_IS_VERSION_1 = f"coalesce({_FIRST} % 128 = 1, false)"
_BEGIN = f"if({_FIRST} >= 128, 2, 18)"


def compared_value() -> Column:
    """Return the value without its primary partition."""
    return sf.expr(f"if({_IS_VERSION_1}, substring(value, 1, length(value) - 4), value)")


def with_primary(log: DataFrame, partitioner: str, key_topic: str, partitions: int) -> DataFrame:
    """Add the primary partition that a value names, and the partition that its primary key belongs to.

    Both are null if the value names no primary partition.

    :param key_topic: the topic name that is passed to a user's partitioner.
    :param partitions: of the left table, in this generation.
    """
    key = sf.expr(f"substring(value, {_BEGIN} + 1, length(value) - 4 - {_BEGIN})")
    named = sf.expr("int(conv(hex(substring(value, -4, 4)), 16, 10))")
    home = partition_udf(FORMATS["key-value"], partitioner, key_topic, partitions)(sf.coalesce(key, sf.lit(b"")))
    is_version_1 = sf.expr(_IS_VERSION_1)
    return log.withColumns({"primary": sf.when(is_version_1, named), "primary_home": sf.when(is_version_1, home)})
