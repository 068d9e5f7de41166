"""Preflight of topics with one partition: every type and partitioner puts every key into it.

So no sample contradicts a wrong declaration. After a wrong declaration, the copy would put keys where the next
generation doesn't look for them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from kafka_rescale.core.application.stores import Store
from kafka_rescale.core.errors import Finding
from kafka_rescale.core.formats.avro_schemas import schema_id
from kafka_rescale.core.formats.record_shapes import LIKELY_TIMES_MS, fits
from kafka_rescale.core.formats.samples import shown
from kafka_rescale.core.preflight.counts import counts_after
from kafka_rescale.core.preflight.situation import Situation

_PLAIN = {"key-value", "timestamped-key-value"}
_ENOUGH = 20
_HASHES = ("murmur2", "crc32", "linear-hashing")
_MOST_SCHEMAS = 4
_LONG_BYTES = 8


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
    for store in situation.application.logged_stores:
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
    if len(keys) < _ENOUGH or any(
        len(k) <= 8 or int.from_bytes(k[-8:], "big") not in LIKELY_TIMES_MS for k in keys
    ):
        return False
    return len({k[-8:] for k in keys}) < len(keys)


def framed_keys(situation: Situation) -> Iterator[Finding]:
    """Yield stores of one partition whose keys name another schema of a registry than the records that they get.

    A serializer registers a schema for each topic. If the schemas differ, the same key has other bytes in the
    changelog than in the source topic, and so would have another partition.
    """
    after = counts_after(situation)
    for store in situation.application.logged_stores:
        topic = situation.cluster.topics.get(situation.changelog(store.name))
        if topic is None or topic.partitions != 1 or not _is_hashed(store):
            continue
        sources = situation.topology.own_sources(situation.topology.subtopology_of(store.name))
        if max((after[source] for source in sources), default=1) == 1:
            continue
        in_store = _schema_ids(_partitioning_keys(situation, store))
        names = [situation.full_name(source) for source in sources]
        in_sources = _schema_ids(
            [s.key for name in names for s in situation.samples_of(name) if s.key is not None]
        )
        if in_store and in_sources and in_store.isdisjoint(in_sources):
            yield Finding(
                f"topic {topic.name!r}",
                f"keys with the schema id {_listed(in_store)}, while the keys of {' and '.join(names)} have the "
                f"schema id {_listed(in_sources)}",
                "the same bytes for a key in the store and in the records: they decide the partition, so its "
                "state and its records would come to different tasks",
                "Declare `partitioner: module:function` for the store and for all that its sub-topology reads: a "
                "function of what the keys have in common, such as the bytes behind the id. Let the producers use "
                "it, too. Or use one schema for both, and build the store anew.",
            )


def _is_hashed(store: Store) -> bool:
    """Whether the bytes of a key decide its partition. A user's function may leave out the id."""
    return store.partitioner.partition(":")[0] in _HASHES


def _partitioning_keys(situation: Situation, store: Store) -> list[bytes]:
    """Return the sampled partitioning keys of a store; none if a sample is not of its type."""
    samples = situation.samples_of(situation.changelog(store.name))
    if not all(fits(store.format, s) for s in samples):
        return []
    return list(store.format.partitioning_keys([s.key for s in samples if s.key is not None]))


def _schema_ids(keys: Collection[bytes]) -> set[int]:
    """Return the ids in the frames of keys; none if some key has no frame, or if the keys are rather numbers."""
    try:
        ids = {schema_id(key) for key in keys}
    except ValueError:
        return set()
    is_long = all(len(key) == _LONG_BYTES for key in keys)
    return set() if is_long or len(ids) > _MOST_SCHEMAS else ids


def _listed(ids: Collection[int]) -> str:
    return " or ".join(map(str, sorted(ids)))
