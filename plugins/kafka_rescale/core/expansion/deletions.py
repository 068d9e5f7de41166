"""How long copies may take before they could lack deletions, and which setting gives them more time.

A copy that has not reached an end of its source for longer than ``delete.retention.ms`` begins anew: compaction
may have removed deletions that it has not read. So copies that take longer never end.

A larger value protects only copies that begin after it. In its first pass over a deletion, the log cleaner writes
into the batch when the deletion may go: the time of that pass plus the value at that time (KIP-534, Kafka's
``MemoryRecords.filterTo``). No later value changes that. What the cleaner had passed before a copy began does not
matter to the copy, because this pass has removed the older records of the key as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

from kafka_rescale.core.cluster import TopicDescription

NEAR = 0.5
"""The share of the time that copies may be expected to take before a person is told. An expected time may be
wrong, and a stage's copies grow older while later stages are copied."""

BROKERS_DEFAULT_MS = 24 * 3_600_000

HOUR_MS = 3_600_000


def kept_deletions_ms(topic: TopicDescription) -> int | None:
    """Return how long a topic keeps deletions behind the compaction that has first seen them; None for ever."""
    if "compact" not in topic.cleanup_policy:
        return None
    return int(topic.configs.get("delete.retention.ms", BROKERS_DEFAULT_MS))


def least_kept(topics: Mapping[str, TopicDescription]) -> tuple[str, int] | None:
    """Return the topic that keeps deletions for the shortest time, with this time in ms; None if all keep them."""
    kept = {name: ms for name, topic in topics.items() if (ms := kept_deletions_ms(topic)) is not None}
    return min(kept.items(), key=lambda each: (each[1], each[0]), default=None)


def more_time(value: str) -> str:
    """Return what gives copies that have begun more time, as the end of a sentence.

    :param value: what is done with ``delete.retention.ms``, such as ``raise delete.retention.ms of t``.
    """
    return (
        f"give Spark more cores or raise the limit of the pace; or roll back, {value}, delete the new "
        "generation's changelogs, and trigger again: a larger value protects only copies that begin after it"
    )


def advised_ms(seconds: float) -> int:
    """Return a value of ``delete.retention.ms`` with which copies have twice the time: whole hours, in ms.

    :param seconds: how long the copies are expected to take.
    """
    return ceil(2 * seconds * 1000 / HOUR_MS) * HOUR_MS
