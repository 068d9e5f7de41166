"""After an expansion from 4, the next one goes back to 4, except for topics that have grown for good."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.core.application.checks.declaration import check_declaration
from kafka_rescale.core.control.generations import Generations, promoted_generations
from kafka_rescale.core.control.journal import AFTER_PROMOTION, Journal, Phase
from kafka_rescale.core.control.lease import Lease
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import Refused
from kafka_rescale.core.plan.instances import blue
from kafka_rescale.core.preflight.situation import Situation
from kafka_rescale.kafka.control import journal_store
from kafka_rescale.operations.expansion.rescale import Rescale
from kafka_rescale.operations.expansion.rollback import roll_back

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
JOINED = [{"name": "by-customer", "count": "joined"}]
EXTERNAL = ("shop-orders", "shop-customers", "shop-totals")
REPARTITIONED = {**PAUSED, "policy": "repartitioned", "isolation_level": "read_committed"}


def grown(*inputs: dict[str, Any], **changes: Any) -> Situation:
    """The application when everything has eight partitions and shall go back to four."""
    made = sampled(records(NAME, partitions=8))
    changes = {"repartitions": JOINED, **changes}
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
        m.complaint.found
        for m in check_declaration(given.application, given.topology)
        if "start" not in m.location
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


FORTH = situation(8).plan
LEASE = Lease(owner="expand_shop/run-1", epoch=1, target=8, expires_at_ms=0)
WAY_BACK = "trigger expand_shop with target 4; `python -m kafka_rescale plan FILE --target 4` says what hinders it"


def expanded(phase: Phase) -> ControlState:
    """The control state after the promotion of the expansion from 4 to 8."""
    journal = Journal(plan=FORTH, phase=phase, owner=LEASE.owner)
    return ControlState(journal=journal, lease=LEASE, generations=promoted_generations(journal))


def of_green(topic: str) -> str:
    """The new generation's name of an internal topic."""
    internal = topic.endswith(("-changelog", "-repartition"))
    return topic.replace(NAME, FORTH.green, 1) if internal else topic


def asked_back(phase: Phase) -> Situation:
    """The way back, if it is asked for in a phase of the first expansion."""
    topics = {of_green(name): replace(topic, name=of_green(name)) for name, topic in GROWN.items()}
    made = sampled({of_green(name): of for name, of in records(NAME, partitions=8).items()})
    given = situation(
        4, inputs=(FIXED, REPARTITIONED), repartitions=JOINED, topics=GROWN | topics, control=expanded(phase)
    )
    group = replace(given.cluster.group, group_id=FORTH.green)
    seen = tuple(each for of in made.values() for each in of)
    return replace(given, samples=seen, cluster=replace(given.cluster, group=group))


def test_the_way_back_begins_from_the_new_generation_when_the_expansion_is_over() -> None:
    given = asked_back(Phase.COMPLETE)
    assert found(given) == []
    assert (given.plan.blue, given.plan.green, given.plan.partitions) == ("shop-g2", "shop-g3", 4)
    assert {(m.source.partition("-g2-")[0], m.target_partitions) for m in given.plan.moves} == {("shop", 4)}


@pytest.mark.parametrize("phase", [Phase.PROMOTED, Phase.STARTED, Phase.VERIFIED])
def test_before_that_it_is_refused_with_the_way_to_the_end(phase: Phase) -> None:
    given, remedy = asked_back(phase), "with target 8 and the settings that it was begun with, then ask again"
    (refusal,) = [each for each in found(given) if "in progress" in each]
    assert remedy in refusal
    assert "or roll it back" not in refusal
    state = expanded(phase)
    control: Any = SimpleNamespace(application=NAME, update=lambda change: change(state))
    with pytest.raises(Refused, match=remedy):
        journal_store.begin(control, asked_back(Phase.COMPLETE).plan, LEASE.owner, now_ms=1)


@pytest.mark.parametrize("phase", AFTER_PROMOTION)
def test_a_rollback_that_comes_too_late_names_the_way_back(monkeypatch: pytest.MonkeyPatch, phase: Phase) -> None:
    only_control = SimpleNamespace(control=SimpleNamespace(read=lambda: expanded(phase)))
    monkeypatch.setattr(Rescale, "open", lambda *_: only_control)
    shop: Any = SimpleNamespace(application_id="shop")
    nobody: Any = None
    said = roll_back(shop, nobody, owner=LEASE.owner, reason="a test")
    assert WAY_BACK in said.told
    assert ("accept FILE" in said.told) == (phase is not Phase.COMPLETE)


@pytest.mark.parametrize(("told", "before"), [(4, 4), (0, 12)])
def test_the_running_generation_goes_on_with_the_count_that_its_promotion_gave_it(told: int, before: int) -> None:
    """A keyed `fixed` input and the state behind it have 12 partitions, whatever the program was told.

    :param told: 0 if an earlier version has promoted the running generation.
    """
    given = unjoined(situation(8, inputs=[UNKEYED, {**PAUSED, "policy": "fixed"}], samples=()))
    names = {name: name if name in EXTERNAL else name.replace(NAME, f"{NAME}-g2") for name in TOPICS}
    following = ("shop-orders", "shop-totals", "shop-by-customer-repartition")
    topics = {
        names[name]: replace(topic, name=names[name], partitions=4 if name in following else 12)
        for name, topic in TOPICS.items()
    }
    control = ControlState(
        generations=Generations(running=f"{NAME}-g2", generation=2, previous=NAME, partitions=told)
    )
    cluster = replace(given.cluster, topics=topics)
    plan = replace(given, control=control, cluster=cluster).plan
    assert (plan.partitions_before, blue(plan).partitions, plan.partitions) == (before, before, 8)
