"""Preflight of the topics that follow ``repartitioned`` inputs: whom else could the expansion meet there?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.cluster import TopicDescription
from kafka_rescale.core.control.bridge import Bridge
from kafka_rescale.core.control.generations import Generations
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.core.plan.shared_inputs import Declared, Unusable
from kafka_rescale.core.preflight.bridge import successor_topics, unfinished_bridge
from kafka_rescale.core.preflight.situation import Situation
from kafka_rescale.operations.application.load import topology_of
from kafka_rescale.operations.preflight.neighbours import neighbours

from tests.support.application_files import CHAIN, write_application
from tests.support.situations import INPUTS, found, situation

TOPIC = "shop-customers"
NAME = "shop-customers-p8"
SHOP = [INPUTS[0], {**INPUTS[1], "policy": "repartitioned"}]
TOLD = {**CHAIN["lifecycle"], "start": f"true {{application_id}} {{input:{TOPIC}}}"}


def fields(topic: str = TOPIC, policy: str = "repartitioned", **changes: Any) -> dict[str, Any]:
    """The declaration of another application with a table of a topic."""
    return {
        **CHAIN,
        "application_id": "crm",
        "inputs": [{"topic": topic, "policy": policy, "isolation_level": "read_committed"}],
        "subtopologies": [{"sources": [topic], "stores": ["table"], "sinks": ["totals"]}],
        "stores": [{"name": "table", "type": "timestamped-key-value"}],
        "lifecycle": TOLD if policy == "repartitioned" else CHAIN["lifecycle"],
        **changes,
    }


def other(topic: str = TOPIC, policy: str = "repartitioned", **changes: Any) -> Declared:
    made = Application.model_validate(fields(topic, policy, **changes))
    return made, topology_of(made)


def with_successor(text: str) -> Declared:
    (declared,) = fields()["inputs"]
    return other(inputs=[{**declared, "successor": text}])


def beside(*others: Declared, records: int | None = None, partitions: int = 8, **changes: Any) -> Situation:
    """The shop before its expansion to 8 partitions.

    :param records: in the topic that is to follow; None if there is no such topic.
    """
    made = {} if records is None else {NAME: TopicDescription(NAME, partitions, 1)}
    return situation(8, inputs=SHOP, topics=made, green_records={NAME: records or 0}, neighbours=others, **changes)


@pytest.mark.parametrize("records", [None, 0, 1000])
def test_two_applications_do_not_bridge_into_one_topic(records: int | None) -> None:
    assert found(beside(other(), records=records)) == [
        f"topic '{NAME}': found the name that application crm may give to the topic that follows {TOPIC}; "
        "expected a topic of its own: the bridges of both would carry every record into it. Give another name as "
        "`successor:` here, such as `{topic}-shop-p{partitions}`, and leave the topic as it is: crm may read it."
    ]


def test_a_successor_of_its_own_in_one_of_the_files_is_enough() -> None:
    assert found(beside(with_successor("{topic}-crm-p{partitions}"))) == []


def test_another_cluster_may_have_a_topic_of_this_name() -> None:
    assert found(beside(other(kafka_conn_id="another_cluster"))) == []


TABLE = {"name": "table", "type": "timestamped-key-value"}
READS = other(NAME, "fixed")
WRITES = other(
    "payments",
    "fixed",
    outputs=[{"topic": NAME}],
    subtopologies=[{"sources": ["payments"], "stores": ["table"], "sinks": [NAME]}],
)


@pytest.mark.parametrize("user", [READS, WRITES], ids=["reads", "writes"])
@pytest.mark.parametrize(
    "spoilt",
    [{"records": 1000}, {"records": 0, "emptied": {NAME}}, {"records": 0, "partitions": 6}],
    ids=["records", "emptied", "another count"],
)
def test_a_topic_that_another_application_names_is_not_to_be_deleted(
    user: Declared, spoilt: dict[str, Any]
) -> None:
    (alone,), (finding,) = found(beside(**spoilt)), found(beside(user, **spoilt))
    assert f"`kafka-topics.sh --delete --topic {NAME}`" in alone
    assert "--delete" not in finding
    assert (
        "Give another name as `successor:`, and leave the topic as it is: application crm may need it." in finding
    )


def test_a_file_that_can_not_be_used_may_need_the_topic() -> None:
    (finding,) = found(beside(records=5, unusable=(Unusable("crm.yaml", frozenset({NAME})),)))
    assert "leave the topic as it is: crm.yaml may need it." in finding


@pytest.mark.parametrize("records", [None, 0])
def test_another_application_may_wait_for_the_topic(records: int | None) -> None:
    assert found(beside(READS, records=records)) == []


def test_the_files_that_name_or_match_the_topic_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_RESCALE_APPLICATIONS", str(tmp_path))
    succeeding = {
        "inputs": [{**fields()["inputs"][0], "topic": "clients", "successor": f"{TOPIC}-p{{partitions}}"}]
    }
    commands = {**CHAIN["lifecycle"], "start": "true {application_id} {input:clients}"}
    write_application(
        tmp_path, **{**fields("clients"), **succeeding, "application_id": "bridges", "lifecycle": commands}
    )
    matching = {"source_patterns": {".*-p[0-9]+": ["a-p1"]}, "inputs": [{"topic": "a-p1", "policy": "fixed"}]}
    write_application(tmp_path, **{**fields("a-p1", "fixed"), **matching, "application_id": "matches"})
    write_application(tmp_path, **{**fields("payments", "fixed"), "application_id": "others"})
    assert {each.application_id for each, _ in neighbours(beside()).declared} == {"bridges", "matches"}


class TestPatterns:
    def test_a_pattern_of_another_application_must_not_match(self) -> None:
        pattern = f"{TOPIC}.*"
        assert found(beside(other(policy="fixed", source_patterns={pattern: [TOPIC]}))) == [
            f"source pattern {pattern} of application crm: found a match for {NAME}, which the expansion is about "
            f"to create; expected no match: crm would read what the bridge carries on, too, beside {TOPIC}. Give "
            "another name as `successor:`, or narrow the pattern in the program of crm."
        ]

    def test_what_its_file_lists_is_meant(self) -> None:
        listed = other(NAME, "fixed", source_patterns={f"{TOPIC}-p.*": [NAME]})
        assert found(beside(listed)) == []

    @pytest.mark.parametrize("visible", [{NAME}, set()], ids=["present", "absent"])
    def test_an_own_pattern_must_not_match(self, visible: set[str]) -> None:
        pattern = f"shop-orders|{NAME}"
        given = beside(records=0 if visible else None, visible=frozenset({TOPIC, "shop-orders", *visible}))
        application = given.application.model_copy(update={"source_patterns": {pattern: ["shop-orders"]}})
        (finding,) = found(replace(given, application=application))
        assert (
            f"source pattern {pattern}: found a match for {NAME}, which the expansion is about to create"
            in finding
        )


class TestWayBack:
    """The shop has gone from 4 to 8 partitions and back. It is to have 8 once more."""

    FIRST = "shop-customers-p4"

    def twice(self, ended_at_ms: int, last: int = 50) -> Situation:
        back = self.back()
        done = Journal(plan=back, phase=Phase.COMPLETE)
        bridge = Bridge(plan=back.fingerprint, begun=True, ended_at_ms=ended_at_ms, ends={NAME: {0: 50}})
        return self.running(
            8,
            4,
            self.FIRST,
            journal=done,
            bridge=bridge,
            bridged_ends={NAME: {0: last}},
            green_records={NAME: 1000},
        )

    def back(self) -> Plan:
        return self.running(4, 8, NAME).plan

    def running(self, target: int, partitions: int, read: str, **changes: Any) -> Situation:
        control = {k: changes.pop(k) for k in ("journal", "bridge") if k in changes}
        generations = Generations(running="shop", partitions=partitions, inputs={TOPIC: read})
        topics = {self.FIRST: TopicDescription(self.FIRST, 4, 1), NAME: TopicDescription(NAME, 8, 1)}
        state = ControlState(generations=generations, **control)
        return situation(target, inputs=SHOP, topics=topics, control=state, **changes)

    @pytest.mark.parametrize(("ended_at_ms", "last"), [(0, 50), (5, 51)], ids=["at work", "late records"])
    def test_the_source_of_the_own_bridge_is_not_to_be_deleted(self, ended_at_ms: int, last: int) -> None:
        given = self.twice(ended_at_ms, last)
        assert list(successor_topics(given)) == []
        (finding,) = map(str, unfinished_bridge(given))
        assert f"bridge from '{NAME}' to '{self.FIRST}'" in finding

    def test_once_the_bridge_has_ended_it_may_be(self) -> None:
        (finding,) = map(str, successor_topics(self.twice(5)))
        assert f"`kafka-topics.sh --delete --topic {NAME}`" in finding
