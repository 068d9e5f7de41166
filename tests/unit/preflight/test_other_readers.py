"""Preflight of topics that other applications read as well: they can't grow for one reader alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.application.topics import Input, InputPolicy
from kafka_rescale.core.plan.chain import ChainRun
from kafka_rescale.core.plan.shared_inputs import Declared, follows
from kafka_rescale.core.preflight.check import messages
from kafka_rescale.core.preflight.situation import Situation
from kafka_rescale.operations.application.load import topology_of
from kafka_rescale.operations.preflight.neighbours import neighbours

from tests.support.application_files import CHAIN, write_application
from tests.support.situations import FIXED, INPUTS, TOPICS, found, situation
from tests.support.small_application import application as shop
from tests.support.small_application import topology_text

EVERYONE = (
    "shop-orders, shop-customers: every other reader meets the growth. If a Kafka Streams application among them "
    "has internal topics that follow from it, the application shuts down at its next rebalance."
)


def reader(
    policy: str, topic: str = "shop-customers", *, partitioner: str = "murmur2", **changes: Any
) -> Declared:
    """Another application, with a table of a topic."""
    fields = {
        **CHAIN,
        "application_id": "other",
        "inputs": [{"topic": topic, "policy": policy, "partitioner": partitioner}],
        "subtopologies": [{"sources": [topic], "stores": ["table"], "sinks": ["totals"]}],
        "stores": [{"name": "table", "type": "timestamped-key-value"}],
        **changes,
    }
    made = Application.model_validate(fields)
    return made, topology_of(made)


def beside(*others: Declared, **changes: Any) -> Situation:
    """The shop, which grows from 4 to 8 partitions, beside other applications."""
    return situation(8, neighbours=others, **changes)


STATELESS = {"subtopologies": [{"sources": ["shop-customers"], "sinks": ["totals"]}], "stores": []}
RE_KEYED = {
    "subtopologies": [
        {"sources": ["shop-orders"], "sinks": ["by-id-repartition"]},
        {"sources": ["by-id-repartition"], "stores": ["table"]},
    ]
}


@pytest.mark.parametrize(
    "other",
    [
        reader("paused"),
        reader("fixed"),
        reader("unkeyed", "shop-orders", mode="in_place", **RE_KEYED),
    ],
)
def test_a_growth_under_a_reader_that_could_not_be_expanded_is_refused(other: Declared) -> None:
    (declared_input,) = other[0].inputs
    topic, policy = declared_input.topic, declared_input.policy
    assert found(beside(other)) == [
        f"topic '{topic}': found a growth from 4 to 8 partitions, while application other reads it with policy "
        f"{policy}; expected no growth under other: Kafka Streams would shut it down at its next rebalance, and "
        f"preflight would refuse to expand it from there. Declare `policy: fixed` for {topic} here; or "
        "`repartitioned`, which leaves the topic as it is."
    ]


@pytest.mark.parametrize(
    "other",
    [
        reader("unkeyed", "shop-orders", **RE_KEYED),
        reader("paused", partitioner="static:tests.support.user_partitioners:numbered"),
    ],
)
def test_a_reader_that_can_be_expanded_afterwards_is_named(other: Declared) -> None:
    topic = other[0].inputs[0].topic
    given = beside(other)
    assert found(given) == []
    assert (
        f"{topic}: application other reads it, too. Stop other before the topic grows, and trigger expand_other "
        "with target 8 afterwards: other goes on from its committed offsets."
    ) in messages(given)


@pytest.mark.parametrize("target", [6, 8])
def test_a_reader_that_may_read_a_successor_by_now_is_named(target: int) -> None:
    given = situation(target, neighbours=(reader("repartitioned"),))
    assert found(given) == found(situation(target))
    assert (
        "shop-customers: application other reads it, too, or its successor by now. Stop other before the topic "
        f"grows, and trigger expand_other with target {target} afterwards: other goes on from its committed "
        "offsets. If it reads the successor, there is nothing to do."
    ) in messages(given)


@pytest.mark.parametrize(
    "other",
    [
        reader("paused", "payments"),
        reader("paused", **STATELESS),
        reader("paused", kafka_conn_id="another_cluster"),
    ],
)
def test_of_other_topics_of_stateless_readers_and_of_other_clusters_nothing_is_said(other: Declared) -> None:
    given = beside(other)
    assert found(given) == []
    assert EVERYONE in messages(given)
    assert not any("application other" in text for text in messages(given))


def test_a_topic_that_stays_as_it_is_has_any_readers() -> None:
    fixed = [{**each, "policy": "fixed"} for each in INPUTS]
    given = beside(reader("paused"), inputs=fixed)
    assert found(given) == found(situation(8, inputs=fixed))
    assert not any("every other reader" in text or "application other" in text for text in messages(given))


def test_an_output_is_left_to_its_reader() -> None:
    outputs = [{"topic": "shop-totals", "partitions": 8}]
    (text,) = found(beside(reader("paused", "shop-totals"), outputs=outputs))
    assert text.endswith("Delete `partitions:` of this output: expand_other grows it.")
    (text,) = found(beside(reader("fixed", "shop-totals"), outputs=outputs))
    assert text.endswith("from there. Delete `partitions:` of this output.")
    alone = beside(outputs=outputs)
    assert found(alone) == []
    assert any(t.startswith("shop-orders, shop-customers, shop-totals: every other") for t in messages(alone))


def of_chain(run: ChainRun | None, *others: Declared) -> Situation:
    """The shop as a member of a chain, whose output is to have 8 partitions instead of 4."""
    given = beside(*others, outputs=[{"topic": "shop-totals", "partitions": 8}], chain_run=run)
    return replace(given, application=given.application.model_copy(update={"chain": "sales"}))


@pytest.mark.parametrize(
    ("policy", "chain", "grows"), [("paused", "sales", 1), ("fixed", "sales", 0), ("paused", "b", 0)]
)
def test_a_chain_that_expands_the_reader_first_grows_the_output(policy: str, chain: str, grows: int) -> None:
    given = of_chain(ChainRun(8), reader(policy, "shop-totals", chain=chain))
    assert len(found(given)) == 1 - grows


@pytest.mark.parametrize(
    ("target", "own", "has"), [(None, 8, 8), (None, 16, 16), (6, 16, 6), (None, 4, 4), (2, 8, 4)]
)
def test_a_reader_that_the_chain_leaves_smaller_is_named(target: int | None, own: int, has: int) -> None:
    texts = found(of_chain(ChainRun(target), reader("paused", "shop-totals", chain="sales", partitions=own)))
    assert texts == [
        "topic 'shop-totals': found a growth from 4 to 8 partitions, while application other reads it with policy "
        f"paused, and has {has} by then; expected 8 partitions in other before: Kafka Streams shuts it down at "
        "its next rebalance if the topic grows under it. Delete `partitions:` of this output: expand_other grows "
        "it. Or expand other to 8 first, with which expand_chain_sales begins."
    ] * (has < 8)


@pytest.mark.parametrize("policy", ["paused", "unkeyed"])
def test_a_member_of_a_chain_that_is_expanded_alone_leaves_the_output_to_its_reader(policy: str) -> None:
    given = of_chain(None, reader(policy, "shop-totals", chain="sales", partitions=16))
    (text,) = found(given)
    assert text == (
        "topic 'shop-totals': found a growth from 4 to 8 partitions, while application other reads it with policy "
        f"{policy}; expected 8 partitions in other before: Kafka Streams shuts it down at its next rebalance if "
        "the topic grows under it. Delete `partitions:` of this output: expand_other grows it. Or expand other to "
        "8 first, with which expand_chain_sales begins."
    )
    assert not any("application other" in message for message in messages(given))


def test_a_member_whose_reader_has_been_expanded_may_be_expanded_alone() -> None:
    given = of_chain(None, reader("paused", "shop-totals", chain="sales"))
    totals = replace(TOPICS["shop-totals"], partitions=8)
    cluster = replace(given.cluster, topics={**given.cluster.topics, "shop-totals": totals})
    assert found(replace(given, cluster=cluster)) == []


@pytest.mark.parametrize("chain", [None, "sales"])
@pytest.mark.parametrize("run", [None, ChainRun(8)])
def test_an_output_does_not_grow_under_a_reader_of_a_successor(run: ChainRun | None, chain: str | None) -> None:
    (text,) = found(of_chain(run, successor_reader("shop-totals", "totals-of-1", chain=chain)))
    assert text == (
        "topic 'shop-totals': found a growth from 4 to 8 partitions, while application other may read it as the "
        "successor of totals-of-1; expected 8 partitions in other before: Kafka Streams shuts it down at its next "
        "rebalance if the topic grows under it. Delete `partitions:` of this output: expand_other goes on with a "
        "new topic."
    )


def test_a_reader_of_a_successor_that_is_an_input_here_is_named() -> None:
    given = beside(successor_reader("shop-{topic}", "customers"))
    assert found(given) == []
    assert (
        "shop-customers: application other may read it as the successor of customers. Stop other before the "
        "topic grows, and trigger expand_other with target 8 afterwards: other goes on from its committed "
        "offsets. If it reads another topic by now, there is nothing to do."
    ) in messages(given)


def successor_reader(successor: str, topic: str, **changes: Any) -> Declared:
    """Another application that goes on with successors of a topic."""
    inputs = [{"topic": topic, "policy": "repartitioned", "successor": successor}]
    return reader("repartitioned", topic, inputs=inputs, **changes)


@pytest.mark.parametrize(
    ("successor", "topic", "is_one"),
    [
        (None, "x-p8", True),
        (None, "x-p16", True),
        (None, "x", False),
        (None, "x-p", False),
        (None, "y-p8", False),
        ("{topic}1{partitions}", "x18", True),
        ("v2-of-{topic}", "v2-of-x", True),
        ("v{partitions}-of-{topic}", "v2-of-x", True),
    ],
)
def test_successors_are_known_by_their_names(successor: str | None, topic: str, *, is_one: bool) -> None:
    declared = Input(topic="x", policy=InputPolicy.REPARTITIONED, successor=successor)
    assert declared.may_be_followed_by(topic) is is_one
    kept = Input(topic="x", policy=InputPolicy.PAUSED)
    assert not kept.may_be_followed_by(topic)


def test_a_file_that_names_the_topic_before_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_RESCALE_APPLICATIONS", str(tmp_path))
    other, _ = reader("paused")
    for name, topic in (("reads-it", "shop"), ("reads-another", "payments")):
        moved = {"policy": "repartitioned", "successor": "{topic}-customers", "isolation_level": "read_committed"}
        commands = {**CHAIN["lifecycle"], "start": f"true {{application_id}} {{input:{topic}}}"}
        fields = {
            **declared_fields(other, topic),
            "inputs": [{"topic": topic, **moved}],
            "lifecycle": commands,
        }
        write_application(tmp_path, **{**fields, "application_id": name})
    assert [each.application_id for each, _ in neighbours(situation(8)).declared] == ["reads-it"]


def test_a_global_store_is_restarted() -> None:
    table = (
        "  Sub-topology: 2 for global store (will not generate tasks)\n"
        "    Source: again-source (topics: [shop-customers])\n"
        "      --> again-update\n"
        "    Processor: again-update (stores: [again])\n"
        "      --> none\n"
        "      <-- again-source\n"
    )
    other = shop("bar", topology=topology_text("bar") + table)
    given = beside((other, topology_of(other)))
    assert found(given) == []
    assert (
        "shop-customers: application bar reads it into a global store. Restart the application after the growth: "
        "a running client does not read partitions that are added."
    ) in messages(given)


@pytest.mark.parametrize(("count", "expected"), [("derived", True), ("start_command", False), ("fixed", False)])
def test_a_count_that_the_program_sets_does_not_follow(count: str, *, expected: bool) -> None:
    fields = {**RE_KEYED, "repartitions": [{"name": "by-id", "count": count}]}
    assert follows(reader("unkeyed", "shop-orders", **fields), "shop-orders") is expected


def test_the_files_of_the_directory_that_name_a_topic_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_RESCALE_APPLICATIONS", str(tmp_path))
    other, _ = reader("paused")
    for name, topic in (("reads-it", "shop-customers"), ("reads-another", "payments"), ("shop", "shop-customers")):
        fields = declared_fields(other, topic)
        write_application(tmp_path, **{**fields, "application_id": name})
    (tmp_path / "broken.yaml").write_text("application_id: broken\ninputs: [shop-customers]\n")
    assert [each.application_id for each, _ in neighbours(situation(8)).declared] == ["reads-it"]
    assert found(replace(situation(8), neighbours=neighbours(situation(8)).declared)) != []
    monkeypatch.setenv("KAFKA_RESCALE_APPLICATIONS", str(tmp_path / "nowhere"))
    assert neighbours(situation(8)).declared == ()


def test_a_file_that_names_a_topic_and_can_not_be_used_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("KAFKA_RESCALE_APPLICATIONS", str(tmp_path))
    (tmp_path / "broken.yaml").write_text("application_id: broken\ninputs: [shop-customers]\n")
    (tmp_path / "unrelated.yaml").write_text("application_id: broken\ninputs: [payments]\n")
    assert neighbours(situation(8)).declared == ()
    (told,) = caplog.messages
    assert "broken.yaml reads or writes a topic" in told


def with_files(given: Situation) -> Situation:
    """Preflight's situation with what the files in the directory tell."""
    beside = neighbours(given)
    return replace(given, neighbours=beside.declared, unusable=beside.unusable)


