"""The work of Spark's Python workers for a snapshot: one partition of one store at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.spark.jobs.begin import begin_process
from kafka_rescale.spark.jobs.task_errors import as_text
from kafka_rescale.spark.snapshots.partition import PartitionBuild, PartitionResult, StoreWork, Unit


@dataclass(frozen=True)
class BuildPartitions:
    """Builds the files of a day; one element of the RDD is a list of units."""

    connection: KafkaConnection
    stores: Mapping[str, StoreWork]

    def __call__(self, lists: Iterable[list[Unit]]) -> Iterator[PartitionResult]:
        """Yield the result of every partition."""
        begin_process()
        for units in lists:
            for store, partition in units:
                with as_text():
                    result = PartitionBuild(self.connection, self.stores[store], partition).build()
                yield result


@dataclass(frozen=True)
class AssessPartitions:
    """Finds the moment since which the log alone tells the state exactly, without earlier snapshots."""

    connection: KafkaConnection
    stores: Mapping[str, StoreWork]

    def __call__(self, lists: Iterable[list[Unit]]) -> Iterator[tuple[Unit, int | None]]:
        """Yield per partition the first exact moment in ms; None if there is no such moment."""
        begin_process()
        for units in lists:
            for store, partition in units:
                with as_text():
                    moment = PartitionBuild(self.connection, self.stores[store], partition).exact_from_ms()
                yield (store, partition), moment
