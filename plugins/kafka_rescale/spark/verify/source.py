"""Changelog ranges as narrow rows of fingerprints, read by Spark's own Kafka source.

The copy writes with librdkafka. This module reads with the Java client on purpose, so that a bug of one client
can't hide itself.
Values and headers are hashed in the scan and never shuffled.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import ceil

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from kafka_rescale.core.verify.pairs import StorePair
from kafka_rescale.spark.verify.paced import PacedReading, size_of_record
from kafka_rescale.spark.verify.stores import STORE, by_partition, by_store
from kafka_rescale.spark.verify.subscriptions import FIELDS, compared_value, has_subscriptions, with_primary

# Spark asks the broker for the log's range after every poll, so the client's default of 500 records caps a task
# far below what it can read. Each consumer reads one partition, so the partition's fetch size is what counts.
_BULK = {
    # Only transaction markers follow the last record of a closed range: the read of every partition
    # would wait for half a second there.
    "kafka.fetch.max.wait.ms": "5",
    "kafka.max.poll.records": "50000",
    "kafka.max.partition.fetch.bytes": str(8 * 1024 * 1024),
    "kafka.fetch.max.bytes": str(64 * 1024 * 1024),
    "kafka.receive.buffer.bytes": "-1",
    # Spark makes a consumer for every partition. Without these, each of them registers hundreds of metrics, and
    # offers them to the broker.
    "kafka.metric.reporters": "",
    "kafka.auto.include.jmx.reporter": "false",
    "kafka.enable.metrics.push": "false",
}
PARTITIONS_OF_A_TASK = 32
"""Spark makes a task of every partition. 500 partitions of ten records took 12.6 s on two cores, and 5.0 s in four
tasks. A task keeps the consumers of its partitions until it ends, so it must not have very many."""
TASKS_OF_A_CORE = 2
"""At least so many, so that a core goes on when its first task was the smaller one."""

NO_HEADERS = 0


def read_logs(
    spark: SparkSession, kafka: Mapping[str, str], pairs: Sequence[StorePair], paced: PacedReading | None = None
) -> DataFrame:
    """Return one row per record: store, is_green, key, partition, offset, timestamp, tombstone, values, headers.

    In place, one log has both sides: the records that were appended to blue's part are green's. For foreign-key
    subscriptions, ``primary`` and ``primary_home`` take the place of the partition that a value names. Two headers
    tie a record to blue's input offsets: ``v`` of version 0, and the ``c`` behind it. They are left out of blue's
    records; a copy must not have them.

    ``failOnDataLoss`` stays on. On a ``compact,delete`` topic, the log start may pass the planned begin before
    the begin is read. Then the job fails, and the caller plans again from the new log start. Holes that compaction
    has left don't count as loss.

    :param kafka: settings of the Java client.
    :param paced: slows the reading down; None to read as fast as Spark can.
    """
    records = spark.read.format("kafka").options(**_options(spark, kafka, pairs)).load()
    records = records.coalesce(_tasks(sum(log.partitions for pair in pairs for log in pair.logs), spark))
    records = records.withColumn("place", _place(pairs))
    records = records.withColumn(STORE, sf.shiftright("place", 1)).withColumn("is_green", _is_green(pairs))
    more = FIELDS if has_subscriptions(pairs) else ()
    if more:
        records = with_primary(records, pairs)
    value = compared_value(pairs)
    rows = records.select(
        STORE,
        "is_green",
        "key",
        "partition",
        "offset",
        sf.unix_millis("timestamp").alias("timestamp"),
        sf.col("value").isNull().alias("tombstone"),
        # Two chains with different seeds make 128 bits; the 64 bits of one hash would be too few for a proof.
        sf.xxhash64(sf.lit(1), value).alias("value_1"),
        sf.xxhash64(sf.lit(2), value).alias("value_2"),
        _headers(pairs).alias("headers"),
        *more,
        *([size_of_record()] if paced is not None else []),
    )
    return paced.slowed(rows) if paced is not None else rows


def _tasks(partitions: int, spark: SparkSession) -> int:
    cores = int(spark.sparkContext.defaultParallelism)
    return max(TASKS_OF_A_CORE * cores, ceil(partitions / PARTITIONS_OF_A_TASK))


def _options(spark: SparkSession, kafka: Mapping[str, str], pairs: Sequence[StorePair]) -> dict[str, str]:
    logs = [log for pair in pairs for log in pair.logs]
    return {
        **{f"kafka.{name}": value for name, value in kafka.items()},
        **_BULK,
        "kafka.isolation.level": "read_committed",
        # The application's own prefix, because its ACLs cover it.
        "groupIdPrefix": logs[0].topic,
        "assign": json.dumps({log.topic: list(range(log.partitions)) for log in logs}),
        "startingOffsets": json.dumps({log.topic: _numbered(log.begins) for log in logs}),
        "endingOffsets": json.dumps({log.topic: _numbered(log.ends) for log in logs}),
        "includeHeaders": "true",
        "failOnDataLoss": "true",
        # Rows carry their offsets, so a large partition may be read by several tasks.
        "minPartitions": str(spark.sparkContext.defaultParallelism),
    }


def _numbered(offsets: Sequence[int]) -> dict[str, int]:
    return {str(p): offset for p, offset in enumerate(offsets)}


def _place(pairs: Sequence[StorePair]) -> Column:
    """Return twice the place of the store that a topic belongs to, and 1 more for a topic of green alone."""
    places = {log.topic: 2 * n + side for n, pair in enumerate(pairs) for side, log in enumerate(pair.logs)}
    return sf.element_at(
        sf.create_map(*(sf.lit(each) for item in places.items() for each in item)), sf.col("topic")
    )


def _is_green(pairs: Sequence[StorePair]) -> Column:
    of_green = sf.col("place").bitwiseAND(1) == 1
    if not any(pair.is_in_place for pair in pairs):
        return of_green
    end = sf.coalesce(by_partition([pair.blue.ends for pair in pairs], "long", "partition"), sf.lit(0))
    in_place = by_store([pair.is_in_place for pair in pairs], "boolean")
    return sf.when(in_place, sf.col("offset") >= end).otherwise(of_green)


def _headers(pairs: Sequence[StorePair]) -> Column:
    without_position = ~sf.col("is_green") | by_store([not pair.copied for pair in pairs], "boolean")
    headers = sf.when(without_position, sf.filter("headers", _is_kept)).otherwise(sf.col("headers"))
    # A header without a value differs from a header with an empty value. Hashing skips nulls, so a flag is hashed.
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
