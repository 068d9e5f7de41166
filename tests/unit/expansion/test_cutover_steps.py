"""What a cutover will do, step by step, with the names that it will touch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafka_rescale.cli.views import plan_view
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.expansion.cutover_steps import CutoverStep, Moment, cutover_steps
from kafka_rescale.core.plan.planning import build_plan
from kafka_rescale.operations.application.load import topology_of

from tests.support.application_files import CHAIN
from tests.support.plans import IN_PLACE_TOPICS, in_place_application, in_place_plan


def steps(**changes: Any) -> tuple[CutoverStep, ...]:
    application = Application.model_validate({**CHAIN, **changes})
    current = {f"orders-app-{name}": 4 for name in IN_PLACE_TOPICS} | {"orders": 4, "totals": 4}
    plan = build_plan(
        application, topology_of(application), blue="orders-app", generation=2, current=current, target=8
    )
    return cutover_steps(plan, application)


def named(found: tuple[CutoverStep, ...]) -> Mapping[str, tuple[str, ...]]:
    return {step.does: step.names for step in found}


def test_every_topic_group_and_command_is_named_once_it_is_touched() -> None:
    producers = {"stop": "orders stop", "start": "orders start"}
    found = steps(inputs=[{"topic": "orders", "policy": "paused", "producers": producers}])
    assert named(found)["Hold the producers of paused inputs."] == ("orders stop",)
    assert named(found)["Wait until orders-app has processed these to their ends."] == ("orders",)
    assert named(found)["Copy the last delta, and compare it."] == (
        "orders-app-per-region-changelog -> orders-app-g2-per-region-changelog",
        "orders-app-per-customer-changelog -> orders-app-g2-per-customer-changelog",
    )
    assert named(found)["Grow the inputs."] == ("orders 4 -> 8",)
    assert named(found)["Release the producers."] == ("orders start",)
    (stop,) = named(found)["Stop orders-app."]
    (start,) = named(found)["Start orders-app-g2."]
    declared = CHAIN["lifecycle"]
    assert stop == declared["stop"].format(application_id="orders-app")
    assert start == declared["start"].format(application_id="orders-app-g2", partitions=8)


def test_the_command_stands_there_as_it_will_be_called() -> None:
    """Only so can a person see that the right id, count and topics reach the program."""
    told = "orders start {application_id} {partitions} {generation} {internal_topic_prefix} {input:orders}"
    repartitioned = [{"topic": "orders", "policy": "repartitioned"}]
    found = steps(lifecycle={**CHAIN["lifecycle"], "start": told}, inputs=repartitioned)
    (start,) = named(found)["Start orders-app-g2."]
    assert start == "orders start orders-app-g2 8 2 orders-app-g2 orders-p8"


def test_one_producer_of_several_inputs_is_named_once() -> None:
    producers = {"stop": "writer stop", "start": "writer start"}
    inputs = [{"topic": topic, "policy": "paused", "producers": producers} for topic in ("orders", "totals")]
    found = named(steps(inputs=inputs))
    assert found["Hold the producers of paused inputs."] == ("writer stop",)


def test_only_in_place_there_is_no_way_back() -> None:
    (promotion,) = [step.does for step in steps() if step.moment is Moment.PROMOTION]
    assert promotion.endswith("from here on, the way back is another expansion.")
    in_place = cutover_steps(in_place_plan(), in_place_application())
    (promotion,) = [step.does for step in in_place if step.moment is Moment.PROMOTION]
    assert promotion.endswith("from here on, there is no way back.")


def test_nothing_is_stopped_grown_or_started_outside_its_moment() -> None:
    found = [(step.moment, step.does.split()[0]) for step in steps()]
    moments = [moment for moment, _ in found]
    assert moments == sorted(moments, key=list(Moment).index)
    assert moments.count(Moment.PROMOTION) == 1
    assert {does for moment, does in found if moment is Moment.BEFORE} == {"Require", "Wait", "Ask", "Keep"}
    assert not {"Grow", "Start", "Commit"} & {does for moment, does in found if moment is Moment.PAUSE}


def test_in_place_the_own_topics_grow_behind_the_promotion() -> None:
    found = cutover_steps(in_place_plan(), in_place_application())
    grown = named(found)["Grow the application's own topics."]
    assert "orders-app-per-customer-changelog 4 -> 8" in grown
    assert not any("does not come back" in step.does for step in found)
    assert not any("delta" in step.does for step in found)


def test_with_a_held_start_the_processes_start_before_the_pause() -> None:
    found = steps(lifecycle={**CHAIN["lifecycle"], "start_held": "orders start-held {application_id}"})
    (start,) = [step for step in found if step.does.startswith("Start orders-app-g2")]
    assert (start.moment, start.names) == (
        Moment.BEFORE,
        ("orders start-held orders-app-g2", "group orders-app-g2-gate"),
    )
    (let_in,) = [step for step in found if step.does.startswith("Let orders-app-g2 in")]
    assert (let_in.moment, let_in.names) == (
        Moment.AFTER,
        (CHAIN["lifecycle"]["start"].format(application_id="orders-app-g2", partitions=8),),
    )


def test_a_class_may_hold_the_next_generation_at_the_door() -> None:
    found = steps(lifecycle={"type": "python", "callable": "shop.lifecycle:Shop"})
    (start,) = [step for step in found if step.does.startswith("Start orders-app-g2")]
    assert start.does.endswith("if its class has `start_held` and it waits at the door.")


def test_a_manual_lifecycle_asks_a_person() -> None:
    (stop,) = named(steps(lifecycle={"type": "manual"}))["Stop orders-app."]
    assert stop.startswith("a person")


def test_the_plan_command_shows_them_numbered() -> None:
    found = steps()
    shown = plan_view(in_place_plan(), [], found)
    assert [row[0] for row in shown.tables[1].rows] == list(range(1, len(found) + 1))
    assert [step["does"] for step in shown.data["cutover"]] == [step.does for step in found]
