"""Why the refusals are right: what would happen in each case without the refusal."""

from __future__ import annotations

from collections import Counter

import pytest
from kafka_rescale.core.partitioning.partitioners import Murmur2, partitioner_named
from kafka_rescale.core.plan.instances import green
from kafka_rescale.core.plan.planning import build_plan

from tests.support.situations import INPUTS, STORES, situation

KEYS = [f"key-{i}".encode() for i in range(1000)]
BEFORE, AFTER = 4, 8


def test_a_multicast_record_would_be_processed_twice_by_one_task() -> None:
    """Blue has a copy of the record in every partition. All copies of a key go to one partition of green."""
    copies = [key for key in KEYS for _ in range(BEFORE)]
    arrived = Counter(zip(copies, Murmur2().partition_batch(copies, AFTER), strict=True))
    assert set(arrived.values()) == {BEFORE}


@pytest.mark.parametrize(
    ("declared", "real"),
    [
        ("murmur2", "crc32"),
        ("murmur2", "linear-hashing:3"),
        ("linear-hashing:3", "murmur2"),
        (
            "static:tests.support.user_partitioners:pinned",
            "static:tests.support.user_partitioners:claims_to_be_static",
        ),
    ],
)
def test_with_the_wrong_partitioner_records_would_miss_their_state(declared: str, real: str) -> None:
    """The copy places state by the declared partitioner. The program's records arrive by the real partitioner."""
    state, records = (partitioner_named(name).partition_batch(KEYS, AFTER - 1) for name in (declared, real))
    assert sum(a != b for a, b in zip(state, records, strict=True)) > len(KEYS) / 4


def test_with_two_partitioners_in_a_sub_topology_records_would_not_meet_the_state_they_are_joined_with() -> None:
    """Each topic is copied as declared. So a key's table entry and its records are in two different tasks."""
    customers, *others = STORES
    given = situation(AFTER, stores=[{**customers, "partitioner": "crc32"}, *others])
    moves = {m.store: m for m in given.plan.moves}
    state, records = (
        partitioner_named(moves[name].partitioner, moves[name].key_topic).partition_batch(KEYS, AFTER)
        for name in ("customers", "by-customer-repartition")
    )
    assert sum(a != b for a, b in zip(state, records, strict=True)) > len(KEYS) / 2


def test_an_input_that_the_application_writes_would_have_two_writers_behind_a_bridge() -> None:
    """Green gets one topic for the input's name, for its source and its sink. The bridge fills the same topic."""
    given = situation(
        AFTER, inputs=[INPUTS[0], {"topic": "shop-customers", "policy": "repartitioned"}], samples=()
    )
    assert green(given.plan).inputs["shop-customers"] == "shop-customers-p8"
    assert [(b.source, b.target) for b in given.plan.bridges] == [("shop-customers", "shop-customers-p8")]


def test_a_store_without_a_changelog_would_begin_empty() -> None:
    given = situation(AFTER)
    without = given.topology.with_source_tables({"totals"})
    plan = build_plan(
        given.application,
        without,
        blue="shop",
        generation=2,
        current={name: t.partitions for name, t in given.cluster.topics.items()},
        target=AFTER,
    )
    assert {m.store for m in given.plan.changelogs} - {m.store for m in plan.changelogs} == {"totals"}


def test_a_subscription_that_is_only_copied_would_be_answered_to_a_task_that_does_not_have_its_key() -> None:
    """The response sink sends to the partition in the value. By then, half of the keys are in other partitions."""
    copied = Murmur2().partition_batch(KEYS, BEFORE)
    homes = Murmur2().partition_batch(KEYS, AFTER)
    lost = sum(named != home for named, home in zip(copied, homes, strict=True))
    assert 0.4 < lost / len(KEYS) < 0.6


def test_a_subscription_rewritten_for_another_left_table_would_name_its_partitions() -> None:
    """This is why two joins that can't be told apart are refused: their tables may have different counts."""
    of_one, of_other = (Murmur2().partition_batch(KEYS, count) for count in (6, AFTER))
    assert sum(a != b for a, b in zip(of_one, of_other, strict=True)) > len(KEYS) / 2
