"""Preflight: are the sampled keys as declared, and where the declared partitioners would put them?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from kafka_rescale.core.application.topics import InputPolicy
from kafka_rescale.core.errors import Finding, UnsafeState
from kafka_rescale.core.formats.changelog_formats import FORMATS
from kafka_rescale.core.formats.record_shapes import fits
from kafka_rescale.core.formats.samples import Sample, at, shown
from kafka_rescale.core.partitioning.partitioners import (
    NO_STATE_OF_EMPTY_KEYS,
    SPREADS_EMPTY_KEYS,
    Partitioner,
    is_spread,
    known_partitioners,
    partitioner_named,
)
from kafka_rescale.core.plan.foreign_key_joins import key_topic_of, partitioner_of_topic
from kafka_rescale.core.preflight.placed_keys import Placed, unplaceable
from kafka_rescale.core.preflight.situation import Situation, counted


def null_keys(situation: Situation) -> Iterator[Finding]:
    """Yield keyed inputs with records that have no key, unless the program drops these before any state."""
    for topic, policy, without in _without_key(situation, before_state=False):
        yield Finding(
            f"input topic {topic!r}",
            f"no key in {counted(len(without), 'sampled record')}, first at {at(without[0])}",
            f"keys in an input with policy {policy}: they decide which partition a record belongs to",
            "Declare `policy: unkeyed` if the program re-keys it before any state; else mend the producer.",
        )


def null_key_messages(situation: Situation) -> Iterator[str]:
    """Yield inputs with records without a key that a stateful sub-topology reads."""
    for topic, _, without in _without_key(situation, before_state=True):
        yield (
            f"{topic}: no key in {counted(len(without), 'sampled record')}, first at {at(without[0])}. Kafka "
            "Streams drops such records before its tables, aggregates and joins."
        )


def empty_key_messages(situation: Situation) -> Iterator[str]:
    """Yield inputs with records whose empty keys decide no partition."""
    for declared in situation.keyed_inputs():
        topic = situation.full_name(declared.topic)
        partitioner = partitioner_named(declared.partitioner, declared.topic)
        keyed = [s for s in situation.samples_of(topic) if s.key is not None]
        if empty := [s for s in keyed if is_spread(partitioner, s.key or b"")]:
            yield (
                f"{topic}: an empty key in {counted(len(empty), 'sampled record')}, first at {at(empty[0])}. "
                f"{SPREADS_EMPTY_KEYS}. If the program keeps state of the empty key, that state can't be copied."
            )


def _without_key(
    situation: Situation, *, before_state: bool
) -> Iterator[tuple[str, InputPolicy, Sequence[Sample]]]:
    read_with_state = {t for s in situation.stateful_subtopologies() for t in s.sources}
    for declared in situation.keyed_inputs():
        topic = situation.full_name(declared.topic)
        without = [s for s in situation.samples if s.topic == topic and s.key is None]
        # The bridge spreads records without a key over all partitions, as their producers do.
        is_bridged = declared.policy is InputPolicy.REPARTITIONED
        if without and not is_bridged and (declared.topic in read_with_state) is before_state:
            yield topic, declared.policy, without


def misplaced_keys(situation: Situation) -> Iterator[Finding]:
    """Yield topics with sampled records in other partitions than the declared partitioner puts their keys into."""
    for placed in _placed_topics(situation):
        try:
            wrong = placed.wrong(placed.partitioner, placed.partitions)
        except UnsafeState as error:
            yield unplaceable(f"topic {placed.topic!r}", error)
            continue
        if wrong and not placed.is_history():
            sample, home = wrong[0]
            yield Finding(
                f"topic {placed.topic!r}",
                f"{len(wrong)} of {len(placed.samples)} sampled records elsewhere, first at {at(sample)}: key "
                f"{shown(sample.key)} belongs to partition {home} of {placed.partitions}",
                f"every key where {placed.partitioner.name} puts it",
                _remedy(placed),
            )


def history_messages(situation: Situation) -> Iterator[str]:
    """Yield inputs that hold processed records of an earlier layout."""
    for placed in _placed_topics(situation):
        # This is called only if there are no findings. So every partitioner has placed every sample.
        if placed.is_history():
            earlier = " and ".join(map(str, placed.earlier_counts()))
            yield (
                f"{placed.topic}: its records from before the growth from {earlier} partitions are processed "
                "(sampled)."
            )


def _placed_topics(situation: Situation) -> Iterator[Placed]:
    application = situation.application
    for declared in situation.keyed_inputs():
        partitioner = partitioner_named(declared.partitioner, declared.topic)
        for placed in _placed(situation, situation.full_name(declared.topic), partitioner):
            known = situation.grown.get(declared.topic)
            carried = () if known is None or declared.policy is not InputPolicy.REPARTITIONED else (known,)
            before = situation.grown_inputs.get(placed.topic, ())
            done = situation.cluster.committed
            yield replace(placed, is_input=True, processed=done, earlier=carried, remembered=before)
    for topic in sorted(situation.topology.repartitions):
        name = partitioner_of_topic(application, situation.topology, topic)
        partitioner = partitioner_named(name, key_topic_of(situation.topology, topic))
        yield from _placed(situation, situation.full_name(topic), partitioner)
    for store in application.logged_stores:
        topic = situation.changelog(store.name)
        if all(fits(store.format, s) for s in situation.samples_of(topic)):
            partitioner = partitioner_named(store.partitioner, situation.topology.source_of(store.name))
            for placed in _placed(situation, topic, partitioner):
                yield replace(placed, form=store.format, is_changelog=True)


def _placed(situation: Situation, topic: str, partitioner: Partitioner) -> Iterator[Placed]:
    if topic in situation.cluster.topics:
        count = situation.cluster.topics[topic].partitions
        left_behind = situation.grown_from.get(topic, ())
        yield Placed(topic, count, partitioner, situation.samples_of(topic), earlier=left_behind)


def _remedy(placed: Placed) -> str:
    if placed.is_changelog and placed.has_spread_state():
        return NO_STATE_OF_EMPTY_KEYS
    for other in known_partitioners(placed.partitions):
        if placed.fits(other, placed.partitions):
            hint = ", the default of librdkafka producers" if other.name == "crc32" else ""
            return f"All of them fit {other.name}{hint}: declare `partitioner: {other.name}`."
    if earlier := placed.earlier_counts():
        return (
            f"These fit {placed.partitioner.name} with {' or '.join(map(str, earlier))} partitions: the topic was "
            "grown with records in it, and one key may be in two partitions. They have to be processed, or moved, "
            "first."
        )
    if types := _types_in_place(placed):
        return f"They are where the keys of {' or '.join(types)} stores would be: declare the store's real type."
    return _without_rule(placed)


def _without_rule(placed: Placed) -> str:
    """Return what to do about keys that no partitioner, no growth and no other store type explains."""
    if chosen := placed.chosen():
        return (
            f"The other {len(placed.samples) - len(chosen)} are where {placed.partitioner.name} puts them: a "
            "producer chooses the partition of some records itself, as with a marker for each partition. The "
            "application keeps the state of such a key where the record was sent, and `verify` would name every "
            "such record that is sent later. Let the producer leave the partition to the key, or send these "
            "records to a topic of their own."
        )
    if (twice := placed.in_two_partitions()) is not None:
        return (
            f"Key {shown(twice[0].key)} is in partitions {twice[0].partition} and {twice[1].partition}: a "
            "partitioner that sends one record to several partitions (multicast) can't be followed. "
            "Send it to one."
        )
    if placed.is_changelog:
        return (
            "No known partitioner fits. If a processor makes these keys, declare `type: processor` with "
            "`partitioning_key:` (drop-last-N, first-N or module:function), which finds the key of the record "
            "that an entry was made from; if that can't be derived from the changelog's key, the store can't be "
            "moved."
        )
    return "No known partitioner fits: the producer sets partitions itself, or the state has another key."


def _types_in_place(placed: Placed) -> list[str]:
    """Return the other store types whose keys these could be, and which would put them where they are now."""
    others = [f for f in FORMATS.values() if placed.is_changelog and f.layout != placed.form.layout]
    fitting = [f for f in others if all(fits(f, s) for s in placed.samples)]
    in_place = [f for f in fitting if replace(placed, form=f).fits(placed.partitioner, placed.partitions)]
    return [f.store_type for f in in_place]
