"""Which smaller counts have placed the records that are not where they belong now? They tell how a topic grew."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain, combinations

from kafka_rescale.core.formats.samples import Sample

Homes = Mapping[int, Sequence[int]]
"""By partition count, the partition of each sample; the largest count is the present one."""

FEWEST_KEYS = 8
"""With fewer keys than this, two guessed counts could explain any places."""


def earlier_counts(
    samples: Sequence[Sample], homes: Homes, known: Collection[int] = (), *, most_guessed: int = 1
) -> tuple[int, ...]:
    """Return the counts that have placed all samples that are not where the present count puts them.

    If a growth was not recorded, only the records tell it. A single count that explains all samples can hardly be
    a coincidence. Two counts could be a coincidence. So there have to be enough keys, and in every partition the
    records placed by the smaller count have to come first: a topic never shrinks again.

    :param known: counts that the topic is known to have had.
    :param most_guessed: how many further counts may be guessed to explain the remaining samples.
    :returns: the largest counts that explain the samples, ascending; empty if every sample is where it belongs, or
        if no counts explain the samples.
    """
    fitting = {
        n: _bits(s.partition == home for s, home in zip(samples, of, strict=True)) for n, of in homes.items()
    }
    present = max(homes)
    misplaced = ~fitting[present] & ((1 << len(samples)) - 1)
    remembered = [n for n in known if fitting.get(n, 0) & misplaced and n != present]
    left = misplaced
    for n in remembered:
        left &= ~fitting[n]
    candidates = sorted((n for n, bits in fitting.items() if n != present and bits & left), reverse=True)
    most = most_guessed if len({s.key for s in samples}) >= FEWEST_KEYS else min(most_guessed, 1)
    for guessed in chain.from_iterable(combinations(candidates, number) for number in range(most + 1)):
        unexplained = left
        for n in guessed:
            unexplained &= ~fitting[n]
        counts = sorted({*remembered, *guessed})
        if not unexplained and (len(guessed) < 2 or _in_order(samples, homes, [*counts, present])):
            return tuple(counts)
    return ()


def _bits(answers: Iterable[bool]) -> int:
    return int("".join("1" if answer else "0" for answer in answers)[::-1] or "0", 2)


def _in_order(samples: Sequence[Sample], homes: Homes, counts: Sequence[int]) -> bool:
    """Whether the samples of every partition are in an order in which a growing count can have placed them.

    :param counts: ascending.
    """
    reached: dict[int, int] = {}
    for index in sorted(range(len(samples)), key=lambda i: samples[i].offset):
        partition = samples[index].partition
        later = range(reached.get(partition, 0), len(counts))
        step = next((i for i in later if homes[counts[i]][index] == partition), None)
        if step is None:
            return False
        reached[partition] = step
    return True
