"""The hashes of Kafka's clients as functions of Spark columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sf

_POSITIVE = 0x7FFFFFFF


def _murmur2(key: Column) -> Column:
    """Call Kafka's own ``Utils.murmur2``, which is on the class path of Spark's Kafka source."""
    jvm = SparkSession.active().sparkContext._jvm
    assert jvm is not None
    expressions = jvm.org.apache.spark.sql.classic.ExpressionUtils
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    called = jvm.org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke(
        jvm.java.lang.Class.forName("org.apache.kafka.common.utils.Utils", True, loader),
        jvm.org.apache.spark.sql.types.DataTypes.IntegerType,
        "murmur2",
        jvm.PythonUtils.toSeq([expressions.expression(key._jc)]),
        jvm.PythonUtils.toSeq([]),
        True,  # null for a null
        True,  # so it may be null
        True,  # the same for the same key
        getattr(jvm.scala, "None$").__getattr__("MODULE$"),
    )
    hashed: Column = type(key)(expressions.column(called))
    return hashed.bitwiseAND(_POSITIVE)


HASHES: Mapping[str, Callable[[Column], Column]] = {"murmur2": _murmur2, "crc32": sf.crc32}
"""The hash of each partitioner, by its name. A partition is the remainder of the hash by the count."""
