"""Which keys a topic has got since some offsets, as far as the log goes when it is read."""

from __future__ import annotations

from collections.abc import Mapping, Set
from contextlib import closing

from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.reading.range_reader import AS_FAR_AS_IT_GOES, read_ranges


def later_keys(connection: KafkaConnection, topic: str, since: Mapping[int, int], keys: Set[bytes]) -> set[bytes]:
    """Return those of some keys that have a committed record at or behind some offsets.

    Every partition is read until all keys are found, or the broker says that there is no more. Reading up to fixed
    ends would not do: if a key has a record below such an end and another behind it, compaction may remove the
    first before it is read. But compaction can't remove the last record of a key, and this reads past it.

    :param since: the offsets, by partition.
    :param keys: the keys to look for.
    :raises ClusterOutage: the brokers don't answer.
    """
    if not keys:
        return set()
    ranges = {p: (offset, AS_FAR_AS_IT_GOES) for p, offset in since.items()}
    # If retention is faster, everything that is left was written later still.
    found = set[bytes]()
    with closing(read_ranges(connection, topic, ranges, may_be_deleted=True)) as records:
        for record in records:
            if isinstance(key := record.key(), bytes) and key in keys:
                found.add(key)
                if len(found) == len(keys):
                    break
    return found
