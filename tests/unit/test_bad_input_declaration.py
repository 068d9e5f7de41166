"""Contradictions between an application file and its own topology."""

from __future__ import annotations

from typing import Any

import pytest
from kafka_rescale.core.declaration import check_declaration
from kafka_rescale.operations.load import topology_of

from tests.support.small_application import application, declared

FIELDS = declared("shop")
ORDERS, CUSTOMERS = FIELDS["inputs"]
STORES = FIELDS["stores"]


def mistakes(**changes: Any) -> list[str]:
    """Every mistake as one text, with its place."""
    given = application("shop", **changes)
    return [str(m.finding(".".join(map(str, m.location)))) for m in check_declaration(given, topology_of(given))]


def test_a_sound_declaration_has_no_mistakes() -> None:
    assert mistakes() == []
    assert mistakes(repartitions=[{"name": "by-customer", "count": "start_command"}]) == []
    assert mistakes(inputs=[ORDERS, {**CUSTOMERS, "producers": {"stop": "true", "start": "true"}}]) == []
    assert mistakes(inputs=[{**ORDERS, "policy": "fixed"}, {**CUSTOMERS, "policy": "fixed"}]) == []


CASES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "unknown store": (
        {"stores": [*STORES[:3], {"name": "visit", "type": "session"}]},
        [
            "stores.3.name: found the store visit, which the topology does not have; expected one of "
            "customers, totals, hourly, visits. Did you mean visits?",
            "stores: found no declaration of store visits, which the topology has; expected every store of "
            "the topology. Add `- {name: visits, type: …}`; an aggregate without a window is "
            "timestamped-key-value.",
        ],
    ),
    "unknown input": (
        {"inputs": [{"topic": "payments", "policy": "unkeyed"}, CUSTOMERS]},
        [
            "inputs.0.topic: found the input topic payments, which the topology does not have; expected one "
            "of shop-orders, shop-customers. Correct the name, or paste the topology of the present program.",
            "inputs: found no declaration of input topic shop-orders, which the topology reads; expected "
            "every external topic that the topology reads. Add `- "
            "{topic: shop-orders, policy: unkeyed | paused | fixed}`.",
        ],
    ),
    "unknown output": (
        {"outputs": [{"topic": "shop-total"}]},
        [
            "outputs.0.topic: found the output topic shop-total, which the topology does not have; expected "
            "one of shop-totals. Did you mean shop-totals?"
        ],
    ),
    "unknown repartition": (
        {"repartitions": [{"name": "by-customer-repartition", "count": "start_command"}]},
        [
            "repartitions.0.name: found the repartition by-customer-repartition, which the topology does not "
            "have; expected one of by-customer. Did you mean by-customer?"
        ],
    ),
    "a store twice": (
        {"stores": [*STORES, STORES[0]]},
        ["stores.4: found customers a second time; expected each name once. Delete one of the two."],
    ),
    "unkeyed for a keyed input": (
        {"inputs": [ORDERS, {**CUSTOMERS, "policy": "unkeyed"}]},
        [
            "inputs.1.policy: found unkeyed, while sub-topology 1 reads shop-customers and keeps customers, "
            "totals, hourly, visits; expected paused or fixed for an input whose keys decide where state is. "
            "Declare `policy: paused` (with `producers:` to hold them), or `fixed` if its count shall stay."
        ],
    ),
    "producers of an input that is not paused": (
        {"inputs": [{**ORDERS, "producers": {"stop": "true", "start": "true"}}, CUSTOMERS]},
        [
            "inputs.0.producers: found commands for the producers of an input with policy unkeyed; expected "
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
        "inputs.1.policy: found fixed for right and paused for left, which sub-topology 0 joins: their counts "
        "would differ; expected either fixed for both or for none. Declare `policy: paused` for right, or "
        "`fixed` for left too."
    ]
    for policy in ("paused", "fixed"):
        assert mistakes(**JOINED, inputs=[{**i, "policy": policy} for i in inputs]) == []


def test_a_global_store_is_not_moved() -> None:
    text = FIELDS["topology"] + (
        "  Sub-topology: 2 for global store (will not generate tasks)\n"
        "    Source: rates-source (topics: [rates])\n"
        "      --> rates-update\n"
        "    Processor: rates-update (stores: [rates])\n"
        "      --> none\n"
        "      <-- rates-source\n"
    )
    assert mistakes(topology=text) == []
    assert mistakes(topology=text, stores=[*STORES, {"name": "rates", "type": "key-value"}]) == [
        "stores.4.name: found the global store rates; expected stores with a changelog. Delete it: every "
        "instance reads a global store from its source topic, nothing has to be moved."
    ]


def test_a_foreign_key_join_is_refused() -> None:
    topic = "fk-subscription-registration-topic"
    subtopologies = [
        {"sources": ["left"], "stores": ["joined"], "sinks": [topic]},
        {"sources": [topic], "stores": []},
    ]
    found = mistakes(**{**JOINED, "subtopologies": subtopologies}, inputs=[{"topic": "left", "policy": "paused"}])
    assert found == [
        f"topology: found the foreign-key join topic {topic}; expected a topology without foreign-key joins. "
        "Its records carry partition numbers inside their values, which this version does not rewrite."
    ]


@pytest.mark.parametrize(
    "producers", [{}, {"stop": "true"}, {"stop": "true", "start": "true", "application": "other"}]
)
def test_producers_are_held_in_one_way(producers: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="Give one way"):
        application("shop", inputs=[ORDERS, {**CUSTOMERS, "producers": producers}])
    assert mistakes(inputs=[ORDERS, {**CUSTOMERS, "producers": {"application": "other"}}]) == []
