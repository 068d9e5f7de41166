"""Behind a lost control topic, the generation that runs looks like a stranger. No remedy may stop or delete it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kafka_rescale.core.application.streams import Mode
from kafka_rescale.core.cluster import GroupDescription
from kafka_rescale.core.control.generations import Generations
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.preflight.expected_state import ExpectedState
from kafka_rescale.core.preflight.situation import Situation
from kafka_rescale.operations.application.load import topology_of
from kafka_rescale.operations.preflight.neighbours import neighbours

from tests.support.application_files import write_application
from tests.support.situations import INPUTS, STOPPED, TOPICS, found, journal, situation
from tests.support.small_application import application

LIVE = GroupDescription("shop-g2", "Stable", ("m1", "m2"))
CHANGELOG = "shop-g2-customers-changelog"
LATER = frozenset({"shop-g3-customers-changelog", "shop-g3-by-customer-repartition"})
LOST: dict[str, tuple[dict[str, Any], str]] = {
    "topics and group": (
        {"green_group": LIVE, "group": STOPPED, "green_records": {CHANGELOG: 1_234}},
        f"2 members in group shop-g2; {CHANGELOG}",
    ),
    "a group alone": ({"green_group": LIVE}, "2 members in group shop-g2"),
    "topics alone": ({"green_records": {CHANGELOG: 17}}, CHANGELOG),
    "a later generation, and the first one retired": (
        {"visible": LATER, "topics": dict.fromkeys(set(TOPICS) - {"shop-orders", "shop-customers"})},
        "shop-g3-by-customer-repartition, shop-g3-customers-changelog",
    ),
    "a later generation that is to run": (
        {"visible": LATER, "group": STOPPED, "expected": ExpectedState.RUNNING},
        "shop-g3-by-customer-repartition, shop-g3-customers-changelog",
    ),
    "the mode of today is another": (
        {"visible": LATER, "mode": Mode.IN_PLACE},
        "shop-g3-by-customer-repartition, shop-g3-customers-changelog",
    ),
    "beside a successor with records": (
        {
            "green_records": {CHANGELOG: 17, "shop-customers-p8": 5},
            "inputs": [INPUTS[0], {**INPUTS[1], "policy": "repartitioned", "isolation_level": "read_committed"}],
        },
        CHANGELOG,
    ),
}


@pytest.mark.parametrize("case", LOST)
def test_a_generation_that_the_control_topic_does_not_know_is_the_only_finding(case: str) -> None:
    changes, told = LOST[case]
    (finding,) = found(in_mode(**changes))
    assert f": found {told}, while topic '_kafka_rescale' knows of no expansion; expected" in finding
    assert "Stop and delete nothing before that is clear" in finding
    assert "--delete" not in finding
    assert "Stop whatever" not in finding
    assert "Start it" not in finding


def in_mode(*, mode: Mode = Mode.BLUE_GREEN, **changes: Any) -> Situation:
    given = situation(8, **changes)
    return replace(given, application=given.application.model_copy(update={"mode": mode}))


@pytest.mark.parametrize(
    "control",
    [
        pytest.param(ControlState(generations=Generations(running="shop", generation=1)), id="generations"),
        pytest.param(journal(8), id="journal"),
    ],
)
def test_one_that_it_may_know_of_is_judged_by_its_records(control: ControlState) -> None:
    texts = found(situation(8, control=control, green_records={CHANGELOG: 17}))
    assert not [text for text in texts if "knows of no expansion" in text]


def test_names_that_no_generation_gives_to_its_topics_are_no_sign_of_one() -> None:
    others = frozenset({*TOPICS, "shop-g2-old-changelog", "shop-g2", "shop-g2x-customers", "shop-g2-log"})
    assert found(situation(8, visible=others)) == []


@pytest.mark.parametrize(("connection", "is_told"), [("kafka_default", False), ("elsewhere", True)])
def test_topics_of_another_application_that_has_the_name_of_a_generation_are_its_own(
    connection: str, *, is_told: bool
) -> None:
    other = application("shop-g3", kafka_conn_id=connection)
    texts = found(situation(8, visible=LATER, neighbours=((other, topology_of(other)),)))
    assert any("knows of no expansion" in text for text in texts) is is_told


def test_the_file_of_such_an_application_is_read_although_it_shares_no_topic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_RESCALE_APPLICATIONS", str(tmp_path))
    for name in ("shop-g3", "bar"):
        write_application(tmp_path, application_id=name)
    assert [each.application_id for each, _ in neighbours(situation(8)).declared] == ["shop-g3"]
