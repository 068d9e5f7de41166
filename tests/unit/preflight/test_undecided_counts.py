"""Counts of repartition topics that the text of a topology leaves open: with merges and foreign-key joins."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from kafka_rescale.core.application.lifecycles import ManualLifecycle, ShellLifecycle
from kafka_rescale.core.application.streams import Mode
from kafka_rescale.core.cluster import TopicDescription
from kafka_rescale.core.preflight.check import messages
from kafka_rescale.core.preflight.situation import Situation
from kafka_rescale.core.topology.topology import SubTopology, Topology

from tests.support.situations import FIXED, found, journal, situation, with_counts
from tests.support.small_application import application

BY_ID = "by-id-repartition"
FOREIGN_KEY = Topology(
    (
        SubTopology(
            0,
            ("left", "fk-subscription-response-topic"),
            ("lefts",),
            ("fk-subscription-registration-topic", BY_ID),
        ),
        SubTopology(
            1, ("right", "fk-subscription-registration-topic"), ("rights",), ("fk-subscription-response-topic",)
        ),
        SubTopology(2, (BY_ID,), ("totals",), ()),
    )
)


def merged(*stores: str) -> Topology:
    """Re-keyed orders of the web beside those of the shop, in a join or a merge."""
    return Topology((SubTopology(0, ("web",), (), (BY_ID,)), SubTopology(1, ("shop", BY_ID), stores, ())))


def given(topology: Topology, policies: dict[str, str], counts: dict[str, int], **fields: Any) -> Situation:
    """A situation with the target 8. All other topics have 4 partitions."""
    inputs = [{"topic": topic, "policy": policy} for topic, policy in policies.items()]
    stores = [{"name": s, "type": "timestamped-key-value"} for s in topology.stores]
    ours = application("shop", inputs=inputs, stores=stores, outputs=[], **fields)
    base = situation(8, samples=())
    names = {*topology.inputs, *base.names.all_of(topology)}
    counts = {**dict.fromkeys(names, 4), **counts}
    topics = {
        n: TopicDescription(n, c, 1, {"cleanup.policy": "compact" if n.endswith("changelog") else "delete"})
        for n, c in counts.items()
    }
    return replace(base, application=ours, topology=topology, cluster=replace(base.cluster, topics=topics))


REFUSED = (
    "topic 'shop-by-id-repartition' after the expansion to 8: found 4 or 8 partitions, as sub-topology 1 may join "
    "or merge by-id-repartition, shop; expected one count that Kafka Streams derives in any case, as it refuses "
    "to start with another. If they are joined, and not by KStream#merge, declare `{name: by-id, count: joined}`. "
    "Else let all inputs that lead to this sub-topology grow (`policy: paused` or `unkeyed`), or none (`fixed`), "
    "or set its count in the program (withNumberOfPartitions), and declare `{name: by-id, count: start_command}` "
    "in `repartitions:` if the program takes the count from {partitions}, or `{name: by-id, count: fixed}` if it "
    "sets a constant, which then stays."
)


@pytest.mark.parametrize("stores", [(), ("totals",)])
@pytest.mark.parametrize("policies", [("unkeyed", "fixed"), ("fixed", "paused")])
def test_a_merge_that_would_be_planned_as_a_join_is_refused(
    policies: tuple[str, str], stores: tuple[str, ...]
) -> None:
    declared = dict(zip(("web", "shop"), policies, strict=True))
    assert found(given(merged(*stores), declared, {})) == [REFUSED]


def test_what_the_finding_says_helps() -> None:
    assert found(given(merged("totals"), {"web": "unkeyed", "shop": "paused"}, {})) == []
    set_by_program = [{"name": "by-id", "count": "start_command"}]
    fixed = {"web": "fixed", "shop": "paused"}
    assert found(given(merged("totals"), fixed, {}, repartitions=set_by_program)) == []
    kept = given(merged(), fixed, {}, repartitions=[{"name": "by-id", "count": "fixed"}])
    assert found(kept) == []
    assert {m.target_partitions for m in kept.plan.moves} == {4}
    joined = given(merged("totals"), fixed, {}, repartitions=[{"name": "by-id", "count": "joined"}])
    assert found(joined) == []
    assert {m.target_partitions for m in joined.plan.moves} == {8}


def test_a_count_that_only_a_join_can_have_given_proves_the_join() -> None:
    today = {"web": 6}
    joined = given(merged("totals"), {"web": "fixed", "shop": "paused"}, today)
    assert found(joined) == []
    assert {m.target_partitions for m in joined.plan.moves} == {8}


def test_a_count_that_only_a_merge_can_have_given_is_no_mistake_of_today() -> None:
    today = {"web": 4, "shop": 6}
    assert found(given(merged(), {"web": "unkeyed", "shop": "paused"}, today)) == []


TABLES = {"left": "fixed", "right": "paused"}


def test_tables_of_a_foreign_key_join_that_end_with_different_counts_are_refused() -> None:
    said = "found 4 or 8 partitions, as sub-topology 0, which writes it, takes part in a foreign-key join"
    assert [said in text for text in found(given(FOREIGN_KEY, TABLES, {}))] == [True]
    assert found(given(FOREIGN_KEY, {"left": "paused", "right": "paused"}, {})) == []


@pytest.mark.parametrize("downstream", [4, 8])
def test_either_count_behind_a_foreign_key_join_of_today_is_right(downstream: int) -> None:
    names = ("fk-subscription-registration-topic", "rights-changelog")
    today = {"right": 8, **{f"shop-{n}": 8 for n in names}}
    today |= {f"shop-{n}": downstream for n in (BY_ID, "totals-changelog")}
    assert found(given(FOREIGN_KEY, {"left": "paused", "right": "paused"}, today)) == []
    assert len(found(given(FOREIGN_KEY, TABLES, {**today, "right": 8}))) == 1


SAID = (
    "shop-by-customer-repartition: goes from 4 to 8 partitions only if the program leaves its count to Kafka "
    "Streams. If it sets it (withNumberOfPartitions), the application can't start again after the promotion: "
    "declare `{name: by-customer, count: start_command}` in `repartitions:` if the program takes the count from "
    "{partitions}, or `{name: by-customer, count: fixed}` if it sets a constant, which then stays. If it does "
    "not, say so by `count: derived`. `start_gated` starts it on this count before the pause."
)


def test_a_count_that_the_program_may_set_itself_is_said() -> None:
    """A count that is equal to the derived one doesn't show. Green would enforce it on a topic that has grown."""
    assert found(situation(8)) == []
    assert SAID in messages(situation(8))
    partitioner_only = [{"name": "by-customer", "partitioner": "murmur2"}]
    assert SAID in messages(situation(8, repartitions=partitioner_only))