FIELDS = {"application_id": "other", "inputs": [{"topic": "shop-customers", "policy": "no such policy"}]}
MOVED = [{"topic": "shop", "policy": "repartitioned", "successor": "{topic}-customers"}]


@pytest.mark.parametrize(
    ("text", "topics"),
    [
        (yaml.safe_dump(FIELDS), ["shop-customers"]),
        ("inputs: [\n  - topic: shop-customers\n - topic: shop-orders", ["shop-orders", "shop-customers"]),
        (yaml.safe_dump({**FIELDS, "inputs": MOVED}), ["shop-customers"]),
        (yaml.safe_dump({"application_id": "other", "topology": "(topics: [shop-orders])"}), ["shop-orders"]),
        ("application_id: other\ntopology: other.txt\n", ["shop-orders"]),
        # Files that have nothing to do with what grows:
        ("inputs: [\n  - topic: my-shop-customers\n  - topic: shop-orders.v2\n  - topic: shop-totals", []),
        (yaml.safe_dump({**FIELDS, "inputs": ["payments"], "notes": "unlike shop-orders"}), []),
        (yaml.safe_dump({**FIELDS, "application_id": "shop"}), []),
        (yaml.safe_dump({**FIELDS, "kafka_conn_id": "another_cluster"}), []),
        (yaml.safe_dump({**FIELDS, "runtime": "spark"}), []),
    ],
)
def test_a_topic_does_not_grow_while_a_file_that_can_not_be_used_names_it_as_an_input(
    text: str, topics: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_RESCALE_APPLICATIONS", str(tmp_path))
    file = tmp_path / "broken.yaml"
    file.write_text(text)
    (tmp_path / "other.txt").write_text("      Source: source (topics: [shop-orders])\n")
    assert found(with_files(situation(8))) == [
        f"topic '{topic}': found a growth from 4 to 8 partitions, while {file} names it and can't be used; "
        "expected a file that tells whether its application can go on: Kafka Streams shuts down an application "
        "under which an input grows. `python -m kafka_rescale validate FILE` says what is wrong with it. Mend it; "
        "or move it out of the directory if nothing runs by it."
        for topic in topics
    ]
    fixed = with_files(situation(8, inputs=FIXED))
    assert found(fixed) == found(situation(8, inputs=FIXED)), "nothing grows"


def test_a_topic_that_only_the_file_of_the_topology_names_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The topic of a global store is not declared as an input."""
    monkeypatch.setenv("KAFKA_RESCALE_APPLICATIONS", str(tmp_path))
    (tmp_path / "other.yaml").write_text("application_id: other\ntopology: other.txt\n")
    (tmp_path / "other.txt").write_text("      Source: KSTREAM-SOURCE-0000000001 (topics: [shop-customers])\n")
    assert neighbours(situation(8)).declared == ()
    assert "other.yaml" in caplog.text, "it is looked at, though it can't be used"


def declared_fields(other: Application, topic: str) -> dict[str, Any]:
    """The fields in which a reader differs from the chain, with another topic."""
    return {
        "inputs": [{"topic": topic, "policy": "paused"}],
        "subtopologies": [{"sources": [topic], "stores": ["table"], "sinks": ["totals"]}],
        "stores": [{"name": s.name, "type": s.type} for s in other.stores],
    }
