"""The policy ``repartitioned``: names, plan, preflight, what the program is told, and where green starts."""

from __future__ import annotations

import zlib
from dataclasses import replace
from typing import Any

import pytest
from kafka_rescale.core.application.checks.declaration import check_declaration
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.application.topics import Input, InputPolicy
from kafka_rescale.core.cluster import TopicDescription
from kafka_rescale.core.control.bridge import Bridge
from kafka_rescale.core.control.generations import Generations
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import InvalidInput, UnsafeState
from kafka_rescale.core.formats.samples import Sample
from kafka_rescale.core.partitioning.murmur2 import murmur2
from kafka_rescale.core.plan.external_topics import InputPlan
from kafka_rescale.core.plan.instances import blue, green
from kafka_rescale.core.plan.plan import Move, MoveKind, Plan
from kafka_rescale.core.plan.planning import build_plan
from kafka_rescale.core.preflight.check import messages
from kafka_rescale.core.verify.start_offsets import check_start_offsets
from kafka_rescale.kafka.copy.router import Router
from kafka_rescale.lifecycle.instance import Instance
from kafka_rescale.lifecycle.shell import command_line
from kafka_rescale.operations.application.load import topology_of
from pydantic import ValidationError

from tests.support.situations import INPUTS, RUNNING, found, misplaced, samples, situation

START = "run.sh start {application_id} {input:orders}"
STOP = "true {application_id}"
ORDERED: dict[str, Any] = {
    "application_id": "ordered",
    "partitions": 8,
    "inputs": [{"topic": "orders", "policy": "repartitioned", "isolation_level": "read_committed"}],
    "outputs": [{"topic": "totals"}],
    "subtopologies": [{"sources": ["orders"], "stores": ["last"], "sinks": ["totals"]}],
    "stores": [{"name": "last", "type": "timestamped-key-value"}],
    "lifecycle": {"type": "shell", "start": START, "stop": STOP, "status": STOP},
}
SHOP = [INPUTS[0], {**INPUTS[1], "policy": "repartitioned"}]
SUCCESSOR = "shop-customers-p8"


def plan(current: int, target: int, renamed: dict[str, str] | None = None, **changes: Any) -> Plan:
    """The plan of ORDERED when every topic has ``current`` partitions."""
    application = Application.model_validate({**ORDERED, **changes})
    read = [(renamed or {}).get(i.topic, i.topic) for i in application.inputs]
    counts = dict.fromkeys((*read, "totals", "ordered-last-changelog"), current)
    topology = topology_of(application)
    return build_plan(
        application, topology, blue="ordered", generation=2, current=counts, target=target, renamed=renamed
    )


def mistakes(**changes: Any) -> list[str]:
    application = Application.model_validate({**ORDERED, **changes})
    return [m.complaint.found for m in check_declaration(application, topology_of(application))]


class TestPlan:
    @pytest.mark.parametrize(("current", "target"), [(4, 8), (4, 6), (8, 3)])
    def test_a_new_topic_of_any_count_follows_the_old_one_and_the_old_one_keeps_its_own(
        self, current: int, target: int
    ) -> None:
        given = plan(current, target)
        (read,) = given.inputs
        assert (read.topic, read.green_topic, read.grows) == ("orders", f"orders-p{target}", False)
        (bridge,) = given.bridges
        assert (bridge.kind, bridge.source, bridge.target) == (MoveKind.INPUT, "orders", f"orders-p{target}")
        assert (bridge.source_partitions, bridge.target_partitions) == (current, target)
        assert {m.target_partitions for m in given.moves} == {target}

    def test_the_bridge_is_none_of_the_internal_topics_that_retire_deletes(self) -> None:
        given = plan(4, 8)
        assert {m.kind for m in given.moves} == {MoveKind.CHANGELOG}
        assert given.bridge_group != given.copy_group

    def test_nothing_follows_an_input_that_has_the_count_already(self) -> None:
        given = plan(8, 8)
        assert given.bridges == ()
        assert given.inputs[0].green_topic == "orders"

    def test_the_next_expansion_goes_on_from_the_successor(self) -> None:
        (read,) = plan(8, 16, renamed={"orders": "orders-p8"}).inputs
        assert (read.declared, read.topic, read.green_topic) == ("orders", "orders-p8", "orders-p16")

    def test_an_input_of_two_sub_topologies_has_one_bridge_in_the_stage_that_comes_first(self) -> None:
        both = [{"sources": ["orders"], "stores": ["last"]}, {"sources": ["orders"], "sinks": ["totals"]}]
        first, second = plan(4, 8, subtopologies=both).stages
        assert [len(s.bridges) for s in (first, second)] == [1, 0]

    def test_the_name_may_be_given(self) -> None:
        named = Input(topic="orders", policy=InputPolicy.REPARTITIONED, successor="{partitions}.of.{topic}")
        assert named.successor_topic(12) == "12.of.orders"

    @pytest.mark.parametrize("name", ["{unknown}", "no spaces", "{", ""])
    def test_a_name_that_no_topic_can_have_is_refused(self, name: str) -> None:
        with pytest.raises(ValidationError, match="name of a topic"):
            Input(topic="orders", policy=InputPolicy.REPARTITIONED, successor=name)


