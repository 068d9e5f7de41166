"""Which keys a topic has got since some offsets, as far as the log goes when it is read."""

from __future__ import annotations

from collections.abc import Mapping, Set

from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.reading.range_reader import AS_FAR_AS_IT_GOES, read_ranges


def later_keys(connection: KafkaConnection, topic: str, since: Mapping[int, int], keys: Set[bytes]) -> set[bytes]:
    """Return those of some keys that have a committed record at or behind some offsets.

    Every partition is read until the broker says that there is no more. Up to fixed ends would not do: compaction
    may remove a key's record below such an end because of one behind it, before it is read. The last record of a
    key can't be removed, and this passes it.

    :param since: by partition.
    :raises ClusterOutage: the brokers don't answer.
    """
    if not keys:
        return set()
    ranges = {p: (offset, AS_FAR_AS_IT_GOES) for p, offset in since.items()}
    # If retention is faster, everything that is left was written later still.
    records = read_ranges(connection, topic, ranges, may_be_deleted=True)
    return {key for record in records if isinstance(key := record.key(), bytes) and key in keys}
