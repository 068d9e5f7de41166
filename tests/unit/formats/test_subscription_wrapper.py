"""Foreign-key subscriptions: the layout of ``SubscriptionWrapperSerde`` and the partition that a copy rewrites."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.formats.subscription_wrapper import LeftTable, Subscription, parse, rewritten
from kafka_rescale.core.partitioning.partitioners import Murmur2

HASH = bytes(range(16))
VECTOR = bytes.fromhex("8101666f6f62617200000002")
LEFT = LeftTable(partitioner="murmur2", source_partitions=4, target_partitions=8)


def wrapper(key: bytes, partition: int | None, hashed: bool = True) -> bytes:
    """A wrapper as Kafka Streams writes it. Version 0 has no partition."""
    version = (0 if partition is None else 1) | (0 if hashed else 0x80)
    tail = b"" if partition is None else partition.to_bytes(4, "big")
    return bytes([version, 3]) + (HASH if hashed else b"") + key + tail


def rewrite(*values: bytes | None) -> list[bytes | None]:
    """The values after a copy from 4 to 8 partitions of the left table."""
    return rewritten(values, LEFT, where="topic fk partition 0")


def test_the_vector_is_read() -> None:
    assert parse(VECTOR) == Subscription(b"foobar", 2)
    assert wrapper(b"foobar", 2, hashed=False)[2:] == VECTOR[2:]


@pytest.mark.parametrize("hashed", [True, False])
@pytest.mark.parametrize("partition", [None, 2])
def test_both_versions_with_and_without_a_hash(partition: int | None, hashed: bool) -> None:
    assert parse(wrapper(b"foobar", partition, hashed)) == Subscription(b"foobar", partition)


def test_foobar_moves_from_2_of_4_to_6_of_8_and_nothing_else_changes() -> None:
    assert rewrite(VECTOR) == [VECTOR[:-1] + b"\x06"]
    assert rewrite(wrapper(b"foobar", 2)) == [wrapper(b"foobar", 6)]


def test_version_0_and_tombstones_stay_as_they_are() -> None:
    old = wrapper(b"foobar", None)
    assert rewrite(old, None, VECTOR, None) == [old, None, VECTOR[:-1] + b"\x06", None]


def test_a_subscription_that_names_another_partition_is_unsafe() -> None:
    with pytest.raises(UnsafeState) as error:
        rewrite(VECTOR, wrapper(b"foobar", 3))
    assert str(error.value) == (
        "topic fk partition 0: found a subscription of primary key 0x666f6f626172 that names partition 3; "
        "expected "
        "partition 2 of 4, where murmur2 puts that key. Declare the partitioner of the left table's topics. If "
        "the key serde writes other bytes here than in the left table, the join can't be moved."
    )


@pytest.mark.parametrize(
    "value",
    [b"", b"\x01", b"\x02\x01key", b"\x01\x04" + HASH + b"key1234", b"\x01\x01" + HASH + b"123", b"\0\0short"],
)
def test_what_is_no_wrapper_is_not_copied(value: bytes) -> None:
    assert parse(value) is None
    with pytest.raises(UnsafeState, match="expected a subscription wrapper of version 0 or 1"):
        rewrite(value)


@given(
    key=st.binary(max_size=40),
    hashed=st.booleans(),
    before=st.integers(1, 20),
    after=st.integers(1, 20),
    instruction=st.integers(0, 3),
)
def test_a_rewritten_wrapper_names_the_partition_of_its_primary_key(
    key: bytes, hashed: bool, before: int, after: int, instruction: int
) -> None:
    value = wrapper(key, Murmur2().partition(key, before), hashed)
    value = value[:1] + bytes([instruction]) + value[2:]
    left = LeftTable(partitioner="murmur2", source_partitions=before, target_partitions=after)

    [copied] = rewritten([value], left, where="")

    assert copied is not None
    assert copied[:-4] == value[:-4]
    assert parse(copied) == Subscription(key, Murmur2().partition(key, after))
