"""An application whose input a person has grown: preflight recognises this by its internal topics, and goes on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import pytest
from kafka_rescale.core.control.autoscaling import Autoscaling
from kafka_rescale.core.control.generations import Generations
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.plan.plan import Move, MoveKind
from kafka_rescale.core.preflight.counts import derived_repartitions
from kafka_rescale.core.preflight.grown_inputs import Growth, Reach, growths
from kafka_rescale.core.preflight.situation import Situation
from kafka_rescale.core.topology.topology import SubTopology, Topology
from kafka_rescale.core.verify.start_offsets import input_starts
from kafka_rescale.kafka.copy.router import Router

from tests.support.situations import (
    INPUTS,
    STOPPED,
    all_placed_by,
    found,
    misplaced,
    sampled,
    samples,
    situation,
    situation_of,
    with_counts,
)
from tests.support.small_application import KEYS, placed, records

STATEFUL = Topology((SubTopology(0, ("orders",), ("last",), ("totals",)),))
REKEYED = Topology(
    (
        SubTopology(0, ("clicks",), (), ("by-user-repartition",)),
        SubTopology(1, ("by-user-repartition",), ("visits",), ()),
    )
)
STATIC, NUMBERED = (f"static:tests.support.user_partitioners:{name}" for name in ("pinned", "numbered"))
REPARTITIONED = [INPUTS[0], {**INPUTS[1], "policy": "repartitioned"}]


def rescued(count: int, target: int, policy: str = "repartitioned", **changes: Any) -> Situation:
    """The shop after ``shop-customers`` grew from 4 to ``count``, while the application was bound to 4."""
    inputs = [INPUTS[0], {**INPUTS[1], "policy": policy}]
    changes = {"samples": samples(**misplaced("shop-customers", "murmur2", 4)), "group": STOPPED, **changes}
    return situation(target, inputs=inputs, topics=with_counts(customers=count), **changes)


def pinned(count: int, target: int, policy: str) -> Situation:
    """The shop grown as ``rescued`` is, with a static partitioner everywhere."""
    fields = all_placed_by("shop", STATIC)
    orders, customers = fields["inputs"]
    fields["inputs"] = [orders, {**customers, "policy": policy}]
    made = samples(**sampled(records("shop", 4, STATIC)))
    return situation(target, topics=with_counts(customers=count), samples=made, group=STOPPED, **fields)


def known_by(*arguments: Any, **following: Any) -> dict[str, int]:
    """The count that the running generation knows, by input that has grown."""
    return {topic: growth.known for topic, growth in growths(*arguments, **following).items()}


class TestRecognition:
    @pytest.mark.parametrize(("changelog", "known"), [(4, {"orders": 4}), (8, {})])
    def test_a_changelog_tells_the_count_that_its_tasks_know(self, changelog: int, known: dict[str, int]) -> None:
        assert known_by(STATEFUL, {"orders": 8}, {"last": changelog}, (), {}) == known

    @pytest.mark.parametrize(
        ("written", "read", "known"),
        [
            pytest.param(8, 4, {"clicks": 4}, id="nothing-of-the-new-partitions-was-read"),
            pytest.param(8, 8, {}, id="the-program-sets-the-count"),
            pytest.param(4, 4, {}, id="nothing-tells-which"),
        ],
    )
    def test_a_repartition_topic_tells_it_of_an_input_whose_last_partitions_were_never_read(
        self, written: int, read: int, known: dict[str, int]
    ) -> None:
        counts, reach = {"clicks": 8, "by-user-repartition": 4}, {"clicks": Reach(written, read)}
        assert known_by(REKEYED, counts, {"visits": 4}, (), reach) == known

    @pytest.mark.parametrize(
        ("reach", "following", "known"),
        [
            pytest.param(Reach(4, 4, recorded=4), (), {"clicks": 4}, id="recorded-by-the-watch"),
            pytest.param(Reach(0, 0, recorded=4), (), {"clicks": 4}, id="recorded-and-empty"),
            pytest.param(Reach(4, 4, recorded=8), (), {}, id="recorded-with-a-count-that-the-program-sets"),
            pytest.param(Reach(4, 4), ("by-user-repartition",), {"clicks": 4}, id="said-to-follow"),
            pytest.param(Reach(4, 4), ("another-repartition",), {}, id="another-one-is-said-to-follow"),
            pytest.param(Reach(8, 8, recorded=4), ("by-user-repartition",), {}, id="read-so-it-can-not-be"),
        ],
    )
    def test_no_record_in_a_new_partition_is_needed(
        self, reach: Reach, following: tuple[str, ...], known: dict[str, int]
    ) -> None:
        """ "They should wait for this before sending any records to the new input topic partitions" (KIP-878)."""
        counts = {"clicks": 8, "by-user-repartition": 4}
        assert known_by(REKEYED, counts, {}, (), {"clicks": reach}, following=following) == known

    @pytest.mark.parametrize(
        ("taps", "recorded", "known"),
        [
            pytest.param(8, 2, {"taps": 2}, id="recorded"),
            pytest.param(8, 0, {}, id="nothing-is-recorded"),
            pytest.param(3, 2, {}, id="the-other-one-still-decides"),
        ],
    )
    def test_of_several_inputs_that_are_merged_the_recorded_counts_tell_which_has_grown(
        self, taps: int, recorded: int, known: dict[str, int]
    ) -> None:
        """The largest input decides the count of the topic that is made from them."""
        both = SubTopology(0, ("clicks", "taps"), (), ("by-user-repartition",))
        merged = Topology((both, REKEYED.subtopologies[1]))
        counts = {"clicks": 4, "taps": taps, "by-user-repartition": 4}
        reach = {"clicks": Reach(4, 4, recorded=4), "taps": Reach(2, 2, recorded=recorded)}
        assert known_by(merged, counts, {}, (), reach) == known

    def test_a_count_that_the_program_sets_tells_nothing(self) -> None:
        counts = {"clicks": 8, "by-user-repartition": 4}
        reach = {"clicks": Reach(written=8, read=4)}
        assert known_by(REKEYED, counts, {"visits": 4}, ("by-user-repartition",), reach) == {}

    def test_witnesses_that_disagree_are_left_to_the_other_checks(self) -> None:
        two = Topology((SubTopology(0, ("orders",), ("last", "other"), ()),))
        assert known_by(two, {"orders": 8}, {"last": 4, "other": 6}, (), {}) == {}


class TestUnprovenCounts:
    """A repartition topic's count alone does not tell a growth from a count that the program sets."""

    COUNTS: ClassVar = {"clicks": 8, "by-user-repartition": 4}

    @pytest.mark.parametrize("reach", [Reach(8, 4), Reach(4, 4, recorded=4)], ids=["written", "recorded"])
    def test_a_sign_that_is_no_declaration_leaves_the_count_unproven(self, reach: Reach) -> None:
        found = growths(REKEYED, self.COUNTS, {}, (), {"clicks": reach})
        assert found == {"clicks": Growth(4, frozenset({"by-user-repartition"}))}

    def test_a_count_that_is_said_to_follow_is_proven(self) -> None:
        reach = {"clicks": Reach(8, 4, recorded=4)}
        found = growths(REKEYED, self.COUNTS, {}, (), reach, following=("by-user-repartition",))
        assert found == {"clicks": Growth(4)}

    def test_a_changelog_proves_the_growth_whatever_the_program_does(self) -> None:
        counting = SubTopology(0, ("clicks",), ("last",), ("by-user-repartition",))
        topology = Topology((counting, REKEYED.subtopologies[1]))
        found = growths(topology, self.COUNTS, {"last": 4}, (), {"clicks": Reach(8, 4, recorded=4)})
        assert found == {"clicks": Growth(4)}


