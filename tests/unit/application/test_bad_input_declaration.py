"""Contradictions between an application file and its own topology."""

from __future__ import annotations

from typing import Any

import pytest
from kafka_rescale.core.application.checks.declaration import check_declaration
from kafka_rescale.core.application.generation_names import green_names
from kafka_rescale.operations.application.load import topology_of

from tests.support.small_application import application, declared

FIELDS = declared("shop")
ORDERS, CUSTOMERS = FIELDS["inputs"]
STORES = FIELDS["stores"]


def mistakes(**changes: Any) -> list[str]:
    """Every mistake as a text, with its place."""
    given = application("shop", **changes)
    return [str(m.complaint) for m in check_declaration(given, topology_of(given))]


def test_a_sound_declaration_has_no_mistakes() -> None:
    assert mistakes() == []
    assert mistakes(repartitions=[{"name": "by-customer", "count": "start_command"}]) == []
    assert mistakes(inputs=[ORDERS, {**CUSTOMERS, "producers": {"stop": "true", "start": "true"}}]) == []
    assert mistakes(inputs=[{**ORDERS, "policy": "fixed"}, {**CUSTOMERS, "policy": "fixed"}]) == []


CASES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "a sub-topology that reads what it has re-keyed": (
        {"topology": FIELDS["topology"].replace("[shop-orders]", "[shop-orders, by-customer-repartition]")},
        [
            "topology: found sub-topologies [0] that feed themselves or each other by repartition topics; "
            "expected sub-topologies of which one is the most downstream. Such a circle can't be expanded. Cut "
            "it, for example into two applications."
        ],
    ),
    "unknown store": (
        {"stores": [*STORES[:3], {"name": "visit", "type": "session"}]},
        [
            "stores[3].name: found the store visit, which the topology does not have; expected one of "
            "customers, totals, hourly, visits. Did you mean visits?",
            "stores: found no declaration of store visits, which the topology has; expected every store of "
            "the topology. Add `- {name: visits, type: …}`; the DSL's tables and aggregates are "
            "timestamped-key-value, windowed ones timestamped-window, those of session windows session, those of "
            "suppress one of suppress, suppress-window and suppress-session. If the program does not log it, add "
            "`- {name: visits, changelog: none}`.",
        ],
    ),
    "unknown input": (
        {"inputs": [{"topic": "payments", "policy": "unkeyed"}, CUSTOMERS]},
        [
            "inputs[0].topic: found the input topic payments, which the topology does not have; expected one "
            "of shop-orders, shop-customers. Correct the name, or paste the topology of the present program.",
            "inputs: found no declaration of input topic shop-orders, which the topology reads; expected "
            "every external topic that the topology reads. Add `- "
            "{topic: shop-orders, policy: unkeyed | paused | repartitioned | fixed}`.",
        ],
    ),
    "unknown output": (
        {"outputs": [{"topic": "shop-total"}]},
        [
            "outputs[0].topic: found the output topic shop-total, which the topology does not have; expected "
            "one of shop-totals. Did you mean shop-totals?"
        ],
    ),
    "unknown repartition": (
        {"repartitions": [{"name": "by-customer-repartition", "count": "start_command"}]},
        [
            "repartitions[0].name: found the repartition by-customer-repartition, which the topology does not "
            "have; expected one of by-customer. Did you mean by-customer?"
        ],
    ),
    "a store twice": (
        {"stores": [*STORES, STORES[0]]},
        ["stores[4]: found customers a second time; expected each name once. Delete one of the two."],
    ),
    "unkeyed for a keyed input": (
        {"inputs": [ORDERS, {**CUSTOMERS, "policy": "unkeyed"}]},
        [
            "inputs[1].policy: found unkeyed, while sub-topology 1 reads shop-customers and keeps customers, "
            "totals, hourly, visits; expected paused, repartitioned or fixed for an input whose keys decide where "
            "state is. Declare `policy: paused` (with `producers:` to hold them), `repartitioned` if they can't "
            "be held, or `fixed` if its count shall stay."
        ],
    ),
    "producers of an input that is not paused": (
        {"inputs": [{**ORDERS, "producers": {"stop": "true", "start": "true"}}, CUSTOMERS]},
        [
            "inputs[0].producers: found commands for the producers of an input with policy unkeyed; expected "
            "`producers:` with policy paused only. Delete them, or declare `policy: paused`."
        ],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_contradiction(case: str) -> None:
    changes, expected = CASES[case]
    assert mistakes(**changes) == expected


JOINED = {
    "topology": None,
    "outputs": [],
    "subtopologies": [{"sources": ["left", "right"], "stores": ["joined"]}],
    "stores": [{"name": "joined", "type": "window"}],
}


def test_two_joined_inputs_of_which_one_grows() -> None:
    inputs = [{"topic": "left", "policy": "paused"}, {"topic": "right", "policy": "fixed"}]
    assert mistakes(**JOINED, inputs=inputs) == [
        "inputs[1].policy: found fixed for right and paused for left, which sub-topology 0 reads: their counts "
        "would differ; expected either fixed for both or for none. Declare `policy: paused` for right, or "
        "`fixed` for left too."
    ]
    for policy in ("paused", "fixed"):
        assert mistakes(**JOINED, inputs=[{**i, "policy": policy} for i in inputs]) == []


def test_a_global_store_is_not_moved() -> None:
    assert mistakes(topology=GLOBAL) == []
    assert mistakes(topology=GLOBAL, stores=[*STORES, {"name": "rates", "type": "key-value"}]) == [
        "stores[4].name: found the global store rates; expected stores that tasks keep. Delete it: every "
        "instance reads a global store from its source topic, nothing has to be moved."
    ]


GLOBAL = FIELDS["topology"] + (
    "  Sub-topology: 2 for global store (will not generate tasks)\n"
    "    Source: rates-source (topics: [rates])\n"
    "      --> rates-update\n"
    "    Processor: rates-update (stores: [rates])\n"
    "      --> none\n"
    "      <-- rates-source\n"
)
RATES_AS_OUTPUT = GLOBAL.replace("(topic: shop-totals)", "(topic: rates)")


def test_the_topic_of_a_global_store_is_left_alone() -> None:
    assert mistakes(topology=GLOBAL, inputs=[ORDERS, CUSTOMERS, {"topic": "rates", "policy": "paused"}]) == [
        "inputs[2].topic: found rates, which only a global store reads; expected topics that tasks read. Delete "
        "it: every instance reads all partitions of it, whatever the parallelism."
    ]
    assert mistakes(topology=RATES_AS_OUTPUT, outputs=[{"topic": "rates"}]) == []
    assert mistakes(topology=RATES_AS_OUTPUT, outputs=[{"topic": "rates", "partitions": 8}]) == [
        "outputs[0].partitions: found the output rates, which a global store of the application reads; expected a "
        "count for outputs that only others read: they grow while the application runs. Delete `partitions:` "
        "here: the running application would not read the new partitions."
    ]


def test_the_subtopology_that_reads_a_repartition_topic_may_not_be_missing() -> None:
    cut = {
        "topology": FIELDS["topology"].partition("  Sub-topology: 1")[0],
        "inputs": [ORDERS],
        "stores": [],
        "outputs": [],
    }
    wrong = (
        "found by-customer-repartition, which is written and which no sub-topology reads; expected the "
        "sub-topology that reads it: the topology has been cut, or is not whole. Paste the whole text that "
        "Topology#describe() prints; if it is no repartition topic but an output with such a name, add "
        "`- {topic: by-customer-repartition}` to `outputs:`."
    )
    assert mistakes(**cut) == [f"topology: {wrong}"]
    assert mistakes(**{**cut, "outputs": [{"topic": "by-customer-repartition"}]}) == []
    spelled_out = [{"sources": ["shop-orders"], "sinks": ["by-customer-repartition"]}]
    assert mistakes(**{**cut, "topology": None, "subtopologies": spelled_out}) == [f"subtopologies: {wrong}"]


CIRCLE = FIELDS["topology"].replace("(topic: shop-totals)", "(topic: shop-customers)")
"""A topology whose output goes into its own input: the topic of the customers."""


def test_an_output_that_the_application_reads_itself_does_not_grow_under_it() -> None:
    inputs = [ORDERS, {**CUSTOMERS, "policy": "fixed"}]
    assert mistakes(topology=CIRCLE, inputs=inputs, outputs=[{"topic": "shop-customers"}]) == []
    assert mistakes(topology=CIRCLE, inputs=inputs, outputs=[{"topic": "shop-customers", "partitions": 8}]) == [
        "outputs[0].partitions: found the output shop-customers, which the application itself reads; expected a "
        "count for outputs that only others read: they grow while the application runs. Delete `partitions:` "
        "here. It can only grow as an input, by `policy: paused` for it and for all that leads to it; else "
        "declare `policy: fixed` in `inputs:`."
    ]


@pytest.mark.parametrize("policy", ["unkeyed", "fixed"])
def test_an_input_that_the_application_fills_can_only_be_held_with_all_that_leads_to_it(policy: str) -> None:
    """This also holds through a repartition topic: blue would go on filling the input while it is drained."""
    given = {"topology": CIRCLE, "outputs": []}
    assert mistakes(**given, inputs=[{**ORDERS, "policy": policy}, CUSTOMERS]) == [
        "inputs[1].policy: found paused for shop-customers, which the application itself writes; expected an "
        "input that can be held: it is filled as long as shop-orders comes in. Declare `policy: fixed`, or let "
        "the program go through repartition() instead of a topic of its own; or declare `policy: paused` for "
        "shop-orders, too."
    ]
    for of_customers in ("paused", "fixed"):
        inputs = [{**ORDERS, "policy": "paused"}, {**CUSTOMERS, "policy": of_customers}]
        assert mistakes(**given, inputs=inputs) == []


def test_an_input_that_the_application_fills_gets_no_bridge() -> None:
    told = {**FIELDS["lifecycle"], "start": "true {application_id} {input:shop-customers}"}
    bridged = {**CUSTOMERS, "policy": "repartitioned", "isolation_level": "read_committed"}
    given = {"lifecycle": told, "inputs": [ORDERS, bridged]}
    assert mistakes(**given) == []
    assert mistakes(**given, topology=CIRCLE, outputs=[]) == [
        "inputs[1].policy: found repartitioned for shop-customers, which the application itself writes; expected "
        "an input that others write: the new generation would write beside the bridge, so that the records of a "
        "key would change their order. Declare `policy: fixed`, or let the program go through repartition() "
        "instead of a topic of its own."
    ]


CHOOSING = FIELDS["topology"].replace(
    "(topic: shop-totals)", "(extractor class: shop.Router$$Lambda/0x1@5a39699c)"
)


def test_a_sink_that_chooses_its_topic_may_write_any_output() -> None:
    assert mistakes(topology=CHOOSING, outputs=[{"topic": "totals-de"}, {"topic": "totals-fr"}]) == []


def test_an_input_that_a_choosing_sink_writes_is_an_own_input() -> None:
    """The file tells that the sink writes it: it is declared as an output, too."""
    own = {"topology": CHOOSING, "outputs": [{"topic": "totals-de"}, {"topic": "shop-customers"}]}
    [text] = mistakes(**own)
    assert text.startswith(
        "inputs[1].policy: found paused for shop-customers, which the application itself writes; expected an "
        "input that can be held: it is filled as long as shop-orders comes in"
    )
    assert mistakes(**own, inputs=[{**ORDERS, "policy": "paused"}, CUSTOMERS]) == []
    assert mistakes(**own, inputs=[ORDERS, {**CUSTOMERS, "policy": "fixed"}]) == []


NAMED_AS_INTERNAL: dict[str, Any] = {
    "topology": None,
    "outputs": [],
    "subtopologies": [
        {"sources": ["clicks"], "sinks": ["user-clicks-repartition"]},
        {"sources": ["user-clicks-repartition"], "stores": ["per-user"]},
        {"sources": ["newsletter-subscription-registration-topic"], "stores": ["registered"]},
    ],
    "stores": [{"name": n, "type": "timestamped-key-value"} for n in ("per-user", "registered")],
    "inputs": [
        {"topic": "clicks", "policy": "unkeyed"},
        {"topic": "user-clicks-repartition", "policy": "fixed"},
        {"topic": "newsletter-subscription-registration-topic", "policy": "paused"},
    ],
}


def test_what_is_declared_as_an_input_is_one_whatever_it_is_called() -> None:
    """``through()`` has left topics with such names. Internal topics have the application id in front instead."""
    assert mistakes(**NAMED_AS_INTERNAL) == []
    topology = topology_of(application("shop", **NAMED_AS_INTERNAL))
    assert topology.repartitions == frozenset()
    assert topology.inputs == tuple(i["topic"] for i in NAMED_AS_INTERNAL["inputs"])
    assert [topology.source_of(s) for s in topology.stores] == list(topology.inputs[1:])
    without = {**NAMED_AS_INTERNAL, "inputs": [NAMED_AS_INTERNAL["inputs"][i] for i in (0, 2)]}
    assert topology_of(application("shop", **without)).repartitions == {"user-clicks-repartition"}


SOURCE_TABLE = [{**STORES[0], "changelog": "source"}, *STORES[1:]]


def test_a_table_whose_input_is_its_changelog_can_not_grow() -> None:
    fixed = [{**ORDERS, "policy": "fixed"}, {**CUSTOMERS, "policy": "fixed"}]
    assert mistakes(stores=SOURCE_TABLE, inputs=fixed) == []
    assert mistakes(stores=SOURCE_TABLE) == [
        "stores[0].changelog: found paused for shop-customers, which is the changelog of customers; expected "
        "fixed: after a growth a key's old entry stays in the old partition and its updates go to another. "
        "Declare `policy: fixed`, or run the program without `topology.optimization` (reuse.ktable.source.topics) "
        "first, so that the store has a changelog of its own."
    ]


def test_a_repartition_topic_is_no_changelog() -> None:
    behind = "by-customer-repartition"
    subtopologies = [{"sources": ["shop-orders"], "sinks": [behind]}, {"sources": [behind], "stores": ["totals"]}]
    declared = {
        "topology": None,
        "subtopologies": subtopologies,
        "inputs": [{**ORDERS, "policy": "fixed"}],
        "outputs": [],
        "stores": [{"name": "totals", "type": "timestamped-key-value", "changelog": "source"}],
    }
    assert mistakes(**declared) == [
        "stores[0].changelog: found source for totals, whose sub-topology reads only by-customer-repartition; "
        "expected source for a table of an input: a repartition topic is no changelog, so nothing would be "
        "copied. If the program does not log the store, write `changelog: none`."
    ]


def test_names_of_the_next_generation_must_be_unambiguous() -> None:
    assert mistakes(green_names={"totals": "totals-2", "by-customer": "by-customer-2"}) == []
    assert mistakes(green_names={"total": "totals-2"}) == [
        "green_names.total: found the store or repartition total, which the topology does not have; expected one "
        "of by-customer, by-customer-repartition, customers, customers-changelog, hourly, hourly-changelog, "
        "totals, totals-changelog, visits, visits-changelog. Did you mean totals?"
    ]
    assert mistakes(green_names={"totals": "visits"}) == [
        "green_names.totals: found visits for more than one store or repartition; expected a name of its own for "
        "each in the next generation. Compare what Topology#describe() prints for the program before and after."
    ]
    assert mistakes(green_names={"totals": "visits", "visits": "totals"}) == []


def test_a_store_and_a_repartition_of_one_name_are_named_apart() -> None:
    text = FIELDS["topology"].replace("by-customer-repartition)", "totals-repartition)")
    text = text.replace("[by-customer-repartition]", "[totals-repartition]")
    assert mistakes(topology=text, green_names={"totals-repartition": "by-id-repartition"}) == []
    both = {"totals-changelog": "sums-changelog", "totals-repartition": "by-id-repartition"}
    given = application("shop", topology=text, green_names=both)
    names = green_names(given, "shop-g2").all_of(topology_of(given))
    assert names[0] == "shop-g2-by-id-repartition"
    assert "shop-g2-sums-changelog" in names
    assert mistakes(topology=text, green_names=both) == []
    assert mistakes(topology=text, green_names={"totals": "sums"}) == [
        "green_names.totals: found totals, which is a store and a repartition; expected which of the two is "
        "meant. Say what each is called then, with the suffix of its topic: `totals-changelog: …-changelog` and "
        "`totals-repartition: …-repartition`."
    ]
    assert mistakes(topology=text, green_names={"totals-changelog": "sums"}) == [
        "green_names.totals-changelog: found sums; expected a name that ends in -changelog, as the present one "
        "does. Write `totals-changelog: sums-changelog`."
    ]
    assert len(mistakes(topology=text, green_names={"totals-changelog": "visits-changelog"})) == 1


def test_what_is_said_to_be_unrelated_begins_as_the_own_internal_topics_do() -> None:
    assert mistakes(unrelated=["shop-eu", "shop-old-changelog"]) == []
    assert mistakes(unrelated=["shop-eu", "shop"]) == [
        "unrelated[1]: found shop; expected application ids or topics that begin with shop-, as only those can be "
        "taken for topics of shop. Delete it, or correct it."
    ]


def test_another_prefix_needs_a_place_in_the_start_command() -> None:
    lifecycle = {**FIELDS["lifecycle"], "start": "run {application_id} {internal_topic_prefix}"}
    assert mistakes(internal_topic_prefix="shared", lifecycle=lifecycle) == []
    assert mistakes(internal_topic_prefix="shared") == [
        "lifecycle.start: found no {internal_topic_prefix} in the start command; expected the prefix of each "
        "generation's own internal topics. Let the program set __internal.override.topic.prefix__ from "
        "{internal_topic_prefix}. Without it, both generations write the same topics."
    ]


def test_the_topics_of_a_foreign_key_join_are_nobodys_inputs_and_no_repartitions() -> None:
    topics = ("fk-subscription-registration-topic", "fk-subscription-response-topic")
    fields = {
        **JOINED,
        "inputs": [{"topic": t, "policy": "paused"} for t in ("left", "right")],
        "subtopologies": [
            {"sources": ["left", topics[1]], "stores": ["left-table"], "sinks": [topics[0]]},
            {"sources": ["right", topics[0]], "stores": ["fk-subscription-store"], "sinks": [topics[1]]},
        ],
        "stores": [
            {"name": "left-table", "type": "timestamped-key-value"},
            {"name": "fk-subscription-store", "type": "foreign-key-subscription"},
        ],
    }
    assert mistakes(**fields) == []
    [found] = mistakes(**fields, repartitions=[{"name": topics[0]}])
    assert found.startswith(
        f"repartitions[0].name: found the repartition {topics[0]}, which the topology does not"
    )


@pytest.mark.parametrize(
    ("producers", "found"),
    [
        ({}, "none of them"),
        ({"stop": "true"}, "only `stop:`"),
        ({"start": "true"}, "only `start:`"),
        ({"start": "true", "application": "other"}, "`start:` and `application:`"),
        ({"stop": "true", "start": "true", "application": "other"}, "`stop:` and `start:` and `application:`"),
    ],
)
def test_producers_are_held_in_one_way(producers: dict[str, str], found: str) -> None:
    with pytest.raises(ValueError, match=f"found {found}; expected .* Give one way"):
        application("shop", inputs=[ORDERS, {**CUSTOMERS, "producers": producers}])
    assert mistakes(inputs=[ORDERS, {**CUSTOMERS, "producers": {"application": "other"}}]) == []