@pytest.mark.parametrize("count", ["derived", "joined", "start_command"])
def test_who_says_where_the_count_comes_from_is_not_told(count: str) -> None:
    declared = situation(8, repartitions=[{"name": "by-customer", "count": count}])
    assert found(declared) == []
    assert not any("leaves its count" in text for text in messages(declared))


def test_of_a_count_that_stays_and_of_a_foreign_key_join_nothing_is_said() -> None:
    assert not any("leaves its count" in text for text in messages(situation(4)))
    both = given(FOREIGN_KEY, {"left": "paused", "right": "paused"}, {})
    told = [text.partition(":")[0] for text in messages(both) if "leaves its count" in text]
    assert told == [f"shop-{BY_ID}"]


def test_in_place_no_gate_is_spoken_of_and_what_is_in_progress_speaks_of_its_own_plan() -> None:
    in_place = situation(8)
    in_place = replace(in_place, application=in_place.application.model_copy(update={"mode": Mode.IN_PLACE}))
    assert SAID.removesuffix(" `start_gated` starts it on this count before the pause.") in messages(in_place)
    begun = situation(8, topics=with_counts(orders=8, customers=8), control=journal(8))
    assert SAID in messages(begun)


TOLD = (
    "shop-g2-by-customer-repartition: gets 4 partitions, while `start` tells the program 8 by {partitions}. If "
    "the program takes the count of this topic from it (withNumberOfPartitions), the application can't start "
    "again after the promotion: declare `{name: by-customer, count: start_command}`. If it does not, nothing has "
    "to be done. `start_gated` starts it on this count before the pause."
)


def kept(count: str | None, **fields: Any) -> Situation:
    """A situation in which the inputs keep 4 partitions, while ``start`` tells the program 8."""
    said = {} if count is None else {"count": count}
    return situation(8, inputs=FIXED, repartitions=[{"name": "by-customer", **said}], **fields)


def started(given: Situation, lifecycle: ShellLifecycle | ManualLifecycle) -> Situation:
    return replace(given, application=given.application.model_copy(update={"lifecycle": lifecycle}))


def told(given: Situation) -> list[str]:
    return [text for text in messages(given) if "by {partitions}" in text]


@pytest.mark.parametrize("count", [None, "derived", "joined", "fixed"])
def test_a_count_that_the_start_command_may_set_otherwise_is_told(count: str | None) -> None:
    assert told(kept(count)) == [TOLD]


def test_only_a_start_command_that_tells_a_count_is_told_of() -> None:
    given = kept("derived")
    shell = given.application.lifecycle
    assert isinstance(shell, ShellLifecycle)
    silent = shell.model_copy(update={"start": "true {application_id}"})
    assert told(started(given, silent)) == []
    assert told(started(given, ManualLifecycle(type="manual"))) == []
    behind_gate = silent.model_copy(update={"start_gated": "true {application_id} {partitions}"})
    assert told(started(given, behind_gate)) == [TOLD.replace("`start` tells", "`start_gated` tells")]


def test_a_count_that_is_the_one_of_the_start_command_is_not_told_of() -> None:
    assert told(kept("start_command")) == []
    assert (
        told(situation(8)) == told(situation(8, repartitions=[{"name": "by-customer", "count": "derived"}])) == []
    )


@pytest.mark.parametrize(("other", "names"), [("derived", ["shop-g2-top-repartition"]), ("fixed", [])])
def test_a_constant_beside_a_count_of_the_start_command_was_declared_on_purpose(
    other: str, names: list[str]
) -> None:
    split = SubTopology(0, ("web",), (), (BY_ID, "top-repartition"))
    read = [SubTopology(1, (BY_ID,), ("totals",), ()), SubTopology(2, ("top-repartition",), ("best",), ())]
    counts = [{"name": "by-id", "count": "start_command"}, {"name": "top", "count": other}]
    beside = given(Topology((split, *read)), {"web": "fixed"}, {}, repartitions=counts)
    assert found(beside) == []
    assert [text.partition(":")[0] for text in told(beside)] == names
