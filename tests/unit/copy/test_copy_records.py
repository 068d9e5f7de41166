"""Routing, placement check and headers of the copy, checked with byte vectors of Kafka Streams' key schemas."""

from __future__ import annotations

import pytest
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.formats.subscription_wrapper import LeftTable
from kafka_rescale.core.plan.plan import Move, MoveKind
from kafka_rescale.kafka.copy.router import Router, kept_headers

WINDOW = bytes.fromhex("666f6f62617200000174876e800000000000")
SESSION = bytes.fromhex("666f6f62617200000174876f6a6000000174876e8000")


def move(store_type: str, source: int, target: int, kind: MoveKind = MoveKind.CHANGELOG) -> Move:
    return Move(
        kind=kind,
        source="blue",
        target="green",
        store="s",
        store_type=store_type,
        source_partitions=source,
        target_partitions=target,
    )


@pytest.mark.parametrize(("count", "partition"), [(2, 0), (4, 2), (8, 6), (6, 0), (12, 6)])
@pytest.mark.parametrize(
    ("store_type", "key"),
    [("window", WINDOW), ("session", SESSION), ("key-value", b"foobar"), ("suppress-session", SESSION)],
)
def test_the_partition_is_that_of_the_key_within_the_changelog_key(
    store_type: str, key: bytes, count: int, partition: int
) -> None:
    assert Router(move(store_type, 1, count)).targets([key], 0) == [partition]


def test_a_key_that_the_partitioner_puts_elsewhere_is_unsafe() -> None:
    with pytest.raises(UnsafeState, match="murmur2 puts into partition 2"):
        Router(move("key-value", 4, 8)).targets([b"foobar"], 1)


def test_a_key_too_short_for_its_store_type_is_unsafe() -> None:
    with pytest.raises(UnsafeState, match="at least 12 bytes in a window changelog"):
        Router(move("window", 1, 2)).targets([WINDOW, b"short"], 0)


def test_where_an_extractor_has_failed_is_said() -> None:
    given = move("processor", 1, 2).model_copy(
        update={"partitioning_key": "tests.support.user_partitioners:before_a_bar"}
    )
    with pytest.raises(
        UnsafeState, match=r"^topic blue partition 0, partitioning_key .*:before_a_bar for changelog"
    ):
        Router(given).targets([b"foo|bar", b"foobar"], 0)


def test_only_foreign_key_subscriptions_have_other_values_in_the_copy() -> None:
    wrapper, rewritten = (bytes.fromhex("8101666f6f62617200000002")[:-1] + p for p in (b"\x02", b"\x06"))
    left = LeftTable(partitioner="murmur2", source_partitions=4, target_partitions=8)
    subscriptions = move("foreign-key-subscription", 1, 1).model_copy(update={"left": left})
    registrations = move("", 1, 1, MoveKind.REPARTITION).model_copy(update={"left": left})
    for given in (subscriptions, registrations):
        assert Router(given).values([wrapper, None], 0) == [rewritten, None]
    assert Router(move("key-value", 1, 1)).values([wrapper, None], 0) == [wrapper, None]


def test_a_processor_store_is_routed_by_its_extractor() -> None:
    given = move("processor", 1, 8).model_copy(update={"partitioning_key": "drop-last-4"})
    assert Router(given).targets([b"foobar\0\0\0\x01", b"foobar\0\0\0\x02"], 0) == [6, 6]


def test_a_changelog_has_no_records_without_a_key() -> None:
    with pytest.raises(UnsafeState, match="without a key"):
        Router(move("key-value", 1, 2)).targets([None], 0)


def test_records_in_flight_without_a_key_stay_together() -> None:
    router = Router(move("", 4, 8, MoveKind.REPARTITION))
    assert router.targets([None, b"foobar", None], 2) == [2, 6, 2]


def test_a_smaller_target_still_has_a_place_for_records_without_a_key() -> None:
    assert Router(move("", 8, 3, MoveKind.REPARTITION)).targets([None], 7) == [1]


@pytest.mark.parametrize(
    ("headers", "kept"),
    [
        (None, None),
        ([], []),
        ([("v", b"\x00"), ("c", b"x")], None),
        ([("h", b"1"), ("v", b"\x00"), ("c", b"x")], [("h", b"1")]),
        ([("c", b"my own"), ("v", b"\x00"), ("c", b"x")], [("c", b"my own")]),
        ([("v", b"\x00"), ("h", b"mine"), ("c", b"mine")], [("v", b"\x00"), ("h", b"mine"), ("c", b"mine")]),
        ([("v", b"\x00"), ("c", b"x"), ("v", b"\x00"), ("c", b"y")], None),
        ([("v", b"\x03")], [("v", b"\x03")]),
        ([("c", b"my own")], [("c", b"my own")]),
    ],
)
def test_only_the_consistency_vector_is_dropped(headers: object, kept: object) -> None:
    assert kept_headers(headers) == kept  # type: ignore[arg-type]
