"""What a person is told before an application is pre-warmed, or starts without that."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from kafka_rescale.core.cluster import Disks, GroupDescription, Habit, LogDir
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.preflight.check import check, messages
from kafka_rescale.core.preflight.situation import Situation

from tests.support.situations import NAME, RUNNING, situation
from tests.support.small_application import application

SHELL = {"type": "shell", "start": "true", "stop": "true", "status": "true"}
GATED = {**SHELL, "start_gated": "true"}
MANUAL = {"type": "manual", "start_gated": "set GATE=on"}
STREAMS = GroupDescription(NAME, "Stable", ("a", "b", "c"), "streams", processes=2)


def given(lifecycle: dict[str, Any], group: GroupDescription, disks: Disks | None = None) -> Situation:
    made = situation(group=group, cluster={"disks": disks or Disks()})
    return replace(made, application=application(NAME, lifecycle=lifecycle))


def told(of: Situation) -> list[str]:
    return [text for text in messages(of) if "group.protocol=classic" in text]


def test_each_instance_needs_room_for_the_whole_state() -> None:
    made = given(GATED, STREAMS)
    sizes = {(move.source, p): 10**6 for move in made.plan.changelogs for p in range(4)}
    megabytes = 4 * len(made.plan.changelogs)
    [text] = told(given(GATED, STREAMS, Disks((LogDir(1, "/data", 10**9, 10**9, sizes=sizes),))))
    assert "each of its 2 instances restores the stores of all tasks" in text
    assert f"{megabytes}.0 MB of changelogs now" in text
    assert "room for the whole state" in text


def test_a_size_that_no_broker_tells_is_not_guessed() -> None:
    [text] = told(given(GATED, STREAMS))
    assert "changelogs now" not in text


@pytest.mark.parametrize(
    ("lifecycle", "group"), [(SHELL, STREAMS), (GATED, RUNNING)], ids=["not pre-warmed", "classic"]
)
def test_nothing_is_told_where_nothing_of_that_happens(lifecycle: dict[str, Any], group: GroupDescription) -> None:
    assert told(given(lifecycle, group)) == []


CLASSIC = GroupDescription(NAME, "Stable", ("a", "b"), "classic")
HELD = {**SHELL, "start_held": "true"}


def hints(
    lifecycle: dict[str, Any], *, group: GroupDescription = CLASSIC, in_transactions: bool = True
) -> list[str]:
    made = given(lifecycle, group)
    habits = {move.source: Habit("", in_transactions) for move in made.plan.changelogs}
    found = messages(replace(made, cluster=replace(made.cluster, habits=habits)))
    return [text for text in found if "may lose records" in text]


@pytest.mark.parametrize("lifecycle", [SHELL, GATED])
def test_threads_that_write_in_transactions_are_hinted_at(lifecycle: dict[str, Any]) -> None:
    [text] = hints(lifecycle)
    assert f"{NAME}-g2: with exactly-once and 2 stream threads" in text
    assert "default.client.supplier=org.kafkarescale.FencedAfterAbort" in text


def test_behind_the_hold_gate_producers_are_fenced_anyway() -> None:
    assert hints(HELD) == []


def test_without_transactions_or_other_threads_there_is_no_hint() -> None:
    assert hints(SHELL, in_transactions=False) == []
    assert hints(SHELL, group=replace(CLASSIC, members=("a",))) == []
    assert hints(SHELL, group=replace(CLASSIC, protocol="streams")) == []


def refused(of: Situation) -> list[str]:
    return [str(finding) for finding in check(of) if "start_gated" in str(finding)]


def test_a_person_is_not_asked_for_what_the_task_could_not_see() -> None:
    """Instances behind the gate are in groups of their own, and the task would wait for members of green's."""
    [text] = refused(given(MANUAL, STREAMS))
    assert f"not in group {NAME}-g2. Remove `start_gated`" in text


@pytest.mark.parametrize(
    ("lifecycle", "group"),
    [(MANUAL, RUNNING), (GATED, STREAMS), ({"type": "manual"}, STREAMS)],
    ids=["classic", "a command", "not pre-warmed"],
)
def test_whatever_can_be_pre_warmed_is_not_refused(lifecycle: dict[str, Any], group: GroupDescription) -> None:
    assert refused(given(lifecycle, group)) == []


def test_an_expansion_that_goes_on_is_not_refused_for_it() -> None:
    made = given(MANUAL, STREAMS)
    going_on = replace(made, control=ControlState(journal=Journal(plan=made.plan, phase=Phase.CAUGHT_UP)))
    assert refused(going_on) == []


@pytest.mark.parametrize("group", [RUNNING, STREAMS], ids=["classic", "streams"])
def test_a_missing_topic_is_told_before_anything_that_needs_the_plan(group: GroupDescription) -> None:
    made = replace(given(MANUAL, group), cluster=situation(topics={"shop-customers": None}, group=group).cluster)
    [text] = map(str, check(made))
    assert "topic 'shop-customers': found no such topic" in text