class TestPreflight:
    @pytest.mark.parametrize("target", [8, 16, 6])
    def test_a_keyed_input_is_repartitioned_to_any_count(self, target: int) -> None:
        given = rescued(8, target)
        assert found(given) == []
        (bridge,) = given.plan.bridges
        assert (bridge.earlier_partitions, bridge.source_partitions, bridge.target_partitions) == (4, 8, target)
        assert {(m.source_partitions, m.target_partitions) for m in given.plan.changelogs} == {(4, target)}

    def test_a_count_that_moves_keys_among_old_partitions_has_no_order_to_keep(self) -> None:
        (finding,) = found(rescued(6, 12))
        assert "grown from 4, with keys that went from one old partition to another" in finding

    def test_an_input_that_is_grown_in_place_would_mix_two_layouts(self) -> None:
        assert any("while shop is tied to 4" in finding for finding in found(rescued(8, 8, "paused")))

    @pytest.mark.parametrize("policy", ["paused", "fixed"])
    def test_with_a_static_partitioner_there_is_one_layout_whatever_the_count(self, policy: str) -> None:
        """KIP-878's own applications: every key stays, and only new keys go to new partitions."""
        given = pinned(8, 8, policy)
        assert found(given) == []
        (customers,) = (i for i in given.plan.inputs if i.topic == "shop-customers")
        assert (customers.earlier, customers.current, customers.grows) == (4, 8, False)
        changelogs = given.plan.changelogs
        assert {(m.source_partitions, m.target_partitions) for m in changelogs} == {(4, 8)}
        start = input_starts(given.plan.inputs, {i.topic: {0: 7} for i in given.plan.inputs})
        assert start["shop-customers"] == {0: 7, **dict.fromkeys(range(1, 8), 0)}

    @pytest.mark.parametrize("policy", ["paused", "fixed", "repartitioned"])
    def test_keys_of_new_partitions_have_none_by_the_old_count(self, policy: str) -> None:
        """The function is asked with both counts. With the old count, it names partitions that did not exist."""
        old = tuple(key for key in KEYS if int(key.rpartition(b"-")[2]) % 8 < 4)
        fields = all_placed_by("shop", NUMBERED)
        orders, customers = fields["inputs"]
        fields["inputs"] = [orders, {**customers, "policy": policy}]
        of_old = {
            topic: [made for made in its if made.partition < 4]
            for topic, its in records("shop", 8, NUMBERED).items()
        }
        made = sampled({**of_old, "shop-customers": placed(KEYS, 8, NUMBERED)})
        assert len(of_old["shop-totals-changelog"]) == len(old)
        given = situation(8, topics=with_counts(customers=8), samples=samples(**made), group=STOPPED, **fields)
        assert found(given) == []

    def test_it_is_not_grown_further_because_nobody_could_drain_it(self) -> None:
        (finding,) = found(pinned(8, 16, "paused"))
        assert "With a static partitioner (KIP-878), ask for 8 partitions" in finding

    def test_an_unkeyed_input_is_gone_on_with(self) -> None:
        unjoined = Topology(
            (
                SubTopology(0, ("shop-orders",), (), ("by-customer-repartition",)),
                SubTopology(1, ("by-customer-repartition",), ("totals",), ()),
            )
        )
        given = situation_of(
            situation(8, inputs=INPUTS[:1]).application,
            unjoined,
            8,
            replace(
                situation(topics=with_counts(orders=8)).cluster,
                ends={("shop-orders", p): 5 for p in range(8)},
                committed={("shop-orders", p): 5 for p in range(4)},
            ),
        )
        assert given.grown == {"shop-orders": 4}
        assert given.plan.inputs[0].earlier == 4
        assert not given.plan.inputs[0].grows


