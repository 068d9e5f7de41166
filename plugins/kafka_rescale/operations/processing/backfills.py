"""Checks of a backfill: all records that its interval needs must exist, and its processors are fixed."""

from __future__ import annotations

from kafka_rescale.core.application.pipeline import PipelineApplication
from kafka_rescale.core.errors import Refused
from kafka_rescale.core.processing.backfill import Backfill, require_history
from kafka_rescale.core.snapshots.exactness import Coverage, coverage_of
from kafka_rescale.core.topology.topology import Topology
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.processing.replay_offsets import replay_offsets
from kafka_rescale.kafka.reading.log_batches import log_batches


def require_live(application: PipelineApplication, processors: int, backfill: Backfill | None) -> None:
    """Refuse a change of processors for a backfill.

    :raises Refused: the run is a backfill.
    """
    if backfill is not None:
        raise Refused(
            f"backfill {application.application_id}",
            found=f"{processors} processors that are asked for",
            expected="no `expand_processors`: a backfill has as many processors as its inputs began with",
            remedy="Leave `expand_processors` out, or leave the interval out.",
        )


def require_interval(connection: KafkaConnection, topology: Topology, backfill: Backfill) -> None:
    """Refuse an interval if some of its records are gone.

    Only compacted topics are read batch by batch. They are read from their beginning, because a table depends on
    all of its records.

    :raises Refused: records were deleted or compacted away.
    """
    admin = ClusterAdmin(connection)
    described, begins = admin.describe_topics(topology.inputs), admin.begin_offsets(topology.inputs)
    ends, replayed = admin.end_offsets(topology.inputs), replay_offsets(admin, topology.inputs, backfill)
    for topic, by_partition in replayed.items():
        is_compacted = "compact" in described[topic].cleanup_policy
        for partition, start in by_partition.items():
            begin, end = begins[topic][partition], ends[topic][partition]
            coverage = Coverage(start, end, begin)
            if is_compacted:
                coverage = coverage_of(log_batches(connection, topic, partition, start, end), start, end, begin)
            require_history(f"{topic}-{partition}", backfill, coverage, is_compacted=is_compacted)
