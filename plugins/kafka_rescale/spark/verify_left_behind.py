"""What a growth in place leaves where keys were before: records that a tombstone behind them has made void."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf


def without_left_behind(log: DataFrame, home: Column) -> DataFrame:
    """Return a log without the records of keys that are not at home and whose last record there is a tombstone.

    Such a key is live nowhere but at home. One without its tombstone stays, and is found: misplaced, and in two
    partitions if it was copied as well.

    :param home: the partition that each key belongs to.
    """
    newest_first = Window.partitionBy("key", "partition").orderBy(sf.desc("offset"))
    left_behind = sf.col("is_buried") & (sf.col("partition") != sf.col("home"))
    marked = log.withColumns({"home": home, "is_buried": sf.first("tombstone").over(newest_first)})
    return marked.filter(~sf.coalesce(left_behind, sf.lit(False))).drop("home", "is_buried")
