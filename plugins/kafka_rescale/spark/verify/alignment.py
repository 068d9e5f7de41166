"""The records of a key in blue and in green side by side, counted from the end of its history.

One shuffle by key and one sort of narrow rows serve every oracle. There is no join, and no aggregation over binary
values (which would fall back to sorting whole rows). ``core.verify.oracles`` says why counting from the end is
right.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as sf

from kafka_rescale.core.formats.changelog_formats import format_of
from kafka_rescale.core.verify.pairs import StorePair
from kafka_rescale.spark.verify import subscriptions as verify_subscriptions
from kafka_rescale.spark.verify.paced import PacedReading
from kafka_rescale.spark.verify.placement import partition_udf, without_left_behind
from kafka_rescale.spark.verify.source import read_log

SIDES = ("blue", "green")
FIELDS = ("partition", "offset", "timestamp", "tombstone", "value_1", "value_2", "headers", "neighbour")
FENCED = ("touched", "shape")


def align(
    spark: SparkSession,
    kafka: dict[str, str],
    pair: StorePair,
    keys: DataFrame | None = None,
    paced: PacedReading | None = None,
) -> DataFrame:
    """Return one row per key and rank (1 = the key's last record): each side's record as ``blue_…``, ``green_…``.

    A side without such a record has nulls. ``source`` and ``target`` are the key's partitions by the partitioner,
    with blue's and green's counts. ``neighbour`` is the partition of the next newer record of the same key and
    side.

    If the pair has a fence, ``touched`` says whether blue has a record of the key at or behind it, and ``shape``
    is a hash of the places of all records of the key.

    :param keys: look only at these, in a column ``key``.
    :param paced: slows the reading down; None to read as fast as Spark can.
    """
    blue, green = _sides(spark, kafka, pair, paced)
    both = blue.withColumn("is_green", sf.lit(False)).union(green.withColumn("is_green", sf.lit(True)))
    if keys is not None:
        both = both.join(keys, "key", "left_semi")
    # Shuffle by key alone, so that the window and the aggregation below need no further shuffle.
    by_key = both.repartition("key")
    newest_first = Window.partitionBy("key", "is_green").orderBy(sf.desc("offset"), "partition")
    ranked = by_key.withColumns(
        {"rank": sf.row_number().over(newest_first), "neighbour": sf.lag("partition").over(newest_first)}
    )
    fields = FIELDS if pair.left is None else (*FIELDS, *verify_subscriptions.FIELDS)
    found = [_side(name, field) for name in SIDES for field in fields]
    if pair.fence is not None:
        ranked = _with_fence(ranked, pair.fence)
        found += [sf.max(name).alias(name) for name in FENCED]
    return _placed(ranked.groupBy("key", "rank").agg(*found), pair)


def _with_fence(ranked: DataFrame, fence: dict[int, int]) -> DataFrame:
    of_key = Window.partitionBy("key")
    positions = sf.array(*(sf.lit(fence[p]).cast("long") for p in range(len(fence))))
    is_behind = ~sf.col("is_green") & (sf.col("offset") >= sf.get(positions, sf.col("partition")))
    place = sf.xxhash64("is_green", "partition", "offset")
    return ranked.withColumns({"touched": sf.max(is_behind).over(of_key), "shape": sf.bit_xor(place).over(of_key)})


def _sides(
    spark: SparkSession, kafka: dict[str, str], pair: StorePair, paced: PacedReading | None
) -> tuple[DataFrame, DataFrame]:
    """Return the records of each side that are compared.

    In place, green's log is blue's log and the records appended since.
    """
    blue = read_log(spark, kafka, pair.blue, left=pair.left_of("blue"), without_position=True, paced=paced)
    if pair.left_behind:
        blue = without_left_behind(blue, _partition(pair, pair.blue.partitions))
    if pair.is_in_place:
        appended = read_log(spark, kafka, pair.appended, without_position=False, paced=paced)
        return blue, without_left_behind(blue.union(appended), _partition(pair, pair.green.partitions))
    left, exact = pair.left_of("green"), not pair.copied
    green = read_log(spark, kafka, pair.green, left=left, without_position=exact, paced=paced)
    return blue, green


def _side(name: str, field: str) -> Column:
    """Return a field of the one record that the side has at this rank."""
    is_side = sf.col("is_green") == sf.lit(name == "green")
    return sf.max(sf.when(is_side, sf.col(field))).alias(f"{name}_{field}")


def _placed(aligned: DataFrame, pair: StorePair) -> DataFrame:
    return aligned.withColumns(
        {"source": _partition(pair, pair.blue.partitions), "target": _partition(pair, pair.green.partitions)}
    )


def _partition(pair: StorePair, count: int) -> Column:
    """Return the partition that every key belongs to, out of so many."""
    form = format_of(pair.store_type, pair.partitioning_key)
    return partition_udf(form, pair.partitioner, pair.key_topic, count)(sf.col("key"))