class TestWhatTheProgramIsTold:
    def test_each_generation_gets_the_topic_that_it_has_to_read(self) -> None:
        given = plan(4, 8)
        assert command_line(START, blue(given))[-1] == "orders"
        assert command_line(START, green(given))[-1] == "orders-p8"

    def test_an_input_that_is_not_declared_is_an_error(self) -> None:
        with pytest.raises(InvalidInput, match=r"\{input:payments\}"):
            command_line("start {input:payments}", Instance("a", 1, 4, {"orders": "orders"}))


class TestDeclaration:
    def test_a_sound_file(self) -> None:
        assert mistakes() == []

    def test_a_program_that_is_not_told_its_topic_could_never_read_the_next_one(self) -> None:
        lifecycle = {**ORDERED["lifecycle"], "start": "run.sh start {application_id}"}
        assert mistakes(lifecycle=lifecycle) == ["a start command without {input:orders}"]

    def test_a_successor_belongs_to_this_policy(self) -> None:
        paused = {"topic": "orders", "policy": "paused", "successor": "orders-v2"}
        assert mistakes(inputs=[paused]) == ["a successor for an input with policy paused"]

    @pytest.mark.parametrize("said", [{}, {"isolation_level": "read_uncommitted"}])
    def test_a_program_that_may_read_what_was_taken_back_is_refused(self, said: dict[str, str]) -> None:
        application = Application.model_validate(
            {**ORDERED, "inputs": [{"topic": "orders", "policy": "repartitioned", **said}]}
        )
        [mistake] = check_declaration(application, topology_of(application))
        assert str(mistake.complaint) == (
            "inputs[0].isolation_level: found read_uncommitted for orders, which comes through a bridge; expected "
            "read_committed: what a killed bridge has taken back would be processed, and then once more. Run the "
            "program with processing.guarantee=exactly_once_v2 or main.consumer.isolation.level=read_committed, "
            "then declare `isolation_level: read_committed` here."
        )

    def test_other_policies_have_no_bridge_and_may_read_as_they_like(self) -> None:
        assert mistakes(inputs=[{"topic": "orders", "policy": "paused"}]) == []

    @pytest.mark.parametrize("taken", ["totals", "orders"])
    def test_a_successor_must_not_be_another_topic_of_the_application(self, taken: str) -> None:
        named = {**ORDERED["inputs"][0], "successor": taken}
        assert mistakes(inputs=[named]) == [f"the successor {taken}, which is a topic of its own"]


