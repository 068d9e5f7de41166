"""Preflight: are the sampled keys what the application file says, and where its partitioners would put them?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kafka_rescale.core.application import InputPolicy
from kafka_rescale.core.changelog_formats import FORMATS, ChangelogFormat, format_of
from kafka_rescale.core.errors import Finding, UnsafeState
from kafka_rescale.core.partitioners import Partitioner, known_partitioners, partitioner_named
from kafka_rescale.core.situation import Sample, Situation, counted

LATEST_PLAUSIBLE_MS = 1 << 43
"""The year 2248: larger numbers where a timestamp should be are parts of something else."""


@dataclass(frozen=True)
class _Placed:
    """A sampled topic and how its keys ought to decide the partition.

    :param processed: committed offset per partition, for inputs.
    :param earlier: of an input that is repartitioned after it was grown by hand, the count before: records may lie
        as with either count.
    """

    topic: str
    partitions: int
    partitioner: Partitioner
    samples: Sequence[Sample]
    partitioning_key: Callable[[bytes], bytes]
    processed: Mapping[tuple[str, int], int] = field(default_factory=dict)
    earlier: int = 0

    def wrong(self, partitioner: Partitioner, partitions: int) -> list[tuple[Sample, int]]:
        """Return the samples that are elsewhere, each with the partition where it belongs."""
        keyed = [s for s in self.samples if s.key is not None]
        keys = [self.partitioning_key(s.key or b"") for s in keyed]
        homes = partitioner.partition_batch(keys, partitions)
        before = partitioner.partition_batch(keys, self.earlier) if self.earlier else homes
        return [
            (s, home) for s, home, old in zip(keyed, homes, before, strict=True) if s.partition not in {home, old}
        ]

    def earlier_count(self) -> int | None:
        """Return the largest smaller count that explains every misplaced sample: the topic was grown since."""
        misplaced = replace(self, samples=[s for s, _ in self.wrong(self.partitioner, self.partitions)])
        counts = range(self.partitions - 1, self.partitioner.fewest_partitions - 1, -1)
        return next((n for n in counts if misplaced.fits(self.partitioner, n)), None)

    def fits(self, partitioner: Partitioner, partitions: int) -> bool:
        """Whether every sample is where a partitioner puts it."""
        try:
            return not self.wrong(partitioner, partitions)
        except UnsafeState:
            return False  # a user's function that knows nothing of so few partitions

    def in_two_partitions(self) -> tuple[Sample, Sample] | None:
        """Return two samples of one key in different partitions, if there are any."""
        first: dict[bytes, Sample] = {}
        for sample in self.samples:
            if sample.key is not None:
                other = first.setdefault(self.partitioning_key(sample.key), sample)
                if other.partition != sample.partition:
                    return other, sample
        return None

    def is_history(self) -> bool:
        """Whether what is misplaced was placed before the topic was grown, and has been processed.

        An input that an expansion has grown looks like this for as long as its retention lasts.
        """
        misplaced = [s for s, _ in self.wrong(self.partitioner, self.partitions)]
        done = all(s.offset < self.processed.get((s.topic, s.partition), 0) for s in misplaced)
        return bool(misplaced) and done and self.earlier_count() is not None


def null_keys(situation: Situation) -> Iterator[Finding]:
    """Yield keyed inputs that have records without a key."""
    for declared in situation.keyed_inputs():
        topic = situation.full_name(declared.topic)
        without = [s for s in situation.samples if s.topic == topic and s.key is None]
        # The bridge spreads them over all partitions, as their producers do.
        if without and declared.policy is not InputPolicy.REPARTITIONED:
            yield Finding(
                f"input topic {topic!r}",
                f"no key in {counted(len(without), 'sampled record')}, first at {_at(without[0])}",
                f"keys in an input with policy {declared.policy}: they decide which partition a record belongs to",
                "Declare `policy: unkeyed` if the program re-keys it before any state; else mend the producer.",
            )


def store_key_shapes(situation: Situation) -> Iterator[Finding]:
    """Yield changelogs whose sampled keys can't be of the declared store type."""
    for store in situation.application.stores:
        topic, declared = situation.changelog(store.name), format_of(store.type)
        misfits = [s for s in _samples(situation, topic) if not fits(declared, s.key or b"")]
        if misfits:
            others = _types_that_fit(_samples(situation, topic), declared)
            yield Finding(
                f"topic {topic!r}",
                f"key {shown(misfits[0].key)} at {_at(misfits[0])}: {_why(declared, misfits[0].key or b'')}",
                f"keys of the {store.type} store {store.name}",
                f"The sampled keys fit {' or '.join(others)}: declare the store's real type."
                if others
                else "Declare the store's real type.",
            )


def fits(declared: ChangelogFormat, key: bytes) -> bool:
    """Return whether a changelog key can be of a format: long enough, with plausible times where it has times."""
    if len(key) < declared.suffix_bytes:
        return False
    times = _times(declared, key)
    return all(0 <= t < LATEST_PLAUSIBLE_MS for t in times) and times == sorted(times)


