"""With one partition, neither types nor partitioners can be checked."""

from __future__ import annotations

from dataclasses import replace

import pytest
from kafka_rescale.core.formats.samples import Sample
from kafka_rescale.core.preflight.check import messages
from kafka_rescale.core.preflight.situation import Situation

from tests.support.situations import STORES, TOPICS, all_placed_by, found, sampled, situation
from tests.support.small_application import KEYS, START_MS, records

TOTALS = "shop-totals-changelog"


def of_one(keys: list[bytes], **changes: object) -> Situation:
    """A situation of topics with one partition, and these keys in the changelog of totals."""
    made = sampled(records("shop", partitions=1))
    made[TOTALS] = [Sample(TOTALS, 0, i, key, START_MS) for i, key in enumerate(keys)]
    topics = {name: replace(topic, partitions=1) for name, topic in TOPICS.items()}
    return situation(samples=tuple(s for each in made.values() for s in each), topics=topics, **changes)


def framed(number: int, keys: tuple[bytes, ...] = KEYS) -> list[bytes]:
    """Keys as a schema registry's serializer writes them."""
    return [b"\x00" + number.to_bytes(4, "big") + key for key in keys]


def with_frames(in_store: list[bytes], in_sources: list[bytes], **changes: object) -> Situation:
    """A situation of topics with one partition; the keys of the store totals and of all that leads to it."""
    given = of_one(in_store, **changes)
    sources = ("shop-customers", "shop-by-customer-repartition")
    made = {topic: [Sample(topic, 0, i, key, START_MS) for i, key in enumerate(in_sources)] for topic in sources}
    kept = [s for s in given.samples if s.topic not in made]
    return replace(given, samples=(*kept, *(s for each in made.values() for s in each)))


def ending(times: int) -> list[bytes]:
    """Keys with some times behind them."""
    return [key + (START_MS + i % times).to_bytes(8, "big") for i, key in enumerate(KEYS)]


def test_what_one_partition_does_not_tell_is_said() -> None:
    topics = (
        "shop-customers, shop-by-customer-repartition, shop-customers-changelog, shop-totals-changelog, "
        "shop-hourly-changelog, shop-visits-changelog"
    )
    said = (
        f"{topics}: type and partitioner can't be checked against one partition. Compare them with the program: "
        "a wrong declaration would only show when keys are missing."
    )
    assert found(of_one(list(KEYS))) == []
    assert said in messages(of_one(list(KEYS)))
    assert not [text for text in messages(situation()) if "one partition" in text]


def test_windowed_keys_in_a_plain_store_of_one_partition_are_refused() -> None:
    (text,) = found(of_one(ending(times=3)))
    assert text.startswith(
        "topic 'shop-totals-changelog': found keys that all end in a time in ms, several in the same time, such "
        "as 0x"
    )
    assert text.endswith(
        "expected whole keys in the timestamped-key-value store totals: one partition can't tell which part "
        "decides. If these are the keys of windows or sessions, declare `type: processor` with `partitioning_key: "
        "drop-last-8`, or `drop-last-16` for sessions. If the whole key decides the partition, declare `type: "
        "processor` with `partitioning_key: whole`."
    )


@pytest.mark.parametrize(
    "keys", [list(KEYS), ending(times=len(KEYS)), ending(times=3)[:19], [*ending(times=3), b"another-key"]]
)
def test_keys_that_only_look_like_it_are_not(keys: list[bytes]) -> None:
    assert found(of_one(keys)) == []


@pytest.mark.parametrize("partitioning_key", ["drop-last-8", "whole"])
def test_what_the_finding_says_helps(partitioning_key: str) -> None:
    totals = {"name": "totals", "type": "processor", "partitioning_key": partitioning_key}
    assert found(of_one(ending(times=3), stores=[STORES[0], totals, *STORES[2:]])) == []


@pytest.mark.parametrize(
    ("in_store", "in_sources"), [(framed(5), framed(7)), (framed(5)[:1], framed(7)[:1] + framed(8)[1:])]
)
def test_keys_of_another_schema_than_the_records_are_refused(
    in_store: list[bytes], in_sources: list[bytes]
) -> None:
    (text,) = found(with_frames(in_store, in_sources))
    ids = "7 or 8" if len(in_store) == 1 else "7"
    assert text.startswith(
        "topic 'shop-totals-changelog': found keys with the schema id 5, while the keys of "
        f"shop-by-customer-repartition and shop-customers have the schema id {ids}; expected the same bytes for a "
        "key in the store and in the records: they decide the partition, so its state and its records would come "
        "to different tasks. Declare `partitioner: module:function` for the store and for all that its"
    )


NUMBERS = [number.to_bytes(8, "big") for number in range(0x18B_0000_0000, 0x18B_0000_0000 + 24)]
LATER = [number.to_bytes(8, "big") for number in range(0x19B_0000_0000, 0x19B_0000_0000 + 24)]


@pytest.mark.parametrize(
    ("in_store", "in_sources"),
    [
        (framed(5), framed(5)),
        (framed(5), [*framed(7), *framed(5)]),
        (framed(5), list(KEYS)),
        (list(KEYS), framed(7)),
        (framed(5), []),
        ([], framed(7)),
        (NUMBERS, LATER),
        (framed(5), [key for number in range(10, 20) for key in framed(number)]),
    ],
)
def test_keys_of_a_schema_that_the_records_have_or_without_a_schema_are_not(
    in_store: list[bytes], in_sources: list[bytes]
) -> None:
    assert found(with_frames(in_store, in_sources)) == []


def test_a_function_of_the_user_and_a_target_of_one_partition_leave_nothing_to_compare() -> None:
    given = with_frames(framed(5), framed(7))
    alone = replace(given, target=1)
    assert not [text for text in found(alone) if "schema id" in text]
    by_user = all_placed_by("shop", "tests.support.user_partitioners:by_adler")
    assert not [text for text in found(with_frames(framed(5), framed(7), **by_user)) if "schema id" in text]


def test_a_store_that_keeps_its_one_partition_may_have_keys_of_another_schema() -> None:
    kept = [{"topic": "shop-orders", "policy": "unkeyed"}, {"topic": "shop-customers", "policy": "fixed"}]
    fixed = {"inputs": kept, "repartitions": [{"name": "by-customer", "count": "fixed"}]}
    assert not [text for text in found(with_frames(framed(5), framed(7), **fixed)) if "schema id" in text]