class TestPreflight:
    def test_a_keyed_input_may_be_repartitioned(self) -> None:
        assert found(situation(8, inputs=SHOP)) == []

    def test_records_in_the_successor_are_refused(self) -> None:
        made = {SUCCESSOR: TopicDescription(SUCCESSOR, 8, 1)}
        (finding,) = found(situation(8, inputs=SHOP, topics=made, green_records={SUCCESSOR: 3}))
        assert "found 3 records in the topic that is to follow shop-customers" in finding

    def test_an_empty_topic_of_the_right_count_may_have_been_made_beforehand(self) -> None:
        made = {SUCCESSOR: TopicDescription(SUCCESSOR, 8, 1)}
        assert found(situation(8, inputs=SHOP, topics=made, green_records={SUCCESSOR: 0})) == []

    def test_a_topic_that_retention_has_emptied_is_refused(self) -> None:
        made = {SUCCESSOR: TopicDescription(SUCCESSOR, 8, 1)}
        emptied = situation(8, inputs=SHOP, topics=made, green_records={SUCCESSOR: 0}, emptied={SUCCESSOR})
        (finding,) = found(emptied)
        assert "found a topic whose records were deleted, and that is to follow shop-customers" in finding

    def test_an_empty_topic_of_another_count_is_refused(self) -> None:
        made = {SUCCESSOR: TopicDescription(SUCCESSOR, 6, 1)}
        (finding,) = found(situation(8, inputs=SHOP, topics=made, green_records={SUCCESSOR: 0}))
        assert "found 6 partitions in the topic that is to follow shop-customers" in finding

    def test_the_partitioner_is_checked_against_the_data(self) -> None:
        spoilt = samples(**misplaced("shop-customers"))
        (finding,) = found(situation(8, inputs=SHOP, samples=spoilt))
        assert "All of them fit crc32" in finding

    def test_records_without_a_key_are_no_hindrance(self) -> None:
        keyless = samples(**{"shop-customers": [Sample("shop-customers", 1, 0, None, 1)]})
        assert found(situation(8, inputs=SHOP, samples=keyless)) == []

    def refused_after(self, ended_at_ms: int, ends: dict[int, int]) -> list[str]:
        done = Journal(plan=situation(8, inputs=SHOP).plan, phase=Phase.COMPLETE)
        seen = {"shop-customers": {0: 10, 1: 20}}
        bridge = Bridge(plan=done.plan.fingerprint, begun=True, ended_at_ms=ended_at_ms, ends=seen)
        control, now = ControlState(journal=done, bridge=bridge), {"shop-customers": ends}
        given = situation(16, inputs=SHOP, control=control, bridged_ends=now)
        return [finding for finding in found(given) if "bridge" in finding]

    @pytest.mark.parametrize(("ended_at_ms", "findings"), [(0, 1), (5, 0)])
    def test_the_next_expansion_waits_for_the_end_of_the_bridge(self, ended_at_ms: int, findings: int) -> None:
        assert len(self.refused_after(ended_at_ms, {0: 10, 1: 20})) == findings

    def test_the_bridge_is_named_for_an_expansion_that_needs_one(self) -> None:
        (told,) = (line for line in messages(situation(8, inputs=SHOP)) if "bridge" in line)
        assert told == (
            f"bridge_shop carries records on to {SUCCESSOR}: the cutover waits until it is up, so it must "
            "not be paused."
        )
        assert not any("bridge" in line for line in messages(situation(4, inputs=SHOP)))

    def test_it_is_told_that_the_old_topic_has_partitions_which_nobody_carries_on(self) -> None:
        (finding,) = self.refused_after(0, dict.fromkeys(range(8), 10))
        assert "still carries records on, from 4 of its 8 partitions" in finding

    def test_the_next_expansion_leaves_no_late_records_of_the_old_topic_behind(self) -> None:
        (finding,) = self.refused_after(5, {0: 10, 1: 23})
        assert "came into the old topic after the bridge had ended, in partitions 1 (end 23)" in finding
        assert "bridge_shop" in finding

    def test_an_expansion_that_is_done_needs_no_end_of_the_bridge_to_say_so(self) -> None:
        done = Journal(plan=situation(8, inputs=SHOP).plan, phase=Phase.COMPLETE)
        assert found(situation(4, inputs=SHOP, control=ControlState(journal=done))) == []

    def test_the_running_generation_is_looked_at_under_the_names_that_it_reads(self) -> None:
        renamed = {"shop-customers": "customers-anew"}
        moved = {"customers-anew": TopicDescription("customers-anew", 4, 1, {"min.insync.replicas": "1"})}
        control = ControlState(generations=Generations(running="shop", inputs=renamed))
        given = situation(8, inputs=SHOP, control=control, topics={**moved, "shop-customers": None}, group=RUNNING)
        assert found(given) == []
        assert given.plan.inputs[1].topic == "customers-anew"
        gone = replace(given, cluster=replace(given.cluster, topics={}))
        assert any("topic 'customers-anew': found no such topic" in f for f in found(gone))


