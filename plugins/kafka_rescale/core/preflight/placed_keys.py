"""The sampled keys of a topic, compared with where a partitioner would put them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from kafka_rescale.core.errors import Finding, UnsafeState
from kafka_rescale.core.formats.changelog_formats import FORMATS, ChangelogFormat
from kafka_rescale.core.formats.samples import Sample
from kafka_rescale.core.partitioning.partitioners import Partitioner, earlier_homes, is_spread
from kafka_rescale.core.partitioning.user_function import NotThereYet
from kafka_rescale.core.preflight.earlier_counts import earlier_counts


class MayHaveGrown(Finding):
    """A key belongs to a partition that its topic did not have when it was described. It may have grown since."""


def unplaceable(where: str, error: UnsafeState) -> Finding:
    """Return the finding that a partitioner can't place a sampled key."""
    kind = MayHaveGrown if isinstance(error, NotThereYet) else Finding
    return kind.of(error.complaint.about(f"{where}, {error.what}"))


@dataclass(frozen=True)
class Placed:
    """A sampled topic and how its keys ought to decide the partition.

    :param form: how the keys are written; topics other than changelogs have whole keys.
    :param processed: committed offset per partition, for inputs.
    :param remembered: counts that an input had before expansions grew it; records placed by them are processed.
    :param earlier: further counts that may have placed records. For a ``repartitioned`` input that was grown by
        hand, the count before; for a topic that was grown in place, the counts of the records left behind.
    """

    topic: str
    partitions: int
    partitioner: Partitioner
    samples: Sequence[Sample]
    form: ChangelogFormat = FORMATS["key-value"]
    is_changelog: bool = False
    is_input: bool = False
    processed: Mapping[tuple[str, int], int] = field(default_factory=dict)
    earlier: tuple[int, ...] = ()
    remembered: tuple[int, ...] = ()

    def wrong(self, partitioner: Partitioner, partitions: int) -> list[tuple[Sample, int]]:
        """Return the samples in a wrong partition, each with the partition where it belongs."""
        keyed = self._keyed(partitioner)
        keys = self.form.partitioning_keys([s.key or b"" for s in keyed])
        homes = partitioner.partition_batch(keys, partitions)
        before = [earlier_homes(partitioner, keys, count) for count in self.earlier]
        return [
            (s, home)
            for s, home, *old in zip(keyed, homes, *before, strict=True)
            if s.partition not in {home, *old}
        ]

    def _keyed(self, partitioner: Partitioner) -> list[Sample]:
        """Return the samples whose keys decide the partition. State belongs to one, whatever its key is."""
        keyed = [s for s in self.samples if s.key is not None]
        return [s for s in keyed if not is_spread(partitioner, s.key or b"")] if self.is_input else keyed

    def has_spread_state(self) -> bool:
        """Whether all misplaced records are state of empty keys that librdkafka's producers have spread."""
        misplaced = [s.key or b"" for s, _ in self.wrong(self.partitioner, self.partitions)]
        return all(is_spread(self.partitioner, key) for key in self.form.partitioning_keys(misplaced))

    def chosen(self) -> list[Sample]:
        """Return the samples of an input that their producer has put into another partition than the key's.

        There are such samples only if most samples are where the partitioner puts them. Otherwise it is rather the
        partitioner that is declared wrongly.
        """
        elsewhere = [s for s, _ in self.wrong(self.partitioner, self.partitions)] if self.is_input else []
        return elsewhere if 2 * len(elsewhere) < len(self.samples) else []

    def earlier_counts(self) -> tuple[int, ...]:
        """Return the smaller counts that explain every misplaced sample: the topic was grown since."""
        keyed = self._keyed(self.partitioner)
        keys = self.form.partitioning_keys([s.key or b"" for s in keyed])
        homes = {self.partitions: self.partitioner.partition_batch(keys, self.partitions)}
        for count in range(self.partitioner.fewest_partitions, self.partitions):
            with suppress(UnsafeState):  # a user's function that knows nothing of so few partitions
                homes[count] = self.partitioner.partition_batch(keys, count)
        known = {*self.remembered, *self.earlier}
        return earlier_counts(keyed, homes, known, most_guessed=2 if self.processed else 1)

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
                other = first.setdefault(self.form.partitioning_key(sample.key), sample)
                if other.partition != sample.partition:
                    return other, sample
        return None

    def is_history(self) -> bool:
        """Whether every misplaced record was written before the topic was grown, and has been processed.

        An input that an expansion has grown looks like this for as long as its retention lasts.
        """
        misplaced = [s for s, _ in self.wrong(self.partitioner, self.partitions)]
        done = all(s.offset < self.processed.get((s.topic, s.partition), 0) for s in misplaced)
        return bool(misplaced) and done and bool(self.earlier_counts())
