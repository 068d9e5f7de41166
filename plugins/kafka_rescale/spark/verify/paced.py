"""Reading for the proof at the pace of the expansion.

Spark's Kafka source has no limit for a batch. But its tasks read only as fast as their rows are taken. So the rows
pass a Python worker: when the worker rests, its reader waits. Only fingerprints pass, with the sizes of the
records that they were made of.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.copy.throttle import Throttle
from kafka_rescale.spark.copy.paced import Paced
from kafka_rescale.spark.jobs.begin import begin_process
from kafka_rescale.spark.jobs.task_errors import as_text

if TYPE_CHECKING:
    import pyarrow as pa

SIZE = "size"
REST_SECONDS = 1.0
"""How often a worker that rests checks whether it may go on."""


def size_of_record() -> Column:
    """Return the bytes of key and value of a record of Spark's Kafka source."""
    lengths = (sf.coalesce(sf.octet_length(sf.col(name)), sf.lit(0)) for name in ("key", "value"))
    return sum(lengths, sf.lit(0)).alias(SIZE)


@dataclass(frozen=True)
class PacedReading:
    """Slows down the reading of a log; an instance goes to Spark's Python workers.

    :param application: base name of the application.
    :param paced: what the workers know about the pace when they begin.
    """

    connection: KafkaConnection
    application: str
    paced: Paced

    def slowed(self, rows: DataFrame) -> DataFrame:
        """Return the same rows without their sizes, read at the pace that holds by then.

        :param rows: rows with a column ``SIZE``, in bytes.
        """
        return rows.mapInArrow(self._at_pace, rows.schema).drop(SIZE)

    def _at_pace(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        begin_process()
        with as_text():
            throttle = Throttle(self.paced.here(self.connection, self.application))
            for batch in batches:
                yield batch
                throttle.spent(sum(batch.column(SIZE).to_pylist()))
                throttle.wait(REST_SECONDS)
