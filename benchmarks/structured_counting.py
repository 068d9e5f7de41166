"""The same count by Structured Streaming, as one batch of all available records. ``spark-submit`` runs this file.

Arguments: bootstrap servers, checkpoint directory. The last printed line says how long it and its batch took.
"""

from __future__ import annotations

import sys
import time

from pyspark.sql import SparkSession

INPUT, OUTPUT, PARTITIONS = "events", "structured", "2"
ROCKS_DB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def main(servers: str, checkpoint: str) -> None:
    """Run one batch, and print how many seconds it took."""
    began = time.monotonic()
    spark = (
        SparkSession.builder.appName("structured counting")
        .config("spark.sql.shuffle.partitions", PARTITIONS)
        .config("spark.sql.streaming.stateStore.providerClass", ROCKS_DB)
        .config("spark.log.level", "WARN")
        .getOrCreate()
    )
    events = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", INPUT)
        .option("startingOffsets", "earliest")
        .load()
    )
    counts = events.groupBy("key").count().selectExpr("key", "CAST(count AS STRING) AS value")
    query = (
        counts.writeStream.outputMode("update")
        .format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("topic", OUTPUT)
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    batches = sum(progress["durationMs"]["triggerExecution"] for progress in query.recentProgress) / 1000
    print(f"seconds {time.monotonic() - began:.3f} {batches:.3f}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
