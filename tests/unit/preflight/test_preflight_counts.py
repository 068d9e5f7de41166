"""Preflight of partition counts, now and after the expansion."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from kafka_rescale.core.cluster import TopicDescription
from kafka_rescale.core.preflight.check import messages
from kafka_rescale.core.preflight.counts import changes_anything, follows_target
from kafka_rescale.core.preflight.situation import Situation
from kafka_rescale.core.topology.topology import SubTopology, Topology

from tests.support.situations import (
    FIXED,
    INPUTS,
    NAME,
    SET_BY_PROGRAM,
    STORES,
    Refusals,
    found,
    situation,
    unjoined,
    with_counts,
)
from tests.support.small_application import application


@pytest.mark.parametrize("target", [8, 6, 5, 100])
def test_a_sound_application_may_grow_to_any_count(target: int) -> None:
    given = situation(target)
    assert found(given) == []
    assert changes_anything(given)
    assert {m.target_partitions for m in given.plan.moves} == {target}


def test_already_at_the_target_is_no_finding_and_no_change() -> None:
    assert found(situation(4)) == []
    assert not changes_anything(situation(4))


def test_an_output_that_shall_grow_is_a_change() -> None:
    assert changes_anything(situation(4, outputs=[{"topic": "shop-totals", "partitions": 6}]))


def test_a_repartition_topic_may_shrink_if_the_program_sets_its_count() -> None:
    repartition = "by-customer-repartition"
    unjoined = Topology(
        (
            SubTopology(0, ("shop-orders",), (), (repartition,)),
            SubTopology(1, (repartition,), ("totals",), ()),
        )
    )
    fixed = application(NAME, inputs=FIXED[:1], repartitions=SET_BY_PROGRAM, stores=STORES[1:2], outputs=[])
    given = replace(situation(2), application=fixed, topology=unjoined)
    assert found(given) == []
    assert [(m.source_partitions, m.target_partitions) for m in given.plan.moves] == [(4, 2), (4, 2)]
    assert given.plan.inputs[0].target == 4


def test_which_topics_follow_a_target() -> None:
    """Both are keyed: the input is `fixed`, and the repartition topic is derived from an input that grows."""
    given = unjoined(situation(8, inputs=[INPUTS[0], {**INPUTS[1], "policy": "fixed"}]))
    assert not follows_target(given, "shop-customers")
    assert follows_target(given, "by-customer-repartition")
    grown = replace(
        given, cluster=replace(given.cluster, topics={**given.cluster.topics, **with_counts(orders=12)})
    )
    assert follows_target(grown, "by-customer-repartition")


@pytest.mark.parametrize("changes", [{"topics": {"shop-orders": None}}, {"inputs": INPUTS[1:]}])
def test_if_an_input_is_missing_preflight_says_so_and_every_topic_may_follow(changes: dict[str, Any]) -> None:
    assert follows_target(situation(8, **changes), "shop-customers")


def merged(orders: int, payments: int) -> Situation:
    """Two inputs with a table each, merged before an output. Kafka Streams accepts any counts for them."""
    counts = {"shop-orders": orders, "shop-payments": payments}
    tables = {f"shop-{name}-changelog": max(orders, payments) for name in ("totals", "payments")}
    compacted = {"cleanup.policy": "compact"}
    topics = {name: TopicDescription(name, n, 1, compacted) for name, n in {**counts, **tables}.items()}
    stores = [{"name": name, "type": "timestamped-key-value"} for name in ("totals", "payments")]
    declared = application(
        NAME, inputs=[{"topic": t, "policy": "paused"} for t in counts], stores=stores, outputs=[]
    )
    topology = Topology((SubTopology(0, tuple(counts), ("totals", "payments"), ()),))
    given = situation(8, samples=())
    return replace(given, application=declared, topology=topology, cluster=replace(given.cluster, topics=topics))


COUNT_REFUSALS: Refusals = {
    "merged with different counts": (
        lambda: merged(8, 4),
        [
            "sources of sub-topology 0: found shop-orders with 8, shop-payments with 4; expected equal counts: "
            "one key's records and state belong to one task. If they are joined, the program can't be running: "
            "Kafka Streams refuses that. If they are only merged, or share a processor, they can't be rescaled "
            "together: make them applications of their own, or let the smaller one come through a repartition() "
            "with the others' count; its state begins anew either way. Don't grow a topic by hand under the "
            "running application: keys would come to tasks that don't have their state."
        ],
    ),
    "an input that was grown by hand": (
        lambda: situation(
            topics=with_counts(by_customer_repartition=4, customers=6), repartitions=SET_BY_PROGRAM, inputs=INPUTS
        ),
        [
            "input topic 'shop-customers': found 6 partitions with policy paused, while shop is tied to 4; "
            "expected one layout of the keys: its old partitions hold records placed with either count. Declare "
            "`policy: repartitioned`, which puts every record where its key belongs, in order; or `unkeyed` if "
            "the program re-keys it before any state."
        ],
    ),
    "would differ afterwards": (
        lambda: situation(6, inputs=FIXED, repartitions=SET_BY_PROGRAM),
        [
            "sources of sub-topology 1 after the expansion to 6: found by-customer-repartition with 6, "
            "shop-customers with 4; expected equal counts: one key's records and state belong to one task. "
            "Let all of them grow: `policy: paused` for an external topic, `count: start_command` for a "
            "repartition topic whose count the program sets. Or let none grow: `policy: fixed`, and `count: "
            "fixed` for such a repartition topic."
        ],
    ),
    "enforced count that is not declared": (
        lambda: situation(topics=with_counts(orders=12, customers=4, by_customer_repartition=6)),
        [
            "topic 'shop-by-customer-repartition': found 6 partitions; expected 4, as Kafka Streams derives "
            "it from shop-orders with 12. If the program sets it (withNumberOfPartitions), declare "
            "`{name: by-customer, count: start_command}` in `repartitions:` if the program takes the count from "
            "{partitions}, or `{name: by-customer, count: fixed}` if it sets a constant, which then stays. If the "
            "topic was grown by hand, no expansion mends that, as it can't shrink: grow the inputs alike and "
            "reset the application.",
            "sources of sub-topology 1",
            *["topic 'shop-"] * 4,
            "input topic 'shop-orders'",
        ],
    ),
    "changelog grown by hand": (
        lambda: situation(topics=with_counts(visits_changelog=8), samples=()),
        [
            "topic 'shop-visits-changelog': found 8 partitions; expected 4, one per task of sub-topology 1 "
            "(by-customer-repartition with 4, shop-customers with 4). Kafka Streams refuses to start on it: a "
            "source or the changelog was grown by hand, and no topic can shrink again. Grow the others alike and "
            "reset the application."
        ],
    ),
    "inputs can not shrink": (
        lambda: situation(2),
        [
            f"input topic 'shop-{topic}': found 4 partitions with policy {policy}; expected at most the "
            "target of 2: a topic can't lose partitions. Declare `policy: repartitioned`, which goes on with a "
            "new topic; or `policy: fixed`, and `count: start_command` for the repartition topics that shall "
            "shrink; or ask for 4 or more."
            for topic, policy in (("orders", "unkeyed"), ("customers", "paused"))
        ],
    ),
    "nothing may change": (
        lambda: situation(8, inputs=FIXED),
        [
            "target of 8 partitions: found 4 partitions, and nothing declared that may change; expected an "
            "input that grows, or a repartition topic whose count the program sets. Declare `policy: unkeyed` "
            "or `paused` for an input, or `count: start_command` for a repartition."
        ],
    ),
}


CONSTANT = [{"name": "by-customer", "count": "fixed"}]


def two_of_start_command(*counts: int) -> Situation:
    """Two re-keyed inputs, each with a table, whose repartition topics are both declared as told by the start."""
    names = ("by-customer", "by-region")
    topology = Topology(
        (
            SubTopology(0, ("shop-orders",), (), tuple(f"{name}-repartition" for name in names)),
            SubTopology(1, ("by-customer-repartition",), ("totals",), ()),
            SubTopology(2, ("by-region-repartition",), ("visits",), ()),
        )
    )
    declared = application(
        NAME,
        inputs=INPUTS[:1],
        repartitions=[{"name": name, "count": "start_command"} for name in names],
        stores=[store for store in STORES if store["name"] in ("totals", "visits")],
        outputs=[],
    )
    topics = dict(zip(("by_customer_repartition", "totals_changelog"), counts[:1] * 2, strict=True))
    given = situation(8, topics=with_counts(**topics, visits_changelog=counts[1]), samples=())
    second = replace(given.cluster.topics["shop-by-customer-repartition"], partitions=counts[1])
    cluster = replace(given.cluster, topics={**given.cluster.topics, "shop-by-region-repartition": second})
    return replace(given, application=declared, topology=topology, cluster=cluster)


def test_one_start_command_can_not_have_set_two_counts() -> None:
    assert found(two_of_start_command(6, 6)) == []
    (text,) = found(two_of_start_command(4, 6))
    assert text == (
        "repartition topics whose counts the start command tells: found by-customer with 4, by-region with 6; "
        "expected one count: the program takes it from {partitions} in its start command. With `count: "
        "start_command`, neither generation could start. If the program sets a constant for one of them, declare "
        "`count: fixed` there; if it sets none, `count: derived`."
    )


def test_a_constant_that_the_program_sets_stays_beside_an_input_that_grows() -> None:
    given = situation(
        12, topics=with_counts(orders=8), inputs=[INPUTS[0], FIXED[1]], repartitions=CONSTANT, samples=()
    )
    assert found(given) == []
    assert not any("leaves its count" in text for text in messages(given))
    assert {m.target_partitions for m in given.plan.moves} == {4}
    assert [(i.current, i.target) for i in given.plan.inputs] == [(8, 12), (4, 4)]


def test_a_constant_count_is_nothing_that_may_change() -> None:
    (text,) = found(situation(8, inputs=FIXED, repartitions=CONSTANT))
    assert "and nothing declared that may change" in text


@pytest.mark.parametrize("case", COUNT_REFUSALS)
def test_counts_that_contradict_are_refused(case: str) -> None:
    make, expected = COUNT_REFUSALS[case]
    given = [f for f in found(make()) if "sampled records elsewhere" not in f]
    assert [text[: len(start)] for text, start in zip(given, expected, strict=True)] == expected
