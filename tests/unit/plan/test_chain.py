"""Chains of applications: which application is expanded first, and what is not a chain."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.application.topics import Input, InputPolicy
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.plan.chain import expansion_order
from kafka_rescale.core.plan.shared_inputs import refuse_shared_growth, refuse_shared_successors
from kafka_rescale.operations.application.load import topology_of

from tests.support.application_files import CHAIN


def application(name: str, reads: list[str], writes: list[str]) -> Application:
    declared: dict[str, Any] = {
        **CHAIN,
        "application_id": name,
        "inputs": [{"topic": topic, "policy": "unkeyed"} for topic in reads],
        "outputs": [{"topic": topic} for topic in writes],
    }
    return Application.model_validate(declared)


def names(*applications: Application) -> list[str]:
    return [a.application_id for a in expansion_order("orders", applications)]


def test_the_most_downstream_comes_first_however_they_are_listed() -> None:
    members = [application("z", ["a"], ["b"]), application("y", ["b"], ["c"]), application("x", ["c"], ["d"])]
    assert {tuple(names(*order)) for order in permutations(members)} == {("x", "y", "z")}


def test_a_writer_waits_for_all_of_its_readers() -> None:
    writer = application("writer", ["a"], ["b", "c"])
    order = names(writer, application("one", ["b"], []), application("two", ["c", "b"], []))
    assert order == ["one", "two", "writer"]


def test_an_application_may_read_what_it_writes_itself() -> None:
    assert names(application("loop", ["a", "b"], ["b", "c"]), application("reader", ["c"], [])) == [
        "reader",
        "loop",
    ]


def test_a_reader_that_goes_on_with_a_successor_is_downstream_of_who_writes_it() -> None:
    below = application("reader", ["a"], [])
    moved = Input(topic="a", policy=InputPolicy.REPARTITIONED)
    assert names(application("writer", ["z"], ["a-p8"]), below.model_copy(update={"inputs": (moved,)})) == [
        "reader",
        "writer",
    ]


def test_one_without_a_common_topic_is_named() -> None:
    members = [application("z", ["a"], ["b"]), application("y", ["b"], []), application("lost", ["q"], ["r"])]
    with pytest.raises(InvalidInput, match="found application lost, which shares no topic with y, z"):
        expansion_order("orders", members)


def test_a_circle_is_shown() -> None:
    members = [application("z", ["a"], ["b"]), application("y", ["b"], ["a"])]
    with pytest.raises(InvalidInput, match=r"feed each other: (y → z → y|z → y → z)"):
        expansion_order("orders", members)


def reader(name: str, **policies: str) -> Application:
    """An application with a table of each input."""
    return Application.model_validate(
        {
            **CHAIN,
            "application_id": name,
            "inputs": [{"topic": topic, "policy": policy} for topic, policy in policies.items()],
            "subtopologies": [{"sources": [topic], "stores": [f"of-{topic}"]} for topic in policies],
            "stores": [{"name": f"of-{topic}", "type": "key-value"} for topic in policies],
        }
    )


def refuse(*members: Application) -> None:
    refuse_shared_growth("orders", [(member, topology_of(member)) for member in members])


@pytest.mark.parametrize("policy", ["paused", "fixed", "repartitioned"])
def test_an_input_does_not_grow_under_another_member(policy: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        refuse(reader("one", a="paused"), reader("two", a=policy, b="fixed"))
    assert str(refused.value) == (
        "chain 'orders': found the input a, which one grows, and which two reads as well; expected inputs that "
        "only one member reads if they grow: Kafka Streams shuts down an application under which an input grows. "
        "Declare `policy: fixed` for a in both; or `repartitioned`, with a `successor:` of its own in each, which "
        "leaves a as it is."
    )


def test_a_member_that_re_keys_it_can_be_expanded_by_itself() -> None:
    with pytest.raises(
        InvalidInput, match="or take two out of the chain: preflight of one says when to expand it"
    ):
        refuse(application("one", ["orders"], []), application("two", ["orders"], []))


def test_a_successor_does_not_grow_under_the_member_that_reads_it() -> None:
    with pytest.raises(InvalidInput, match="found the input a-p8, which one grows, and which two reads as well"):
        refuse(reader("one", **{"a-p8": "paused"}), reader("two", a="repartitioned"))


@pytest.mark.parametrize("policy", ["fixed", "repartitioned"])
def test_members_may_share_an_input_that_stays_as_it_is(policy: str) -> None:
    refuse(reader("one", a=policy), reader("two", a=policy), reader("three", b="paused"))


def moving(name: str, successor: str | None, **changes: Any) -> Application:
    """An application that goes on with a topic of this name when it is expanded."""
    moved = Input(topic="a", policy=InputPolicy.REPARTITIONED, successor=successor)
    return application(name, ["a"], []).model_copy(update={"inputs": (moved,), **changes})


@pytest.mark.parametrize("of_two", [None, "a-p8", "{topic}-p{partitions}"])
def test_two_members_do_not_go_on_with_one_topic(of_two: str | None) -> None:
    with pytest.raises(InvalidInput) as refused:
        refuse_shared_successors("orders", [moving("one", None), moving("two", of_two)])
    told = str(refused.value)
    assert told.startswith("chain 'orders': found a-p")
    assert told.endswith(
        "every record into it. Give the input a another `successor:` in the file of one that has not moved yet."
    )


def test_each_member_may_go_on_with_a_topic_of_its_own() -> None:
    refuse_shared_successors("orders", [moving("one", None), moving("two", "{topic}-two-p{partitions}")])
    refuse_shared_successors("orders", [moving("one", None), moving("two", None, kafka_conn_id="another")])
