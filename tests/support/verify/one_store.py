"""The comparison of one store alone."""

from __future__ import annotations

from collections.abc import Mapping

from kafka_rescale.core.verify.pairs import StorePair
from kafka_rescale.core.verify.report import StoreReport
from kafka_rescale.spark.verify.compare import compare_stores
from pyspark.sql import SparkSession


def compare_store(spark: SparkSession, kafka: Mapping[str, str], pair: StorePair) -> StoreReport:
    """Compare a store in a plan that has only this store."""
    (report,) = compare_stores(spark, kafka, [pair])
    return report