def _times(declared: ChangelogFormat, key: bytes) -> list[int]:
    """``WindowKeySchema`` ends in start and sequence number, ``SessionKeySchema`` in end and start."""
    if declared.suffix_bytes == 12:
        return [int.from_bytes(key[-12:-4], "big", signed=True)]
    if declared.suffix_bytes == 16:
        return [int.from_bytes(key[-8:], "big", signed=True), int.from_bytes(key[-16:-8], "big", signed=True)]
    return []


def _why(declared: ChangelogFormat, key: bytes) -> str:
    if len(key) < declared.suffix_bytes:
        return f"{len(key)} bytes, too short for the {declared.suffix_bytes} that follow the key"
    return f"times of {', '.join(map(str, _times(declared, key)))} ms"


def _types_that_fit(samples: Sequence[Sample], declared: ChangelogFormat) -> list[str]:
    others = [f for f in FORMATS.values() if f.suffix_bytes not in {0, declared.suffix_bytes}]
    fitting = [f.store_type for f in others if all(fits(f, s.key or b"") for s in samples)]
    return fitting or ["timestamped-key-value"]


def misplaced_keys(situation: Situation) -> Iterator[Finding]:
    """Yield topics with sampled records that are not where the declared partitioner puts their keys."""
    for placed in _placed_topics(situation):
        try:
            wrong = placed.wrong(placed.partitioner, placed.partitions)
        except UnsafeState as error:
            yield Finding(f"topic {placed.topic!r}, {error.what}", error.found, error.expected, error.remedy)
            continue
        if wrong and not placed.is_history():
            sample, home = wrong[0]
            yield Finding(
                f"topic {placed.topic!r}",
                f"{len(wrong)} of {len(placed.samples)} sampled records elsewhere, first at {_at(sample)}: key "
                f"{shown(sample.key)} belongs to partition {home} of {placed.partitions}",
                f"every key where {placed.partitioner.name} puts it",
                _remedy(placed),
            )


def history_messages(situation: Situation) -> Iterator[str]:
    """Yield inputs that hold processed records of an earlier layout."""
    for placed in _placed_topics(situation):
        # Only called once nothing was found: every partitioner has placed every sample.
        if placed.is_history():
            earlier = placed.earlier_count()
            yield f"{placed.topic}: what lies as with {earlier} partitions is processed, as far as sampled."


def _placed_topics(situation: Situation) -> Iterator[_Placed]:
    application = situation.application
    for declared in situation.keyed_inputs():
        partitioner = partitioner_named(declared.partitioner, declared.topic)
        for placed in _placed(situation, situation.full_name(declared.topic), partitioner):
            earlier = situation.grown.get(declared.topic, 0)
            repartitioned = declared.policy is InputPolicy.REPARTITIONED
            yield replace(placed, processed=situation.cluster.committed, earlier=earlier if repartitioned else 0)
    for topic in sorted(situation.topology.repartitions):
        partitioner = partitioner_named(application.repartition_partitioner(topic), topic)
        yield from _placed(situation, situation.full_name(topic), partitioner)
    for store in application.stores:
        form = format_of(store.type)
        samples = _samples(situation, situation.changelog(store.name))
        if all(fits(form, s.key or b"") for s in samples):
            read = situation.topology.source_of(store.name)
            partitioner = partitioner_named(store.partitioner, read)
            yield from _placed(situation, situation.changelog(store.name), partitioner, form.partitioning_key)


def _placed(
    situation: Situation, topic: str, partitioner: Partitioner, key: Callable[[bytes], bytes] = bytes
) -> Iterator[_Placed]:
    if topic in situation.cluster.topics:
        count = situation.cluster.topics[topic].partitions
        yield _Placed(topic, count, partitioner, _samples(situation, topic), key)


def _remedy(placed: _Placed) -> str:
    for other in known_partitioners(placed.partitions):
        if placed.fits(other, placed.partitions):
            hint = ", the default of librdkafka producers" if other.name == "crc32" else ""
            return f"All of them fit {other.name}{hint}: declare `partitioner: {other.name}`."
    if (earlier := placed.earlier_count()) is not None:
        return (
            f"These fit {placed.partitioner.name} with {earlier} partitions: the topic was grown with records in "
            "it, and one key may be in two partitions. They have to be processed, or moved, first."
        )
    if (twice := placed.in_two_partitions()) is not None:
        return (
            f"Key {shown(twice[0].key)} is in partitions {twice[0].partition} and {twice[1].partition}: a "
            "partitioner that sends one record to several partitions (multicast) can't be followed. "
            "Send it to one."
        )
    return "No known partitioner fits: the producer sets partitions itself, or the state has another key."


def _samples(situation: Situation, topic: str) -> list[Sample]:
    return [s for s in situation.samples if s.topic == topic]


def _at(sample: Sample) -> str:
    return f"partition {sample.partition}, offset {sample.offset}"


def shown(key: bytes | None) -> str:
    """Return a key for a message: as text if it is printable, else in hex, and never at length."""
    if key is None:
        return "null"
    text = key[:40].decode("utf-8", errors="replace")
    rest = "…" if len(key) > 40 else ""
    return f"{text!r}{rest}" if text.isprintable() and "\ufffd" not in text else f"0x{key[:40].hex()}{rest}"
