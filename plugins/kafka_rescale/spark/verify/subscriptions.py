"""Foreign-key subscriptions in the comparison: their values differ in one number, which has a rule of its own.

This repeats the layout of ``core/formats/subscription_wrapper.py`` in Spark's terms instead of calling that
module: the copy calls it, and a mistake there must not hide itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from kafka_rescale.core.formats.key_layouts import WHOLE
from kafka_rescale.core.formats.subscription_wrapper import LeftTable
from kafka_rescale.core.verify.pairs import StorePair
from kafka_rescale.spark.verify.placement import Placing, homes
from kafka_rescale.spark.verify.stores import by_store

FIELDS = ("primary", "primary_home")

_FIRST = "int(conv(hex(substring(value, 1, 1)), 16, 10))"
_IS_VERSION_1 = f"coalesce({_FIRST} % 128 = 1, false)"
_BEGIN = f"if({_FIRST} >= 128, 2, 18)"


def has_subscriptions(pairs: Sequence[StorePair]) -> bool:
    """Whether one of the stores has foreign-key subscriptions."""
    return any(pair.left is not None for pair in pairs)


def compared_value(pairs: Sequence[StorePair]) -> Column:
    """Return the value to compare: a subscription's value without its primary partition, any other value whole."""
    shortened = sf.expr(f"if({_IS_VERSION_1}, substring(value, 1, length(value) - 4), value)")
    return sf.when(_is_subscription(pairs), shortened).otherwise(sf.col("value"))


def with_primary(log: DataFrame, pairs: Sequence[StorePair]) -> DataFrame:
    """Add the primary partition that a value names, and the partition that its primary key belongs to.

    Both are null if the value names no primary partition.
    """
    names_one = _is_subscription(pairs) & sf.expr(_IS_VERSION_1)
    # The left table's partitioner may be a user's function, which fails on bytes that are no key.
    has_key = names_one & sf.expr(f"length(value) >= {_BEGIN} + 4")
    key = sf.when(has_key, sf.expr(f"substring(value, {_BEGIN} + 1, length(value) - 4 - {_BEGIN})"))
    named = sf.expr("int(conv(hex(substring(value, -4, 4)), 16, 10))")
    source, target = homes([_placing(pair.left) for pair in pairs], key)
    home = sf.when(sf.col("is_green"), target).otherwise(source)
    return log.withColumns({"primary": sf.when(names_one, named), "primary_home": sf.when(names_one, home)})


def _is_subscription(pairs: Sequence[StorePair]) -> Column:
    return by_store([pair.left is not None for pair in pairs], "boolean")


def _placing(left: LeftTable | None) -> Placing:
    if left is None:
        # The answer is not used.
        return Placing(WHOLE, "murmur2", "", 1, 1)
    return Placing(WHOLE, left.partitioner, left.key_topic, left.source_partitions, left.target_partitions)
