"""An application that reads one of its own internal topics by its full name is refused."""

from __future__ import annotations

from typing import Any

import pytest
from kafka_rescale.core.application.checks.declaration import check_declaration
from kafka_rescale.operations.application.load import topology_of

from tests.support.small_application import application, declared

FIELDS = declared("shop")
FORMER, CUSTOMERS = FIELDS["inputs"]
GLOBAL_TABLE = (
    "  Sub-topology: 2 for global store (will not generate tasks)\n"
    "    Source: again-source (topics: [TOPIC])\n"
    "      --> again-update\n"
    "    Processor: again-update (stores: [again])\n"
    "      --> none\n"
    "      <-- again-source\n"
)
HARM = "the next generation writes another topic, so no record would come to this one any more"
REMEDY = (
    "Let the program write the records with to() into a topic that you create, and read that topic; or read the "
    "store."
)


def mistakes(topic: str, *, is_global: bool, **changes: Any) -> list[str]:
    """The mistakes of an application that reads a topic, as an input or into a global store."""
    if is_global:
        changes["topology"] = FIELDS["topology"] + GLOBAL_TABLE.replace("TOPIC", topic)
    else:
        changes["topology"] = FIELDS["topology"].replace("[shop-orders]", f"[{topic}]")
        changes["inputs"] = [{**FORMER, "topic": topic}, CUSTOMERS]
    given = application("shop", **changes)
    return [str(m.complaint) for m in check_declaration(given, topology_of(given))]


@pytest.mark.parametrize(("is_global", "place"), [(False, "inputs[0].topic"), (True, "topology")])
@pytest.mark.parametrize(
    "topic", ["shop-totals-changelog", "shop-g12-totals-changelog", "shop-by-customer-repartition"]
)
def test_an_internal_topic_of_any_generation_is_no_input(topic: str, place: str, *, is_global: bool) -> None:
    assert mistakes(topic, is_global=is_global) == [
        f"{place}: found {topic}, which the application reads, and which is an internal topic of its own; "
        f"expected topics that no generation owns: {HARM}. {REMEDY}"
    ]


def test_in_place_the_topic_remains_but_keeps_old_records() -> None:
    (text,) = mistakes("shop-totals-changelog", is_global=True, mode="in_place")
    assert "copies keys to other partitions of this one, and leaves their old records behind" in text


def test_another_prefix_is_that_of_the_topics() -> None:
    lifecycle = {**FIELDS["lifecycle"], "start": "true {application_id} {partitions} {internal_topic_prefix}"}
    prefixed = {"internal_topic_prefix": "behind", "lifecycle": lifecycle}
    assert mistakes("shop-totals-changelog", is_global=True, **prefixed) == []
    (text,) = mistakes("behind-g2-totals-changelog", is_global=True, **prefixed)
    assert "found behind-g2-totals-changelog, which the application reads" in text


@pytest.mark.parametrize("is_global", [False, True])
@pytest.mark.parametrize("topic", ["totals-changelog", "shop-total-changelog", "bigshop-totals-changelog"])
def test_topics_of_others_are_read(topic: str, *, is_global: bool) -> None:
    assert mistakes(topic, is_global=is_global) == []


def test_a_source_topic_that_serves_as_changelog_is_read() -> None:
    stores = [{**s, "changelog": "source"} if s["name"] == "customers" else s for s in FIELDS["stores"]]
    topology = FIELDS["topology"].replace("shop-customers", "shop-customers-changelog")
    inputs = [{**FORMER, "policy": "fixed"}, {"topic": "shop-customers-changelog", "policy": "fixed"}]
    given = application("shop", topology=topology, inputs=inputs, stores=stores)
    assert check_declaration(given, topology_of(given)) == []
