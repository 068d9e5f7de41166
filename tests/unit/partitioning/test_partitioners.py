"""Partitioners give the published vectors of Kafka and librdkafka, and have their properties."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.partitioning.murmur2 import murmur2
from kafka_rescale.core.partitioning.partitioners import PARTITIONERS, Murmur2, partitioner_named

# UtilsTest.testMurmur2: the Java hash is signed.
OFFICIAL = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}
PARTITIONS = {  # the partition among 2, 3, 4, 6, 8 and 12 partitions
    b"21": (0, 0, 0, 0, 4, 0),
    b"foobar": (0, 0, 2, 0, 6, 6),
    b"a-little-bit-long-string": (0, 2, 0, 2, 0, 8),
    b"a-little-bit-longer-string": (1, 2, 3, 5, 3, 11),
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": (1, 2, 1, 5, 5, 5),
    b"abc": (1, 0, 3, 3, 3, 3),
    b"": (1, 0, 1, 3, 1, 9),
    bytes(8): (1, 2, 3, 5, 3, 11),
    (42).to_bytes(4, "big"): (0, 0, 0, 0, 0, 0),
}

keys = st.lists(st.binary(max_size=40), max_size=50)
partitioners = st.sampled_from(sorted(PARTITIONERS))


@pytest.mark.parametrize("key", OFFICIAL)
def test_murmur2_is_kafkas(key: bytes) -> None:
    assert murmur2(key) == OFFICIAL[key] & 0xFFFFFFFF


@pytest.mark.parametrize("key", PARTITIONS)
def test_negative_hashes_are_masked_and_not_made_absolute(key: bytes) -> None:
    assert tuple(Murmur2().partition(key, n) for n in (2, 3, 4, 6, 8, 12)) == PARTITIONS[key]


def test_crc32_is_that_of_librdkafka() -> None:
    # The check value of CRC-32 (IEEE 802.3) for "123456789" is 0xCBF43926.
    assert partitioner_named("crc32").partition(b"123456789", 1 << 32) == 0xCBF43926


@given(keys, st.integers(1, 64), partitioners)
def test_a_batch_equals_single_keys(batch: list[bytes], n: int, name: str) -> None:
    partitioner = partitioner_named(name)
    assert partitioner.partition_batch(batch, n) == [partitioner.partition(key, n) for key in batch]


@given(st.binary(max_size=40), st.integers(1, 64), st.integers(1, 16), partitioners)
def test_k_times_n_partitions_split_every_partition_and_mix_none(key: bytes, n: int, k: int, name: str) -> None:
    partitioner = partitioner_named(name)
    assert partitioner.partition(key, k * n) % n == partitioner.partition(key, n)


@pytest.mark.parametrize(
    ("before", "after", "moved"), [(4, 8, 0.497), (6, 12, 0.500), (4, 6, 0.666), (3, 4, 0.751)]
)
def test_the_share_of_keys_that_move(before: int, after: int, moved: float) -> None:
    batch = [f"key-{i}".encode() for i in range(5000)]
    pairs = zip(Murmur2().partition_batch(batch, before), Murmur2().partition_batch(batch, after), strict=True)
    assert sum(a != b for a, b in pairs) / 5000 == pytest.approx(moved, abs=0.02)


@pytest.mark.parametrize("name", ["fnv1a", "linear-hashing", "linear-hashing:0", "linear-hashing:x", "static:f"])
def test_an_unknown_partitioner_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput) as error:
        partitioner_named(name)
    assert str(error.value) == (
        f"partitioner: found '{name}'; expected one of crc32, murmur2, linear-hashing:<initial count>, "
        "module:function, static:module:function. "
        "Java producers and Kafka Streams use murmur2, as librdkafka does with partitioner=murmur2 or "
        "murmur2_random; its default, consistent_random, is crc32."
    )
