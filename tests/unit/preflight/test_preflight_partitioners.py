"""Preflight of declared partitioners: one partitioner places everything that the tasks of a sub-topology share."""

from __future__ import annotations

import pytest
from kafka_rescale.core.formats.samples import Sample
from kafka_rescale.core.partitioning.partitioners import partitioner_named
from kafka_rescale.core.preflight.situation import Situation

from tests.support.situations import (
    CUSTOMERS_CHANGELOG,
    INPUTS,
    NAME,
    STORES,
    all_placed_by,
    found,
    misplaced,
    sampled,
    samples,
    situation,
    unjoined,
)
from tests.support.small_application import KEYS, records

MODULE = "tests.support.user_partitioners"
CRC32 = {"partitioner": "crc32"}
REMEDY = (
    "Correct the declared partitioners. If the topics really differ, the program misses matches already: let it "
    "re-key one of them (`repartition()`) before they meet."
)
ONE = "one partitioner: a key's records and state belong to one task, and would be copied to several"
INPUT_APART = {"inputs": [INPUTS[0], {**INPUTS[1], **CRC32}]}
STORE_APART = {"stores": [{**STORES[0], **CRC32}, *STORES[1:]]}


def declared(partitioner: str) -> Situation:
    """A sound application. One partitioner has placed all its records."""
    made = sampled(records(NAME, partitioner=partitioner))
    return situation(samples=samples(**made), **all_placed_by(NAME, partitioner))


@pytest.mark.parametrize("partitioner", ["murmur2", "crc32", "linear-hashing:3", f"static:{MODULE}:pinned"])
def test_one_partitioner_for_everything_is_sound(partitioner: str) -> None:
    assert found(declared(partitioner)) == []


def test_an_input_that_is_placed_otherwise_than_what_it_is_joined_with_is_refused() -> None:
    assert found(situation(samples=samples(**misplaced("shop-customers")), **INPUT_APART)) == [
        "sub-topology 1: found crc32 for shop-customers, murmur2 for by-customer-repartition and store customers "
        f"and store totals and store hourly and store visits; expected {ONE}. {REMEDY}"
    ]


def test_a_store_that_is_placed_otherwise_than_its_input_is_refused() -> None:
    assert found(situation(samples=samples(**misplaced(CUSTOMERS_CHANGELOG)), **STORE_APART)) == [
        "sub-topology 1: found crc32 for store customers, murmur2 for by-customer-repartition and shop-customers "
        f"and store totals and store hourly and store visits; expected {ONE}. {REMEDY}"
    ]


def test_it_is_refused_though_there_is_no_record_yet() -> None:
    assert len(found(situation(samples=(), **INPUT_APART))) == 1


def test_what_shares_no_task_may_be_placed_by_different_partitioners() -> None:
    repartitions = [{"name": "by-customer", **CRC32}]
    given = samples(**misplaced("shop-by-customer-repartition"))
    assert found(unjoined(situation(samples=given, repartitions=repartitions))) == []


def test_a_function_that_tells_topics_apart_would_part_what_is_joined() -> None:
    """By chance, this function gives both topics the same partitions of four."""
    name = f"{MODULE}:by_adler"
    homes = partitioner_named(name, "shop-customers").partition_batch(KEYS, 4)
    customers = tuple(Sample("shop-customers", p, i, k) for i, (k, p) in enumerate(zip(KEYS, homes, strict=True)))
    [finding] = found(situation(samples=customers, **all_placed_by(NAME, name)))
    assert finding == (
        f"sub-topology 1, partitioner {name}: found key 'customer-0' in different partitions of 8 for topics "
        "'by-customer-repartition' and 'shop-customers'; expected one partition: a key's records and state belong "
        f"to one task. {REMEDY}"
    )
