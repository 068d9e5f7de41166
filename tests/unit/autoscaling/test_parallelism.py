"""KIP-878's comparison: which internal topics have the counts that follow from the inputs, and which do not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from kafka_rescale.core.autoscaling.parallelism import Observed, observe
from kafka_rescale.core.cluster import GroupDescription
from kafka_rescale.core.control.autoscaling import Parallelism
from kafka_rescale.core.control.journal import Phase

from tests.support.situations import (
    INPUTS,
    RUNNING,
    SET_BY_PROGRAM,
    STOPPED,
    journal,
    situation,
    unjoined,
    with_counts,
)

UNKEYED = [INPUTS[0], {**INPUTS[1], "policy": "unkeyed"}]
CHANGELOGS = ["customers", "totals", "hourly", "visits"]


def seen(**counts: int) -> Observed:
    """The shop with 4 partitions, and other counts of some topics."""
    return observe(situation(topics=with_counts(**counts)))


def named(mismatches: Any) -> dict[str, tuple[int, int]]:
    """The found and the expected count per topic. Names are without the application's prefix."""
    return {m.topic.removeprefix("shop-"): (m.found, m.expected) for m in mismatches}


def test_counts_that_follow_from_the_inputs_are_in_line() -> None:
    observed = seen()
    assert (observed.grown, observed.too_few, observed.too_many) == ({}, (), ())
    assert observed.target == 0
    assert observed.parallelism == (Parallelism(0, 4, 4), Parallelism(1, 4, 4))


def test_an_input_that_has_grown_lets_every_topic_behind_it_have_too_few() -> None:
    observed = seen(customers=8)
    assert observed.grown == {"shop-customers": (4, 8)}
    assert observed.target == 8
    topics = ["by-customer-repartition", *(f"{store}-changelog" for store in CHANGELOGS)]
    assert named(observed.too_few) == dict.fromkeys(topics, (4, 8))
    assert observed.too_many == ()


def test_an_expansion_also_grows_the_inputs_that_nobody_has_grown() -> None:
    assert seen(customers=8).parallelism == (Parallelism(0, 4, 8), Parallelism(1, 4, 8))


def test_an_input_that_keeps_its_count_does_not() -> None:
    inputs = [{**INPUTS[0], "policy": "fixed"}, INPUTS[1]]
    observed = observe(situation(inputs=inputs, topics=with_counts(customers=8)))
    assert observed.parallelism == (Parallelism(0, 4, 4), Parallelism(1, 4, 8))


def test_a_sub_topology_without_internal_topics_only_has_more_tasks() -> None:
    """``by-customer`` is read together with ``customers``, whose count decides.

    So Kafka Streams goes on by itself.
    """
    observed = seen(orders=8)
    assert (observed.grown, observed.too_few, observed.too_many) == ({}, (), ())
    assert observed.parallelism == (Parallelism(0, 8, 8), Parallelism(1, 4, 4))


@pytest.mark.parametrize("topic", ["by-customer-repartition", "visits-changelog"])
def test_an_internal_topic_that_was_grown_has_too_many(topic: str) -> None:
    observed = observe(situation(topics=with_counts(**{topic.replace("-", "_"): 6})))
    assert named(observed.too_many) == {topic: (6, 4)}
    assert (observed.grown, observed.too_few) == ({}, ())


def test_a_count_that_the_program_sets_is_its_own() -> None:
    counts = {"by_customer_repartition": 6, "customers": 6, **{f"{s}_changelog": 6 for s in CHANGELOGS}}
    given = situation(topics=with_counts(**counts), repartitions=SET_BY_PROGRAM)
    assert (observe(given).too_few, observe(given).too_many) == ((), ())


def test_a_growth_behind_a_larger_count_would_shrink_that() -> None:
    """The target is the grown input's count.

    Counts that the program sets, and topics with successors, follow it.
    """
    inputs = [INPUTS[0], {**INPUTS[1], "policy": "repartitioned"}]
    counts = with_counts(customers=8, by_customer_repartition=16)
    given = unjoined(situation(inputs=inputs, topics=counts, repartitions=SET_BY_PROGRAM))
    assert observe(given).shrinking == (Parallelism(1, 16, 8),)
    assert seen(customers=8).shrinking == ()


def test_a_missing_topic_leaves_nothing_to_compare() -> None:
    observed = observe(situation(topics={"shop-visits-changelog": None}))
    assert "shop-visits-changelog" in observed.missing
    assert observed.parallelism == ()


def test_the_lag_is_that_of_the_partition_furthest_behind() -> None:
    cluster = {
        "ends": {("shop-orders", 0): 10, ("shop-orders", 1): 30, ("shop-visits-changelog", 0): 99},
        "committed": {("shop-orders", 0): 3, ("shop-orders", 1): 29},
    }
    assert observe(situation(cluster=cluster)).lag == 7


def test_a_partition_that_was_never_read_is_behind_by_all_that_it_has() -> None:
    cluster = {"ends": {("shop-orders", 5): 10}, "begins": {("shop-orders", 5): 4}}
    assert observe(situation(cluster=cluster)).lag == 6


@pytest.mark.parametrize(("phase", "runs"), [(Phase.WARMING, True), (Phase.ROLLED_BACK, False)])
def test_an_expansion_in_progress_is_seen(phase: Phase, runs: bool) -> None:
    given = situation()
    assert (observe(replace(given, control=journal(8, phase))).in_progress is not None) is runs


def test_partitions_are_counted_over_all_topics() -> None:
    assert seen(customers=8).partitions == seen().partitions + 4


def test_what_the_inputs_have_is_seen_by_their_names_on_the_cluster() -> None:
    assert seen(customers=8).inputs == {"shop-orders": 4, "shop-customers": 8}


@pytest.mark.parametrize(
    ("group", "committed", "is_down"),
    [
        pytest.param(RUNNING, {("shop-orders", 0): 3}, False, id="has-members"),
        pytest.param(STOPPED, {("shop-orders", 0): 3}, True, id="has-none-any-more"),
        pytest.param(STOPPED, {}, False, id="was-never-started"),
    ],
)
def test_an_application_is_down_if_it_has_processed_something_and_has_no_member(
    group: GroupDescription, committed: dict[tuple[str, int], int], is_down: bool
) -> None:
    assert observe(situation(group=group, cluster={"committed": committed})).is_down is is_down
