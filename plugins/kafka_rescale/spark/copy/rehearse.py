"""In place, before anything is changed: could every record of the state be moved, and how many would be?

After the promotion there is no way back, and the move has to succeed. So anything that could stop the move has to
be found before. Records that are written meanwhile, and records in flight, are checked when the application has
stopped.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from kafka_rescale.core.cluster import TopicPartition
from kafka_rescale.core.control.journal import Phase
from kafka_rescale.core.control.progress import PartitionProgress
from kafka_rescale.core.formats.record_limits import RecordLimits
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.copy.rehearsal import record_limits, rehearse_unit
from kafka_rescale.kafka.copy.units import CopyUnit, units_of
from kafka_rescale.kafka.reading.progress import Snapshot
from kafka_rescale.spark.jobs.begin import begin_process
from kafka_rescale.spark.jobs.job import Job, say
from kafka_rescale.spark.jobs.task_errors import as_text

WRITTEN_WITHIN_MS = 24 * 3600 * 1000
"""How long it may take until the records are written: a person may approve the cutover only tomorrow."""


@dataclass(frozen=True)
class Rehearse:
    """Routes every record of lists of units without writing it; one element of the RDD is one list.

    :param ranges: first offset and end (exclusive) of every source.
    :param limits: limits for records, by target topic.
    """

    connection: KafkaConnection
    ranges: Mapping[TopicPartition, tuple[int, int]]
    limits: Mapping[str, RecordLimits]

    def __call__(self, lists: Iterable[list[CopyUnit]]) -> Iterator[PartitionProgress]:
        """Yield for each unit how many records would be written."""
        begin_process()
        for unit in (unit for units in lists for unit in units):
            with as_text():
                start, end = self.ranges[unit.source]
                yield rehearse_unit(self.connection, unit, start, end, self.limits[unit.move.target])


def rehearse(job: Job) -> None:
    """Read the state that an expansion in place will have to move, beside the running application.

    :raises UnsafeState: a record can't be moved, or the attempt was rolled back. Nothing has been changed yet.
    :raises Fenced: another run holds the lease.
    """
    journal = job.own_journal()
    journal.assert_not_rolled_back()
    moves = [move for move in journal.plan.changelogs if move.grows]
    job.put("running")
    if journal.phase is not Phase.WARMING or not moves:
        say(f"{job.key}: nothing to rehearse in phase {journal.phase}")
        job.put("done")
        return
    began, units, admin = time.monotonic(), units_of(moves), ClusterAdmin(job.connection)
    topics = [move.source for move in moves]
    begins, ends = admin.begin_offsets(topics), admin.end_offsets(topics)
    ranges = {(t, p): (begins[t][p], ends[t][p]) for t, p in (unit.source for unit in units)}
    lists = job.spark().sparkContext.parallelize([[unit] for unit in units], len(units))
    limits = record_limits(admin, moves, WRITTEN_WITHIN_MS)
    task = Rehearse(job.connection, ranges, limits)
    found = job.run_beside(lambda: lists.mapPartitions(task).collect(), lambda: job.put("running"))
    snapshot = Snapshot(tuple(found or ()), 0, time.monotonic() - began)
    say(f"{job.key} done: {snapshot.records:,} records ({snapshot.bytes / 1e6:,.1f} MB) would be moved")
    job.put("done", snapshot)
