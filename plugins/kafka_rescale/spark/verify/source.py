"""A changelog range as narrow rows of fingerprints, read by Spark's own Kafka source.

The copy writes with librdkafka. This reads with the Java client on purpose: a bug of one client can't hide itself.
Values and headers are hashed in the scan and never shuffled.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from kafka_rescale.core.verify.pairs import ComparedLog
from kafka_rescale.spark.verify.paced import PacedReading, size_of_record
from kafka_rescale.spark.verify.subscriptions import FIELDS, compared_value, with_primary

# Spark asks the broker for the log's range after every poll, so the client's default of 500 records caps a task
# far below what it can read. Each consumer reads one partition, so the partition's fetch size is what counts.
_BULK = {
    # Only transaction markers follow the last record of a closed range: the read of every partition
    # would wait for half a second there.
    "kafka.fetch.max.wait.ms": "50",
    "kafka.max.poll.records": "50000",
    "kafka.max.partition.fetch.bytes": str(8 * 1024 * 1024),
    "kafka.fetch.max.bytes": str(64 * 1024 * 1024),
    "kafka.receive.buffer.bytes": "-1",
}

NO_HEADERS = 0
_NO_FIELDS: tuple[str, ...] = ()


def read_log(
    spark: SparkSession,
    kafka: Mapping[str, str],
    log: ComparedLog,
    *,
    left: tuple[str, str, int] | None = None,
    without_position: bool,
    paced: PacedReading | None = None,
) -> DataFrame:
    """Return one row per record: key, partition, offset, timestamp, tombstone, value_1, value_2, headers.

    ``failOnDataLoss`` stays on. On a ``compact,delete`` topic the log start may pass the planned begin before that
    is read. Then the job fails, and the caller plans again from the new log start. Holes left by compaction don't
    count as loss.

    :param kafka: settings of the Java client.
    :param left: for foreign-key subscriptions: partitioner, its topic, and partitions of the left table in this
        generation. Then ``primary`` and ``primary_home`` take the place of the partition that a value names.
    :param without_position: leave out the headers that tie a record to blue's input offsets (``v`` of version 0
        and the ``c`` behind it); a copy must not have them.
    :param paced: slows it down; None to read as fast as Spark can.
    """
    options = {
        **{f"kafka.{name}": value for name, value in kafka.items()},
        **_BULK,
        "kafka.isolation.level": "read_committed",
        # The application's own prefix, because its ACLs cover it.
        "groupIdPrefix": log.topic,
        "assign": json.dumps({log.topic: list(range(log.partitions))}),
        "startingOffsets": _offsets(log.topic, log.begins),
        "endingOffsets": _offsets(log.topic, log.ends),
        "includeHeaders": "true",
        "failOnDataLoss": "true",
        # Rows carry their offsets, so a large partition may be read by several tasks.
        "minPartitions": str(spark.sparkContext.defaultParallelism),
    }
    records = spark.read.format("kafka").options(**options).load()
    value, more = sf.col("value"), _NO_FIELDS
    if left is not None:
        records, more = with_primary(records, *left), FIELDS
        value = compared_value()
    rows = records.select(
        "key",
        "partition",
        "offset",
        sf.unix_millis("timestamp").alias("timestamp"),
        sf.col("value").isNull().alias("tombstone"),
        # Two chains with different seeds make 128 bits; the 64 bits of one hash would be too few for a proof.
        sf.xxhash64(sf.lit(1), value).alias("value_1"),
        sf.xxhash64(sf.lit(2), value).alias("value_2"),
        _headers(without_position).alias("headers"),
        *more,
        *([size_of_record()] if paced is not None else []),
    )
    return paced.slowed(rows) if paced is not None else rows


def _offsets(topic: str, offsets: list[int]) -> str:
    return json.dumps({topic: {str(p): offset for p, offset in enumerate(offsets)}})


def _headers(without_position: bool) -> Column:
    headers = sf.filter("headers", _is_kept) if without_position else sf.col("headers")
    # A header without a value and an empty one differ, and hashing skips nulls: hence the flag.
    exact = sf.transform(headers, lambda h: sf.struct(h["key"], h["value"].isNull(), h["value"]))
    empty = sf.col("headers").isNull() | (sf.size(headers) == 0)
    return sf.when(empty, sf.lit(NO_HEADERS).cast("long")).otherwise(sf.xxhash64(sf.size(headers), exact))


def _is_kept(header: Column, index: Column) -> Column:
    headers = sf.col("headers")
    starts = _is_version_0(header) & (sf.get(headers, index + 1)["key"] == "c")
    ends = (header["key"] == "c") & _is_version_0(sf.get(headers, index - 1))
    return ~sf.coalesce(starts | ends, sf.lit(False))


def _is_version_0(header: Column) -> Column:
    is_version_0 = (header["key"] == "v") & header["value"].eqNullSafe(sf.unhex(sf.lit("00")))
    return sf.coalesce(is_version_0, sf.lit(False))
