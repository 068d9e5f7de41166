"""A producer with old metadata writes to partitions of the old count: its records are counted, named, refused."""

from __future__ import annotations

from typing import Any

import pytest
from kafka_rescale.core.application.topics import InputPolicy
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.partitioning.partitioners import partitioner_named
from kafka_rescale.core.plan.external_topics import InputPlan
from kafka_rescale.core.verify.misrouted import Place, grown_by_key, misrouted, refuse_misrouted

from tests.support.plans import plan_for

KEYS = [b"customer-%d" % i for i in range(5_000)]


def grown(**changes: Any) -> InputPlan:
    fields = {"topic": "orders", "policy": InputPolicy.PAUSED, "partitioner": "crc32", "current": 4, "target": 8}
    return InputPlan.model_validate({**fields, **changes})


def written(count: int, keys: list[bytes] = KEYS) -> list[Place]:
    """The records of a producer that knows ``count`` partitions."""
    homes = partitioner_named("crc32").partition_batch(keys, count)
    return [Place(p, offset, key) for offset, (key, p) in enumerate(zip(keys, homes, strict=True))]


def test_a_producer_that_knows_of_the_growth_misroutes_nothing() -> None:
    report = misrouted(grown(), iter(written(8)))
    assert (report.records, report.misrouted, report.first) == (len(KEYS), 0, ())
    refuse_misrouted([report])


def test_a_stale_producer_is_caught_with_topic_partition_offset_key_and_remedy() -> None:
    report = misrouted(grown(), [*written(8), *written(4)])
    assert 0.4 < report.misrouted / len(KEYS) < 0.6  # from 4 to 8, half of the keys move
    first = report.first[0]
    with pytest.raises(UnsafeState) as refusal:
        refuse_misrouted([report])
    told = str(refusal.value)
    assert f"partition {first.partition} offset {first.offset}: key 0x{first.key} belongs to" in told
    assert "'orders'" in told
    assert "repartitioned" in told


def test_what_a_static_partitioner_puts_into_partitions_of_a_later_growth_is_not_misrouted() -> None:
    """KIP-878: such an answer lets the partitions be counted again, and there are now more than in the plan."""
    numbered = "static:tests.support.user_partitioners:numbered"
    at_home = [Place(number, 0, b"c-%d" % number) for number in range(8)]
    report = misrouted(grown(partitioner=numbered, current=2, target=4), at_home, present=8)
    assert (report.records, report.misrouted) == (8, 0)
    stray = misrouted(grown(partitioner=numbered, current=2, target=4), [Place(1, 9, b"c-6")], present=8)
    assert (stray.misrouted, stray.chosen, stray.first[0].home) == (1, 1, 6)


def test_a_producer_that_chooses_partitions_is_told_apart_from_one_with_old_metadata() -> None:
    """The old count does not put these keys where they are, so a restart of the producer would change nothing."""
    homes = partitioner_named("crc32")
    elsewhere = [
        Place(p, offset, key)
        for offset, key in enumerate(KEYS[:50])
        for p in range(8)
        if p not in (homes.partition(key, 4), homes.partition(key, 8))
    ]
    report = misrouted(grown(), elsewhere)
    assert report.chosen == report.misrouted == len(elsewhere)
    with pytest.raises(
        UnsafeState, match="their producer has chosen: neither count puts their keys there"
    ) as refusal:
        refuse_misrouted([report])
    assert "old count" not in str(refusal.value)
    assert "metadata from before the growth" not in str(refusal.value)

    both = misrouted(grown(), [*elsewhere, *written(4)])
    assert 0 < both.chosen == report.chosen < both.misrouted
    with pytest.raises(
        UnsafeState, match=rf"by the old count, {both.chosen} by their producer's choice"
    ) as refusal:
        refuse_misrouted([both])
    assert "metadata from before the growth" in str(refusal.value)


def test_a_record_without_a_key_belongs_nowhere() -> None:
    report = misrouted(grown(), [Place(0, 0, None)])
    assert (report.records, report.misrouted) == (1, 0)


@pytest.mark.parametrize(("partitioner", "misrouted_records"), [("crc32", 0), ("murmur2", 1)])
def test_of_librdkafka_an_empty_key_belongs_nowhere_either(partitioner: str, misrouted_records: int) -> None:
    report = misrouted(grown(partitioner=partitioner), [Place(2, 10, b"")])
    assert (report.records, report.misrouted) == (1, misrouted_records)


def test_only_inputs_that_were_grown_by_key_are_looked_at() -> None:
    others = [
        grown(policy=InputPolicy.UNKEYED),
        grown(policy=InputPolicy.FIXED, target=4),
        grown(policy=InputPolicy.REPARTITIONED, successor="orders-p8"),
        grown(target=4),
    ]
    plan = plan_for("shop").model_copy(update={"inputs": (grown(), *others)})
    assert grown_by_key(plan) == (grown(),)
