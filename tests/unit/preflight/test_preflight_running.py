"""Preflight of what runs and which expansion is in progress, and its remarks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from kafka_rescale.core.control.generations import Generations
from kafka_rescale.core.control.journal import Phase
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.preflight.check import is_continued, messages
from kafka_rescale.core.preflight.deployment import Deployment
from kafka_rescale.core.preflight.expected_state import ExpectedState
from kafka_rescale.operations.application.load import topology_of

from tests.support.situations import (
    INPUTS,
    STOPPED,
    found,
    journal,
    situation,
    with_configs,
)
from tests.support.small_application import START_MS, application, topology_text


def test_the_names_follow_the_running_generation() -> None:
    given = situation(control=ControlState(generations=Generations(running="shop-g2", generation=2, partitions=4)))
    assert (given.blue, given.green) == ("shop-g2", "shop-g3")
    assert found(given)[0].startswith("application 'shop-g2': found none of its internal topics on the cluster")


def test_another_target_while_one_is_in_progress() -> None:
    assert found(situation(6, control=journal(8))) == [
        "application 'shop': found an expansion to 8 partitions in progress (phase warming, by "
        "expand_shop/run-1); expected no expansion in progress when 6 are asked for. Finish it by a run with "
        "target 8 and the settings that it was begun with, or roll it back; then ask again."
    ]
    assert found(situation(6, control=journal(8, Phase.ROLLED_BACK))) == []


def test_the_same_target_continues_whatever_its_own_steps_have_changed() -> None:
    given = situation(8, control=journal(8), green_records={"shop-g2-totals-changelog": 17})
    assert is_continued(given)
    assert found(given) == []
    assert not is_continued(situation(8, control=journal(8, Phase.COMPLETE)))


def test_running_when_it_should_be_stopped_and_the_reverse() -> None:
    assert found(situation(expected=ExpectedState.RUNNING)) == []
    assert found(situation(expected=ExpectedState.STOPPED, group=STOPPED)) == []
    assert found(situation(expected=ExpectedState.STOPPED)) == [
        "application 'shop': found 1 member in group shop (state Stable); expected a stopped application. "
        "Stop every instance; members that died are gone after session.timeout.ms."
    ]
    assert found(situation(expected=ExpectedState.RUNNING, group=STOPPED)) == [
        "application 'shop': found group shop without members (state Empty); expected a running application. "
        "Start it, and wait until its group is Stable."
    ]


def test_an_expansion_in_progress_has_stopped_it_itself() -> None:
    given = situation(8, control=journal(8), expected=ExpectedState.RUNNING, group=STOPPED)
    assert found(given) == []


UNHELD = (
    "shop-customers: `paused` without `producers:`, so that nothing stops its producers. Hold them yourself from "
    "the cutover on until the new generation runs; a record that comes meanwhile ends the cutover."
)
HELD = {"stop": "stop", "start": "start"}


@pytest.mark.parametrize(
    ("customers", "target", "told"),
    [
        ({"policy": "paused"}, 8, [UNHELD]),
        ({"policy": "paused"}, 4, []),
        ({"policy": "paused", "producers": HELD}, 8, []),
        ({"policy": "fixed"}, 8, []),
    ],
)
def test_an_input_whose_producers_are_held_by_nobody_is_said(
    customers: dict[str, Any], target: int, told: list[str]
) -> None:
    given = situation(target, inputs=[INPUTS[0], {**INPUTS[1], **customers}])
    assert [line for line in messages(given) if "producers" in line] == told


@pytest.mark.parametrize(
    ("sink", "outputs"),
    [("(topic: shop-customers)", []), ("(extractor class: shop.Router@1)", [{"topic": "shop-customers"}])],
)
def test_an_input_that_the_application_itself_writes_is_held_with_it(
    sink: str, outputs: list[dict[str, str]]
) -> None:
    inputs: list[dict[str, Any]] = [{**each, "policy": "paused", "producers": HELD} for each in INPUTS]
    del inputs[1]["producers"]
    topology = topology_text("shop").replace("(topic: shop-totals)", sink)
    ours = application("shop", inputs=inputs, outputs=outputs, topology=topology)
    given = replace(situation(8), application=ours, topology=topology_of(ours))
    assert topology_of(ours).upstream_of("shop-customers") == (
        "by-customer-repartition",
        "shop-customers",
        "shop-orders",
    )
    assert not [line for line in messages(given) if "producers" in line]


OTHER_READERS = (
    "shop-orders, shop-customers: every other reader meets the growth. If a Kafka Streams application among them "
    "has internal topics that follow from it, the application shuts down at its next rebalance."
)


def test_a_sound_application_is_told_nothing_that_does_not_matter() -> None:
    """No record is in flight, and the file declares everything that it can."""
    inputs = [INPUTS[0], {**INPUTS[1], "producers": HELD}]
    given = situation(8, inputs=inputs, repartitions=[{"name": "by-customer", "count": "derived"}])
    assert messages(given) == [OTHER_READERS]


def test_that_it_does_not_run_is_told_once() -> None:
    given = situation(8, group=STOPPED, deployment=Deployment(blue_runs=False, green_runs=False))
    assert len([line for line in messages(given) if "shop does not run" in line]) == 1


def test_what_is_worth_knowing() -> None:
    repartition, window = "shop-by-customer-repartition", "shop-hourly-changelog"
    given = situation(
        group=STOPPED,
        cluster={"ends": {(repartition, 0): 10, (repartition, 1): 5}, "committed": {(repartition, 0): 7}},
        topics=with_configs(window, retention__ms="1000", retention__bytes="5"),
        now_ms=START_MS + 1001,
        repartitions=[{"name": "by-customer", "count": "derived"}],
    )
    assert found(given) == []
    assert messages(given) == [
        "shop does not run: its group has no member (state Empty).",
        f"{repartition}: 8 records not yet processed.",
        UNHELD,
        OTHER_READERS,
        f"{window}: retention.bytes is set, so that the brokers may delete live entries of its copy.",
        f"{window}: 24 of 24 sampled entries are older than its retention.ms (1000); the brokers may delete "
        "them in "
        "the copy before they do so here.",
    ]
