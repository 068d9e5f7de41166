"""The progress of a job's tasks, seen from outside: committed offsets compared with captured ends."""

from __future__ import annotations

import time
from collections.abc import Mapping

from kafka_rescale.core.cluster import TopicPartition
from kafka_rescale.core.control.progress import PartitionProgress
from kafka_rescale.core.processing.task_state import TaskMark
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.reading.committed import copy_consumer, read_committed
from kafka_rescale.kafka.reading.progress import Snapshot


class TaskProgress:
    """Reads the progress of a group; the first reading is the baseline.

    :param ends: captured ends (exclusive).
    :param as_of_ms: wall clock before the ends were captured.
    :ivar committed: committed offsets and their metadata, as of the last reading.
    """

    def __init__(
        self, connection: KafkaConnection, group: str, ends: Mapping[TopicPartition, int], as_of_ms: int
    ) -> None:
        # With `read_committed`, this would wait for the open transactions of the tasks that it watches.
        self._consumer = copy_consumer(connection, group, **{"isolation.level": "read_uncommitted"})
        self._ends, self._as_of_ms = ends, as_of_ms
        self._began = time.monotonic()
        self._baseline: dict[TopicPartition, int] | None = None
        self.committed: Mapping[TopicPartition, tuple[int, str | None]] = {}

    def read(self) -> Snapshot:
        """Return the positions of the tasks, as offsets: records can't be counted before they are read.

        :raises Outage: the brokers don't answer in time.
        """
        self.committed = read_committed(self._consumer, self._ends)
        positions = {source: at for source, (at, _) in self.committed.items()}
        self._baseline = self._baseline or positions
        partitions = tuple(
            PartitionProgress(
                topic=source[0],
                partition=source[1],
                position=positions.get(source, 0),
                end=end,
                records=max(0, positions.get(source, 0) - self._baseline.get(source, 0)),
            )
            for source, end in sorted(self._ends.items())
        )
        return Snapshot(partitions, self._as_of_ms, time.monotonic() - self._began)

    def is_idle(self, since_ms: int, processors: Mapping[TopicPartition, int]) -> bool:
        """Whether everything up to the ends has been processed, and was committed at or after a moment.

        An offset beyond the end doesn't count: the topic has lost its end, and the task that reads it must stop.

        :param since_ms: wall clock of the moment.
        :param processors: by partition, the least number of processors that the committed mark must have. A
            partition is left out if that is the initial number.
        """
        found = read_committed(self._consumer, self._ends)
        marks = {source: TaskMark.of(text) for source, (_, text) in found.items()}
        return all(
            source in found
            and found[source][0] == end
            and marks[source].at_ms >= since_ms
            and marks[source].processors >= processors.get(source, 0)
            for source, end in self._ends.items()
        )

    def close(self) -> None:
        """Close the client."""
        self._consumer.close()
