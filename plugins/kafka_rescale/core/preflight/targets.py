"""Preflight: can green's topics have their names, and would they take every record unchanged?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from kafka_rescale.core.cluster import TopicDescription
from kafka_rescale.core.control.keys import LARGEST_RECORD_BYTES
from kafka_rescale.core.errors import Finding
from kafka_rescale.core.formats.record_limits import AFTER, BEFORE, EITHER, LARGEST, UNLIMITED, RecordLimits
from kafka_rescale.core.formats.samples import Sample, at
from kafka_rescale.core.plan.plan import Move
from kafka_rescale.core.plan.raised_limits import raised_until
from kafka_rescale.core.preflight.situation import Situation
from kafka_rescale.core.topology.topic_names import LONGEST_NAME, too_long
from kafka_rescale.core.values import size
from kafka_rescale.core.verify.proof import needs_proof

TIMESTAMPS = "message.timestamp.type"
BY_BROKERS, BY_PRODUCERS = "LogAppendTime", "CreateTime"

_LIMITS = (LARGEST, BEFORE, AFTER, EITHER)

MOST_PARTITIONS = 80_000
"""A report has some 113 bytes per partition, and a control record at most 10 MiB."""

PROVEN_BLUE_BYTES, PROVEN_GREEN_BYTES = 60, 185
"""What the record of a proof has per partition of a changelog: of blue positions, of green ends and contents."""


def kept_times(situation: Situation) -> Iterator[Finding]:
    """Yield internal topics whose copies would get the times of the copying instead of the records' own.

    It makes no difference whether the topic's own config or the brokers' default demands that: the topic that is
    created beside it gets the same setting.
    """
    for store in situation.topology.stores:
        yield from _by_brokers(
            situation,
            situation.changelog(store),
            "the timestamps of the entries are part of the state",
            "",
        )
    for name in sorted(situation.topology.repartitions):
        yield from _by_brokers(
            situation,
            situation.full_name(name),
            "the records in flight are carried with their timestamps, by which windows and joins go",
            "; Kafka Streams does so for new topics since 2.5 (KAFKA-6614)",
        )


def countable_partitions(situation: Situation) -> Iterator[Finding]:
    """Yield one finding if there are more partitions than a report of the copies, or the proof, can hold."""
    copied = sum(move.source_partitions for move in situation.plan.moves)
    if copied > MOST_PARTITIONS:
        yield Finding(
            f"expansion of {situation.blue}",
            f"{copied:,} partitions to copy",
            f"at most {MOST_PARTITIONS:,}: catch_up reports on each of them in one control record",
            "This version can't expand such an application: see docs/scale.md.",
        )
        return
    proven = situation.plan.changelogs if needs_proof(situation.plan) else ()
    blue, green = sum(m.source_partitions for m in proven), sum(m.target_partitions for m in proven)
    needed = blue * PROVEN_BLUE_BYTES + green * PROVEN_GREEN_BYTES
    if needed > LARGEST_RECORD_BYTES:
        yield Finding(
            f"expansion of {situation.blue}",
            f"{blue:,} partitions of changelogs that become {green:,}: some {size(needed)} in the proof's record",
            f"at most {size(LARGEST_RECORD_BYTES)}: the proof names each of them in one control record",
            "Expand to fewer partitions: see docs/scale.md.",
        )


def long_names(situation: Situation) -> Iterator[Finding]:
    """Yield names of topics to be created that have more characters than Kafka takes.

    Names of groups and transactional ids need no check: they may be longer than any topic name.
    """
    plan, blue = situation.plan, situation.blue
    internal = {} if situation.is_in_place else {m.target: m.source for m in plan.moves}
    for name in too_long(internal):
        yield Finding(
            f"topic {name!r}",
            f"a name of {len(name)} characters, which is to follow {internal[name]}",
            f"at most {LONGEST_NAME}, which Kafka takes",
            f"Give the store or the repartition a shorter name in the program that is started as {plan.green}, "
            f"and declare it in `green_names:`. A shorter application id or `internal_topic_prefix:` would have "
            f"to be that of {blue}, too: it comes with an application that begins anew.",
        )
    followed = {successor: topic for topic, successor in situation.successors().items()}
    for name in too_long(followed):
        yield Finding(
            f"topic {name!r}",
            f"a name of {len(name)} characters, which is to follow {situation.full_name(followed[name])}",
            f"at most {LONGEST_NAME}, which Kafka takes",
            f"Give a shorter one as `successor:` of input {followed[name]}, with {{partitions}} in it.",
        )


def _by_brokers(situation: Situation, name: str, why: str, besides: str) -> Iterator[Finding]:
    topic = situation.cluster.topics.get(name)
    if topic is not None and topic.configs.get(TIMESTAMPS) == BY_BROKERS:
        yield Finding(
            f"topic {topic.name!r}",
            f"{TIMESTAMPS} {BY_BROKERS}",
            f"{BY_PRODUCERS}: {why}",
            f"Set {TIMESTAMPS}={BY_PRODUCERS} on it{besides}.",
        )


def absent_times(situation: Situation) -> Iterator[Finding]:
    """Yield topics with sampled records without a time, or with time 0: the client library can't write these.

    In place, only records that move matter, and the rehearsal checks them. A bridge copies what producers write
    from the cutover on. So only the newer half of an input's samples counts.
    """
    if situation.is_in_place:
        return
    names = [situation.changelog(store) for store in situation.topology.stores]
    names += [situation.full_name(name) for name in sorted(situation.topology.repartitions)]
    for name in names:
        yield from _without_time(
            name,
            situation.samples_of(name),
            "Delete or update these entries in the application, so that they get real timestamps. When "
            "compaction has removed the old records, trigger again.",
        )
    for topic in map(situation.full_name, situation.successors()):
        yield from _without_time(
            topic,
            list(_newer(situation.samples_of(topic))),
            "After the promotion, the bridge would stop at the first such record. Let every producer write real "
            "timestamps. When newer records lie above the old ones, or the old ones are deleted, trigger again.",
        )


def _without_time(topic: str, samples: Sequence[Sample], remedy: str) -> Iterator[Finding]:
    if without := [s for s in samples if s.timestamp_ms <= 0]:
        yield Finding(
            f"topic {topic!r}",
            f"{len(without)} of {len(samples)} sampled records with timestamp 0 or none, "
            f"first at {at(without[0])}",
            "timestamps of at least 1 ms: the client library would write the present time instead",
            remedy,
        )


def _newer(samples: Sequence[Sample]) -> Iterator[Sample]:
    """Yield the newer half of each partition's samples: in a long log, these are the newest records."""
    for _, each in groupby(samples, key=lambda s: s.partition):
        of = list(each)
        yield from of[len(of) // 2 :]


def refused_records(situation: Situation) -> Iterator[Finding]:
    """Yield topics with sampled records that the brokers would refuse to take again, one finding per topic.

    If copies are compressed, the size of a record is not checked: it may fit once it is compressed. If the brokers
    refuse it, the copy names it.
    """
    for move in (m for m in (*situation.plan.moves, *situation.plan.bridges) if m.grows or not m.is_in_place):
        source, target = (situation.cluster.topics.get(name) for name in (move.source, move.target))
        if source is None:
            continue
        # A topic that is created gets all configs of its source; an existing one those that are set on the source.
        written = replace(target, configs={**target.configs, **source.overrides}) if target else source
        limits, until = RecordLimits.of(written, situation.now_ms, 0), raised_until(move, is_made=bool(target))
        is_compressed = (situation.compression or move.compression or "none") != "none"
        found = [
            (sample, finding)
            for sample in situation.samples_of(move.source)
            for size in [0 if is_compressed else sample.batch_bytes]
            for finding in [limits.finding("", sample.timestamp_ms, size, until)]
            if finding is not None and sample.timestamp_ms > 0
        ]
        if found:
            # The largest record: a limit that lets it through is enough for the others as well.
            sample, finding = max(found, key=lambda each: each[0].batch_bytes)
            yield replace(
                finding, what=f"topic {move.source!r} partition {sample.partition} offset {sample.offset}"
            )


def compression_messages(situation: Situation) -> Iterator[str]:
    """Yield the codecs with which copies are written, because the copies' size depends on them."""
    if declared := situation.compression:
        yield f"Copies are written with compression.type {declared} of the Kafka connection."
        return
    of_codec: dict[str, list[str]] = {}
    for move in (*situation.plan.moves, *situation.plan.bridges):
        if move.compression:
            of_codec.setdefault(move.compression, []).append(move.source)
    for codec, topics in of_codec.items():
        yield f"Compressed with {codec}, and so are their copies: {', '.join(topics)}."


def targets_as_found(situation: Situation) -> Iterator[Finding]:
    """Yield configs with which an existing topic would not take all records of its source.

    ``expand`` sets every config on it that is set on the source. If the source only has a config by the brokers'
    defaults, ``expand`` does not touch it.
    """
    plan = situation.plan
    for move in (m for m in (*plan.moves, *plan.bridges) if not m.is_in_place):
        source, target = (situation.cluster.topics.get(name) for name in (move.source, move.target))
        if source is not None and target is not None:
            yield from _differences(move, source, target)


def _differences(move: Move, source: TopicDescription, target: TopicDescription) -> Iterator[Finding]:
    afterwards = {**target.configs, **source.overrides}
    if afterwards.get(TIMESTAMPS) == BY_BROKERS != source.configs.get(TIMESTAMPS):
        yield _difference(move, TIMESTAMPS, BY_BROKERS, f"{BY_PRODUCERS}: it is to keep the times", BY_PRODUCERS)
    for config in _LIMITS:
        found, wanted = (int(configs.get(config, UNLIMITED)) for configs in (afterwards, source.configs))
        if found < wanted:
            yield _difference(move, config, str(found), f"at least {wanted}, to take all records", str(wanted))
    found_policy = afterwards.get("cleanup.policy", "delete")
    if "compact" in found_policy and "compact" not in source.cleanup_policy:
        policy = ",".join(source.cleanup_policy)
        yield _difference(move, "cleanup.policy", found_policy, f"{policy}: it is to keep every record", policy)


def _difference(move: Move, config: str, found: str, expected: str, value: str) -> Finding:
    return Finding(
        f"topic {move.target!r}",
        f"{config} {found} on the topic that is there already",
        f"{expected} of {move.source}",
        f"Set {config}={value} on it, or delete it if it is not needed.",
    )
