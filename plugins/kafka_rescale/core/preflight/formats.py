"""Preflight: are the sampled records of a store such as its declared type writes?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kafka_rescale.core.application.stores import Store
from kafka_rescale.core.errors import Finding, InvalidInput
from kafka_rescale.core.formats.changelog_formats import REFUSED, Content
from kafka_rescale.core.formats.record_shapes import (
    LATEST_PLAUSIBLE_MS,
    failure,
    fits,
    likely_formats,
    proven_formats,
    types_that_fit,
    why_not,
)
from kafka_rescale.core.formats.samples import Sample, at, shown
from kafka_rescale.core.formats.subscription_wrapper import LeftTable, parse
from kafka_rescale.core.partitioning.partitioners import partitioner_named
from kafka_rescale.core.plan.foreign_key_joins import left_table, left_table_of_store, partitioner_of_topic
from kafka_rescale.core.preflight.counts import counts_after
from kafka_rescale.core.preflight.placed_keys import Placed
from kafka_rescale.core.preflight.situation import Situation
from kafka_rescale.core.topology.topology import foreign_key_kind

_GRACE_BUFFER = "-Buffer"


def store_key_shapes(situation: Situation) -> Iterator[Finding]:
    """Yield changelogs whose sampled records can't be of the declared store type."""
    for store in situation.application.logged_stores:
        topic, declared = situation.changelog(store.name), store.format
        samples = situation.samples_of(topic)
        misfits = [s for s in samples if not fits(declared, s)]
        failed = next(filter(None, (failure(declared, s.key or b"") for s in misfits)), None)
        if failed is not None:
            yield Finding.of(failed.complaint.about(f"topic {topic!r}, {failed.what}"))
        elif misfits:
            others = types_that_fit(samples, declared)
            yield Finding(
                f"topic {topic!r}",
                f"key {shown(misfits[0].key)} at {at(misfits[0])}: {_why(misfits[0], store.name, situation)}",
                f"keys of the {store.type} store {store.name}",
                f"The sampled keys fit {' or '.join(others)}: declare the store's real type.",
            )


def _why(sample: Sample, store: str, situation: Situation) -> str:
    declared = situation.application.store_named(store)
    key_says = why_not(declared.format, sample.key or b"")
    return key_says or f"a value that a {declared.type} store does not write"


def proven_contents(situation: Situation) -> Iterator[Finding]:
    """Yield changelogs whose contents show another store type than the declared one."""
    for store in situation.application.logged_stores:
        topic = situation.changelog(store.name)
        samples = situation.samples_of(topic)
        proven = _proven_types(situation, store, samples)
        if proven and store.type not in proven and all(fits(store.format, s) for s in samples):
            several = ", as the program has it" if len(proven) > 1 else ""
            yield Finding(
                f"topic {topic!r}",
                f"records that only a {' or '.join(proven)} store writes, first at {at(samples[0])}",
                f"records of the {store.type} store {store.name}",
                f"Declare {' or '.join(f'`type: {t}`' for t in proven)}{several}.",
            )


def _proven_types(situation: Situation, store: Store, samples: Sequence[Sample]) -> list[str]:
    """Return the types that the contents prove. If there are several, the places of the keys leave some of them.

    With one partition or few records, the places tell nothing, and the times in the keys do it.
    """
    proven = proven_formats(samples)
    if len(proven) > 1:
        partitioner = partitioner_named(store.partitioner, situation.topology.source_of(store.name))
        count = situation.cluster.topics[samples[0].topic].partitions
        before = situation.grown_from.get(samples[0].topic, ())
        placed = [Placed(samples[0].topic, count, partitioner, samples, f, earlier=before) for f in proven]
        in_place = [each.form for each in placed if each.fits(partitioner, count)]
        proven = likely_formats(in_place or proven, samples)
    return [f.store_type for f in proven]


