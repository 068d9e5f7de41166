"""A small job with the parts of Spark that our jobs use, run by ``spark-submit`` to archive Spark's classes."""

from __future__ import annotations

from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as f


def main() -> None:
    """Run Python tasks, and make rows, aggregates, windows and joins."""
    spark = SparkSession.builder.appName("archive").getOrCreate()
    numbers = spark.sparkContext.parallelize(range(8), 2).mapPartitions(list).collect()
    rows = spark.createDataFrame([(str(n % 3).encode(), n) for n in numbers], "key binary, value long")
    ranked = rows.withColumn("rank", f.row_number().over(Window.partitionBy("key").orderBy("value")))
    joined = ranked.alias("a").join(rows.alias("b"), on="key", how="full_outer")
    joined.groupBy("key").agg(f.count("*"), f.max("rank"), f.sum(f.hash("key"))).collect()
    spark.stop()


if __name__ == "__main__":
    main()
