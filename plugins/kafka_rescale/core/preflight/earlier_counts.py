"""By which smaller counts was placed what lies elsewhere now: how has a topic been grown?"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain, combinations

from kafka_rescale.core.formats.samples import Sample

Homes = Mapping[int, Sequence[int]]
"""By partition count, where each sample belongs with so many; the largest count is the present one."""

FEWEST_KEYS = 8
"""By two guessed counts, fewer keys would lie anywhere."""


def earlier_counts(
    samples: Sequence[Sample], homes: Homes, known: Collection[int] = (), *, most_guessed: int = 1
) -> tuple[int, ...]:
    """Return the counts by which all samples lie that are not where the present count puts them.

    Nothing but the records tells of a growth that nobody has noted. One count that explains all of them can hardly
    be a coincidence. Two could be one: there have to be some keys, and in every partition what was placed by the
    smaller count has to come before the rest, as a growth is for good.

    :param known: counts that the topic is known to have had.
    :param most_guessed: how many others may be taken for granted if they explain what is left.
    :returns: ascending, the largest that will do; empty if nothing lies elsewhere, or nothing explains it.
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
    """Whether the samples of every partition can have been written while the count grew.

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
