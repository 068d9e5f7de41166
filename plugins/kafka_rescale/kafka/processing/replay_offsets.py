"""Where the replay of a backfill begins in its inputs."""

from __future__ import annotations

from collections.abc import Collection

from kafka_rescale.core.control.journal import PartitionOffsets
from kafka_rescale.core.processing.backfill import Backfill, first_needed
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin


def replay_offsets(admin: ClusterAdmin, inputs: Collection[str], backfill: Backfill) -> PartitionOffsets:
    """Return, for every partition, the first offset that the backfill needs.

    The offset is below the log start if records from there on may have been deleted.

    :raises Outage: the brokers don't answer.
    """
    described, begins = admin.describe_topics(inputs), admin.begin_offsets(inputs)
    since = None if backfill.replayed_from_ms is None else admin.offsets_at(inputs, backfill.replayed_from_ms)
    return {
        topic: {
            partition: first_needed(
                begin,
                None if since is None else since[topic][partition],
                is_compacted="compact" in described[topic].cleanup_policy,
            )
            for partition, begin in by_partition.items()
        }
        for topic, by_partition in begins.items()
    }