def grace_buffers(situation: Situation) -> Iterator[Finding]:
    """Yield the buffers of stream-table joins with a grace period, which can't be moved."""
    reason, remedy = REFUSED["stream-table-join-buffer"]
    for store in situation.application.logged_stores:
        samples = situation.samples_of(situation.changelog(store.name))
        if store.name.endswith(_GRACE_BUFFER) and all(_is_time_first(s.key or b"") for s in samples):
            yield Finding(f"store {store.name!r}", reason, "a store whose changelog can be moved", remedy)


def _is_time_first(key: bytes) -> bool:
    """``PrefixedWindowKeySchemas.TimeFirstWindowKeySchema``: 0, time, key, sequence number."""
    time = int.from_bytes(key[1:9], "big")
    return len(key) >= 13 and key[0] == 0 and time < LATEST_PLAUSIBLE_MS


def versioned_stores(situation: Situation) -> Iterator[Finding]:
    """Yield changelogs whose ``min.compaction.lag.ms`` contradicts the declared store type."""
    for store in situation.application.logged_stores:
        topic = situation.cluster.topics.get(situation.changelog(store.name))
        if topic is None or "delete" in topic.cleanup_policy:
            continue
        lag_ms = int(topic.configs.get("min.compaction.lag.ms", "0"))
        is_versioned = store.format.has(Content.VERSIONS)
        if is_versioned and not lag_ms:
            yield Finding(
                f"topic {topic.name!r}",
                "no min.compaction.lag.ms",
                f"the history retention of the versioned store {store.name}: compaction removes its older "
                "versions",
                "Declare the store's real type; if it is versioned, set min.compaction.lag.ms to its history "
                "retention and 24 hours.",
            )
        if not is_versioned and "min.compaction.lag.ms" in topic.overrides and lag_ms:
            yield Finding(
                f"topic {topic.name!r}",
                f"min.compaction.lag.ms {lag_ms}, as Kafka Streams sets it for versioned stores",
                f"no such config for the {store.type} store {store.name}",
                "Declare `type: versioned`; that is right, too, for a store whose history you keep yourself.",
            )


def foreign_key_joins(situation: Situation) -> Iterator[Finding]:
    """Yield foreign-key joins without a clear left table, and subscriptions that name a wrong partition of it."""
    for topic in sorted(t for t in situation.topology.repartitions if foreign_key_kind(t)):
        try:
            partitioner_of_topic(situation.application, situation.topology, topic)
        except InvalidInput as error:
            yield Finding.of(error.complaint)
            return
    for name, table in _subscriptions(situation):
        if isinstance(table, InvalidInput):
            yield Finding.of(table.complaint)
        else:
            yield from _wrong_primary(situation, name, table)


def _subscriptions(situation: Situation) -> Iterator[tuple[str, LeftTable | InvalidInput]]:
    application, topology = situation.application, situation.topology
    before, after = situation.counts, counts_after(situation)
    for store in application.logged_stores:
        if store.format.has(Content.SUBSCRIPTIONS):
            name = situation.changelog(store.name)
            try:
                yield name, left_table_of_store(application, topology, store.name, before, after)
            except InvalidInput as error:
                yield name, error
    for topic in sorted(topology.repartitions):
        if foreign_key_kind(topic) == "registration":
            yield situation.full_name(topic), left_table(application, topology, topic, before, after)


def _wrong_primary(situation: Situation, topic: str, table: LeftTable) -> Iterator[Finding]:
    partitioner = partitioner_named(table.partitioner, table.key_topic)
    for sample in situation.samples_of(topic):
        found = parse(sample.value) if sample.value is not None else None
        if found is None or found.primary_partition is None:
            continue
        home = partitioner.partition(found.primary_key, table.source_partitions)
        if home != found.primary_partition:
            yield Finding(
                f"topic {topic!r}",
                f"a subscription at {at(sample)} whose primary key {shown(found.primary_key)} is said to be in "
                f"partition {found.primary_partition}",
                f"partition {home} of the left table's {table.source_partitions}, where {table.partitioner} puts "
                "it",
                "Declare the partitioner of the left table's topics. If the primary key is serialised otherwise "
                "here than in its topic, the join can't be moved.",
            )
            return
