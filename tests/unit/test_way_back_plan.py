"""What an expansion has made of 4 goes back to 4 by the next one, but for topics that have grown for good."""

from __future__ import annotations

from typing import Any

from kafka_rescale.core.declaration import check_declaration
from kafka_rescale.core.situation import Situation

from tests.support.situations import (
    INPUTS,
    NAME,
    TOPICS,
    found,
    sampled,
    samples,
    situation,
    unjoined,
    with_counts,
)
from tests.support.small_application import records

GROWN = with_counts(**{name.removeprefix(f"{NAME}-").replace("-", "_"): 8 for name in TOPICS})
UNKEYED, PAUSED = INPUTS
FIXED = {**UNKEYED, "policy": "fixed"}
REPARTITIONED = {**PAUSED, "policy": "repartitioned", "isolation_level": "read_committed"}


def grown(*inputs: dict[str, Any], **changes: Any) -> Situation:
    """The application when everything has eight partitions, and is asked to go back to four."""
    made = sampled(records(NAME, partitions=8))
    return situation(4, inputs=inputs, topics=GROWN, samples=samples(**made), **changes)


def test_an_input_that_has_grown_in_place_is_named_with_what_to_do() -> None:
    given = found(grown(UNKEYED, PAUSED))
    assert [f.partition(": found ")[0] for f in given] == [
        "input topic 'shop-orders'",
        "input topic 'shop-customers'",
    ]
    assert all(
        "Declare `policy: repartitioned`, which goes on with a new topic; or `policy: fixed`" in f for f in given
    )


def test_a_keyed_input_goes_on_with_a_new_topic_and_what_is_joined_with_it_follows() -> None:
    given = grown(FIXED, REPARTITIONED)
    assert found(given) == []
    assert [
        m.found for m in check_declaration(given.application, given.topology) if "start" not in m.location
    ] == []
    orders, customers = given.plan.inputs
    assert (orders.current, orders.target, orders.successor) == (8, 8, "")
    assert (customers.current, customers.target, customers.successor) == (8, 4, "shop-customers-p4")
    assert {(m.source_partitions, m.target_partitions) for m in given.plan.moves} == {(8, 4)}


def test_behind_an_unkeyed_input_the_program_has_to_set_the_count() -> None:
    counted = [{"name": "by-customer", "count": "start_command"}]
    given = unjoined(grown(FIXED, {**PAUSED, "policy": "fixed"}, repartitions=counted))
    assert found(given) == []
    assert {m.source: m.target_partitions for m in given.plan.moves}["shop-by-customer-repartition"] == 4
    assert [i.target for i in given.plan.inputs] == [8, 8]


def test_an_output_that_has_grown_stays_as_it_is() -> None:
    given = grown(FIXED, REPARTITIONED, outputs=[{"topic": "shop-totals", "partitions": 4}])
    assert found(given) == []
    assert [growth for stage in given.plan.stages for growth in stage.grow_outputs] == []
