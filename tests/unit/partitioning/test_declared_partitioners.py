"""A user's own function as partitioner: its arguments, and every answer that can't be used."""

from __future__ import annotations

from zlib import adler32

import pytest
from kafka_rescale.core.errors import InvalidInput, UnsafeState
from kafka_rescale.core.partitioning.partitioners import earlier_homes, partitioner_named
from kafka_rescale.core.partitioning.user_function import NOT_THERE, NotThereYet
from kafka_rescale.core.plan.plan import Move, MoveKind
from kafka_rescale.kafka.copy.router import Router

from tests.support.small_application import KEYS

MODULE = "tests.support.user_partitioners"


def test_it_is_asked_with_topic_key_and_count() -> None:
    partitioner = partitioner_named(f"{MODULE}:by_adler", "orders")
    assert partitioner.name == f"{MODULE}:by_adler"
    assert partitioner.partition(b"k", 7) == adler32(b"ordersk") % 7
    assert partitioner.partition_batch([b"k", b"l"], 7) == [adler32(b"ordersk") % 7, adler32(b"ordersl") % 7]


WRONG = {
    "one_too_high": "4",
    "changes_its_mind": r"\d, and \d when asked again",
    "multicast": r"\{0, 3\}: a multicast, of which one key's state would be in several partitions",
    "undecided": "None, with which a StreamPartitioner leaves the choice to the producer",
    "fails": r"ValueError: invalid literal for int\(\) with base 10: b'customer-0'",
}


@pytest.mark.parametrize("function", WRONG)
def test_an_answer_that_can_not_be_used_names_key_and_topic(function: str) -> None:
    message = (
        rf"partitioner {MODULE}:{function} for key 0x{KEYS[0].hex()} of topic 'orders': found {WRONG[function]}; "
        r"expected one partition of 0 to 3, and always the same\. Mend the function"
    )
    with pytest.raises(UnsafeState, match=message):
        partitioner_named(f"{MODULE}:{function}", "orders").partition_batch(KEYS[:5], 4)


def test_what_is_no_function_or_no_module_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"found a int; expected a function \(topic, key, n\) -> partition"):
        partitioner_named(f"{MODULE}:NOT_A_FUNCTION")
    with pytest.raises(InvalidInput, match=r"No module named 'nowhere'.*PYTHONPATH of the Airflow workers"):
        partitioner_named("nowhere:function")


def move(partitioner: str, source: int, target: int) -> Move:
    return Move(
        kind=MoveKind.CHANGELOG,
        source="app-totals-changelog",
        target="app-g2-totals-changelog",
        store="totals",
        store_type="key-value",
        partitioner=partitioner,
        key_topic="orders",
        source_partitions=source,
        target_partitions=target,
    )


def test_the_copy_asks_it_by_the_name_of_what_the_tasks_read() -> None:
    home = adler32(b"orders" + KEYS[0]) % 4
    assert Router(move(f"{MODULE}:by_adler", 4, 8)).targets(KEYS[:1], home) == [adler32(b"orders" + KEYS[0]) % 8]


def test_a_static_one_that_needs_more_partitions_may_be_asked_again_when_the_topic_is_counted_anew() -> None:
    """KIP-878: ``staticPartition`` throws ``TaskMigratedException``, and the counts are read again."""
    static = partitioner_named(f"static:{MODULE}:numbered", "orders")
    with pytest.raises(NotThereYet, match="found 6; expected one partition of 0 to 3"):
        static.partition_batch([b"c-2", b"c-6"], 4)
    assert static.partition_batch([b"c-2", b"c-6"], 8) == [2, 6]
    assert earlier_homes(static, [b"c-2", b"c-6"], 4) == [2, NOT_THERE]


def test_a_static_one_may_answer_with_an_integer_of_numpy() -> None:
    static = partitioner_named(f"static:{MODULE}:by_range", "orders")
    assert static.partition_batch([b"\x05", b"\x32"], 5) == [0, 4]
    assert earlier_homes(static, [b"\x05", b"\x32"], 4) == [0, NOT_THERE]


@pytest.mark.parametrize("function", ["changes_its_mind", "multicast", "undecided", "fails", "is_even"])
def test_an_answer_that_no_count_makes_a_partition_is_refused_at_once(function: str) -> None:
    with pytest.raises(UnsafeState) as refused:
        partitioner_named(f"static:{MODULE}:{function}", "orders").partition_batch(KEYS[:5], 4)
    assert not isinstance(refused.value, NotThereYet)


def test_static_keys_stay_where_they_are() -> None:
    assert Router(move(f"static:{MODULE}:pinned", 4, 8)).targets([b"c-2", b"c-6"], 2) == [2, 2]


def test_a_function_that_is_not_static_after_all_stops_the_copy() -> None:
    with pytest.raises(UnsafeState, match="claims_to_be_static would move to partition 6; expected a static"):
        Router(move(f"static:{MODULE}:claims_to_be_static", 4, 8)).targets([b"c-2", b"c-6"], 2)
    assert Router(move(f"{MODULE}:claims_to_be_static", 4, 8)).targets([b"c-2", b"c-6"], 2) == [2, 6]
