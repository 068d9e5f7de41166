"""Preflight of topics with one partition: every type and partitioner puts every key into it.

So no sample contradicts a wrong declaration. After a wrong declaration, the copy would put keys where the next
generation doesn't look for them.
"""

from __future__ import annotations

from collections.abc import Iterator

from kafka_rescale.core.errors import Finding
from kafka_rescale.core.formats.samples import shown
from kafka_rescale.core.preflight.situation import Situation

_PLAIN = {"key-value", "timestamped-key-value"}
_ENOUGH = 20
_TIMES_MS = range(946_684_800_000, 4_102_444_800_000)
"""From 2000 to 2100."""


def unchecked_declarations(situation: Situation) -> Iterator[str]:
    """Yield topics with one partition that will have more: their declarations could not be checked."""
    keyed = [i.topic for i in situation.keyed_inputs()] + sorted(situation.topology.repartitions)
    names = [*map(situation.full_name, keyed), *map(situation.changelog, situation.topology.stores)]
    alone = [n for n in names if n in situation.cluster.topics and situation.cluster.topics[n].partitions == 1]
    if alone and situation.target > 1:
        yield (
            f"{', '.join(alone)}: type and partitioner can't be checked against one partition. Compare them with "
            "the program: a wrong declaration would only show when keys are missing."
        )


def windowed_keys(situation: Situation) -> Iterator[Finding]:
    """Yield plain stores of one partition whose keys seem to end in the time of a window.

    In a topic with more partitions, the places of the keys tell it.
    """
    for store in situation.application.stores:
        topic = situation.cluster.topics.get(situation.changelog(store.name))
        if topic is None or topic.partitions != 1 or store.type not in _PLAIN:
            continue
        keys = {s.key for s in situation.samples_of(topic.name) if s.key is not None}
        if _end_in_shared_times(keys):
            yield Finding(
                f"topic {topic.name!r}",
                f"keys that all end in a time in ms, several in the same time, such as {shown(min(keys))}",
                f"whole keys in the {store.type} store {store.name}: one partition can't tell which part decides",
                "If these are the keys of windows or sessions, declare `type: processor` with `partitioning_key: "
                "drop-last-8`, or `drop-last-16` for sessions. If the whole key decides the partition, declare "
                "`type: processor` with `partitioning_key: whole`.",
            )


def _end_in_shared_times(keys: set[bytes]) -> bool:
    if len(keys) < _ENOUGH or any(len(k) <= 8 or int.from_bytes(k[-8:], "big") not in _TIMES_MS for k in keys):
        return False
    return len({k[-8:] for k in keys}) < len(keys)