class TestStartOffsets:
    READ = InputPlan(
        topic="orders",
        policy=InputPolicy.REPARTITIONED,
        partitioner="murmur2",
        current=2,
        target=3,
        successor="orders-p3",
    )

    def findings(self, started: dict[str, dict[int, int]]) -> list[str]:
        stopped = {"orders": {0: 100, 1: 70}}
        found = check_start_offsets((self.READ,), stopped=stopped, started=started, committed=started)
        return [f.subject for f in found]

    def test_green_reads_the_successor_from_its_beginning(self) -> None:
        assert self.findings({"orders-p3": {0: 0, 1: 0, 2: 0}}) == []

    def test_blues_offsets_of_the_old_topic_would_skip_records_of_the_new_one(self) -> None:
        assert self.findings({"orders-p3": {0: 100, 1: 0, 2: 0}}) == ["orders-p3-0"]


class TestRouting:
    MOVE = Move(kind=MoveKind.INPUT, source="a", target="b", store="a", source_partitions=4, target_partitions=8)

    def test_keyless_records_are_dealt_out_over_all_partitions(self) -> None:
        assert sorted(Router(self.MOVE).targets([None] * 8, 2)) == list(range(8))

    def test_of_librdkafka_empty_keys_are_dealt_out_as_missing_ones_where_it_has_spread_them(self) -> None:
        """Its ``consistent_random`` spreads them, its ``consistent`` puts them where the hash says."""
        spread = self.MOVE.model_copy(update={"partitioner": "crc32"})
        home = zlib.crc32(b"a") % 4
        assert home != zlib.crc32(b"") % 4 == 0
        dealt = Router(spread).targets([b"", b"a", *[b""] * 6, None], home)
        assert sorted(dealt[:1] + dealt[2:]) == list(range(8))
        assert dealt[1] == zlib.crc32(b"a") % 8
        assert Router(spread).targets([b"", b""], 0) == [0, 0]
        with pytest.raises(UnsafeState, match="crc32 puts into partition"):
            Router(spread).targets([b"", b"a"], home + 1)
        with pytest.raises(UnsafeState, match="key 0x, which murmur2 puts into partition"):
            Router(self.MOVE).targets([b""], murmur2(b"") % 2**31 % 4 + 1)

    def test_state_of_an_empty_key_that_librdkafka_has_spread_is_refused_with_the_reason(self) -> None:
        changelog = {"kind": MoveKind.CHANGELOG, "store_type": "window", "partitioner": "crc32"}
        with pytest.raises(UnsafeState, match="librdkafka's default partitioner spreads empty keys"):
            Router(self.MOVE.model_copy(update=changelog)).targets([bytes(12)], 1)

    def test_a_key_goes_where_the_new_count_puts_it(self) -> None:
        assert Router(self.MOVE).targets([b"foobar", None], 2)[0] == 6

    def test_a_key_that_its_producer_put_elsewhere_stops_the_bridge(self) -> None:
        with pytest.raises(UnsafeState, match="murmur2 puts into partition 2"):
            Router(self.MOVE).targets([b"foobar"], 1)

    def test_of_a_topic_that_has_grown_since_every_count_that_producers_may_still_know_is_followed(self) -> None:
        grown = self.MOVE.model_copy(update={"source_partitions": 16})
        homes = {murmur2(b"foobar") % 2**31 % count for count in (4, 8, 16)}
        assert {Router(grown, (4, 8)).targets([b"foobar"], home)[0] for home in homes} == {6}
        with pytest.raises(UnsafeState, match="reset-offsets"):
            Router(grown, (4, 8)).targets([b"foobar"], 3)
