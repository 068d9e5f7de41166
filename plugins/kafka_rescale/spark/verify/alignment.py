"""The records of a key in blue and in green side by side, counted from the end of its history.

One scan of all topics, one shuffle by key and one sort of narrow rows serve every oracle of every store. There is
no join, and no aggregation over binary values (which would fall back to sorting whole rows).
``core.verify.oracles`` says why counting from the end is right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as sf

from kafka_rescale.core.formats.changelog_formats import format_of
from kafka_rescale.core.verify.pairs import StorePair
from kafka_rescale.spark.verify import subscriptions as verify_subscriptions
from kafka_rescale.spark.verify.paced import PacedReading
from kafka_rescale.spark.verify.placement import Homes, Placing, homes, without_left_behind
from kafka_rescale.spark.verify.source import read_logs
from kafka_rescale.spark.verify.stores import STORE, by_partition, by_store

SIDES = ("blue", "green")
FIELDS = ("partition", "offset", "timestamp", "tombstone", "value_1", "value_2", "headers", "neighbour")
FENCED = ("touched", "shape")
HISTORY = ("hash", STORE, "key")
"""Columns of a key's history. Sorting compares the hash first: keys often begin with the same bytes."""
SORTED_AT_ONCE = 500_000
"""Records that a task sorts. They are narrow, and what does not fit into memory is spilled."""
SORTING_TASKS = 400
"""How many tasks sort at most. In place, there may be many more offsets than records."""


def align(
    spark: SparkSession,
    kafka: Mapping[str, str],
    pairs: Sequence[StorePair],
    keys: DataFrame | None = None,
    paced: PacedReading | None = None,
) -> DataFrame:
    """Return one row per store, key and rank (1 = the key's last record).

    Each side's record comes as ``blue_…``, ``green_…``. A side without such a record has nulls. ``source`` and
    ``target`` are the key's partitions by the partitioner, with blue's and green's counts. ``neighbour`` is the
    partition of the next newer record of the same key and side.

    If the pairs have fences, ``touched`` says whether blue has a record of the key at or behind its fence, and
    ``shape`` is a hash of the places of all records of the key.

    :param pairs: the stores. Either all of them have a fence, or none of them has.
    :param keys: the keys to look at, in a column ``key``; None for all keys.
    :param paced: slows the reading down; None to read as fast as Spark can.
    """
    both = _both(spark, kafka, pairs, paced)
    if keys is not None:
        both = both.join(keys, "key", "left_semi")
    # Shuffle by key alone, so that the window and the aggregation below need no further shuffle.
    by_key = both.withColumn("hash", sf.xxhash64("key")).repartition(_tasks(spark, pairs), "hash")
    is_fenced = any(pair.fence is not None for pair in pairs)
    ranked = _ranked(by_key, [pair.fence or {} for pair in pairs] if is_fenced else [])
    more = verify_subscriptions.FIELDS if verify_subscriptions.has_subscriptions(pairs) else ()
    found = [_side(name, field) for name in SIDES for field in (*FIELDS, *more)]
    if is_fenced:
        found += [sf.max(name).alias(name) for name in FENCED]
    source, target = _homes(pairs)
    return ranked.groupBy(*HISTORY, "rank").agg(*found).withColumns({"source": source, "target": target})


def _tasks(spark: SparkSession, pairs: Sequence[StorePair]) -> int:
    # Blue's offsets say little about how many records it has. A copy has as many records as blue had when it was
    # made.
    records = 2 * sum(end - begin for pair in pairs for begin, end in pair.green.ranges.values())
    return max(int(spark.sparkContext.defaultParallelism), min(records // SORTED_AT_ONCE, SORTING_TASKS))


def _ranked(by_key: DataFrame, fences: Sequence[Mapping[int, int]]) -> DataFrame:
    """Add what is counted over a key's history. One window serves all of it.

    :param fences: the fences, by the places of the stores; empty if the stores have no fences.
    """
    # Blue's records come first.
    history = Window.partitionBy(*HISTORY).orderBy("is_green", sf.desc("offset"), "partition")
    before = history.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    whole = history.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    of_blue = sf.when(sf.col("is_green"), sf.count_if(~sf.col("is_green")).over(before)).otherwise(sf.lit(0))
    is_newest = sf.coalesce(sf.lag("is_green").over(history) != sf.col("is_green"), sf.lit(True))
    counted = {
        "rank": (sf.row_number().over(history) - of_blue).cast("int"),
        "neighbour": sf.when(~is_newest, sf.lag("partition").over(history)),
    }
    if fences:
        position = by_partition([[fence[p] for p in range(len(fence))] for fence in fences], "long", "partition")
        is_behind = ~sf.col("is_green") & sf.coalesce(sf.col("offset") >= position, sf.lit(False))
        counted["touched"] = sf.max(is_behind).over(whole)
        counted["shape"] = sf.bit_xor(sf.xxhash64("is_green", "partition", "offset")).over(whole)
    return by_key.withColumns(counted)


def _both(
    spark: SparkSession, kafka: Mapping[str, str], pairs: Sequence[StorePair], paced: PacedReading | None
) -> DataFrame:
    """Return the records of both sides that are compared.

    In place, green's log is blue's log and the records appended since.
    """
    records, (source, target) = read_logs(spark, kafka, pairs, paced), _homes(pairs)
    if any(pair.left_behind for pair in pairs):
        is_asked = ~sf.col("is_green") & by_store([pair.left_behind for pair in pairs], "boolean")
        records = without_left_behind(records, is_asked, source)
    if any(pair.is_in_place for pair in pairs):
        in_place = by_store([pair.is_in_place for pair in pairs], "boolean")
        stays = sf.array(sf.lit(False), sf.lit(True))
        sides = sf.when(in_place & ~sf.col("is_green"), stays).otherwise(sf.array("is_green"))
        records = records.withColumn("is_green", sf.explode(sides))
        records = without_left_behind(records, in_place & sf.col("is_green"), target)
    return records


def _side(name: str, field: str) -> Column:
    """Return a field of the one record that the side has at this rank."""
    is_side = sf.col("is_green") == sf.lit(name == "green")
    return sf.max(sf.when(is_side, sf.col(field))).alias(f"{name}_{field}")


def _homes(pairs: Sequence[StorePair]) -> Homes:
    """Return the partitions that every key belongs to, in blue and in green."""
    return homes([_placing(pair) for pair in pairs], sf.col("key"))


def _placing(pair: StorePair) -> Placing:
    layout = format_of(pair.store_type, pair.partitioning_key).layout
    return Placing(layout, pair.partitioner, pair.key_topic, pair.blue.partitions, pair.green.partitions)
