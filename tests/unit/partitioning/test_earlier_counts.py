"""Records in other partitions were placed by smaller counts, or by something else."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from kafka_rescale.core.formats.samples import Sample
from kafka_rescale.core.partitioning.partitioners import partitioner_named
from kafka_rescale.core.preflight.earlier_counts import earlier_counts

KEYS = [f"key-{i}".encode() for i in range(24)]
MURMUR2 = partitioner_named("murmur2")


def written(*layouts: int, keys: Sequence[bytes] = KEYS, partitioner: str = "murmur2") -> list[Sample]:
    """Every key once, placed by each of the counts one after the other."""
    made: list[Sample] = []
    for count in layouts:
        for key, partition in zip(keys, partitioner_named(partitioner).partition_batch(keys, count), strict=True):
            made.append(Sample("clicks", partition, len(made), key))
    return made


def explained(
    samples: Sequence[Sample], present: int, known: Sequence[int] = (), most_guessed: int = 2
) -> tuple[int, ...]:
    keys = [s.key or b"" for s in samples]
    homes = {n: MURMUR2.partition_batch(keys, n) for n in range(1, present + 1)}
    return earlier_counts(samples, homes, known, most_guessed=most_guessed)


@pytest.mark.parametrize("layouts", [(4,), (3, 4), (2, 3, 4), (4, 8, 16), (3, 7, 12), (10, 20, 60)])
def test_a_topic_that_has_grown_once_or_twice_tells_its_counts(layouts: tuple[int, ...]) -> None:
    assert explained(written(*layouts), layouts[-1]) == layouts[:-1]


def test_one_count_is_said_where_one_explains_everything() -> None:
    assert explained(written(8), 16) == (8,)
    assert explained(written(2, 4), 4, most_guessed=1) == (2,)
    assert explained(written(2, 3, 4), 4, most_guessed=1) == ()


def test_a_third_growth_is_only_accepted_if_it_is_known() -> None:
    grown = written(3, 5, 8, 13)
    assert explained(grown, 13) == ()
    assert explained(grown, 13, known=(8,)) == (3, 5, 8)
    assert explained(grown, 13, known=(3, 5, 8), most_guessed=0) == (3, 5, 8)


@pytest.mark.parametrize("present", [3, 4, 8, 16, 60])
@pytest.mark.parametrize("wrong", ["crc32", "linear-hashing:3"])
def test_another_partitioner_is_not_taken_for_a_growth(wrong: str, present: int) -> None:
    samples = written(present, present, partitioner=wrong)
    assert explained(samples, present) == ()
    assert explained(samples, present, known=(present // 2,)) == ()


def test_a_smaller_layout_behind_a_larger_one_is_no_growth() -> None:
    """This happens if two producers place keys in different ways."""
    assert explained(written(3, 2, 4), 4) == ()
    assert explained(written(2, 4, 3), 4) == ()


def test_of_few_keys_no_two_counts_are_guessed() -> None:
    few = written(3, 7, 12, keys=KEYS[:7])
    assert explained(written(3, 7, 12, keys=KEYS[:8]), 12) == (3, 7)
    assert explained(few, 12) == ()
    assert explained(few, 12, known=(3, 7)) == (3, 7)