class TestSigns:
    """The signs of a growth of the re-keyed orders, if their new partitions have no records."""

    UNJOINED = Topology(
        (
            SubTopology(0, ("shop-orders",), (), ("by-customer-repartition",)),
            SubTopology(1, ("by-customer-repartition",), ("totals",), ()),
        )
    )

    def grown(self, control: ControlState | None = None, **fields: Any) -> dict[str, int]:
        given = situation(8, topics=with_counts(orders=8), inputs=INPUTS[:1], **fields)
        return replace(given, topology=self.UNJOINED, control=control or ControlState()).grown

    def test_nothing_tells_it(self) -> None:
        assert self.grown() == {}

    def test_the_record_of_the_watch_does(self) -> None:
        record = Autoscaling(inputs={"shop-orders": 4})
        assert self.grown(ControlState(autoscaling=record)) == {"shop-orders": 4}

    @pytest.mark.parametrize("count", ["derived", "joined"])
    def test_the_file_does(self, count: str) -> None:
        assert self.grown(repartitions=[{"name": "by-customer", "count": count}]) == {"shop-orders": 4}

    def test_an_entry_that_does_not_mention_the_count_does_not(self) -> None:
        assert self.grown(repartitions=[{"name": "by-customer", "partitioner": "murmur2"}]) == {}

    def test_an_expansion_does_because_its_generation_has_started_on_derived_counts(self) -> None:
        generations = Generations(running="shop", generation=2, partitions=4)
        assert self.grown(ControlState(generations=generations)) == {"shop-orders": 4}

    def test_preflight_names_the_way_on(self) -> None:
        given = replace(situation(8, topics=with_counts(orders=8), inputs=INPUTS[:1]), topology=self.UNJOINED)
        (finding,) = derived_repartitions(given)
        for part in ("can't be undone, and need not be", "`count: derived`", "first record in a new partition"):
            assert part in str(finding)
        assert "undo that" not in str(finding)


class TestRouting:
    MOVE = Move(
        kind=MoveKind.INPUT,
        source="a",
        target="b",
        store="a",
        source_partitions=8,
        target_partitions=12,
        earlier_partitions=4,
    )

    @pytest.mark.parametrize("count", [4, 8])
    def test_records_placed_with_either_count_are_carried_on(self, count: int) -> None:
        expected = [made.partition for made in placed(KEYS, 12)]
        found = [Router(self.MOVE).targets([made.key], made.partition)[0] for made in placed(KEYS, count)]
        assert found == expected

    def test_one_that_fits_neither_is_not(self) -> None:
        elsewhere = next(m for m in placed(KEYS, 8) if m.partition < 4)
        with pytest.raises(UnsafeState):
            Router(self.MOVE).targets([elsewhere.key], (elsewhere.partition + 1) % 4)
