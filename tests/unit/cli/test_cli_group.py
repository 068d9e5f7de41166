"""`status` tells the group of the running generation, and goes on if the brokers don't."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kafka_rescale.cli import app as commands
from kafka_rescale.cli.group import SeenGroup, look_at_group
from kafka_rescale.cli.main import main
from kafka_rescale.cli.views import status_view
from kafka_rescale.core.cluster import GroupDescription
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import ClusterOutage, RescaleError, UnsafeState
from kafka_rescale.core.page.health import Level
from kafka_rescale.kafka.admin import group_members

from tests.support.application_files import write_application
from tests.support.page.page_contents import NOW_MS, complete, copying

CONNECTION: Any = None
TOLD = {"found": "no coordinator", "expected": "an answer", "remedy": "Run again."}
WORLD = replace(copying("orders"), live=False)


def seen(
    monkeypatch: pytest.MonkeyPatch, found: GroupDescription | RescaleError, control: Any = None
) -> SeenGroup:
    """Look at the group of an application, whose coordinator answers so."""

    def described(connection: object, group: str, *, seconds: float) -> GroupDescription:
        assert seconds <= 10
        if isinstance(found, RescaleError):
            raise found
        return replace(found, group_id=group)

    monkeypatch.setattr(group_members, "describe_group", described)
    return look_at_group(WORLD.application, CONNECTION, WORLD.control if control is None else control, NOW_MS)


def status(group: SeenGroup) -> tuple[dict[str, Any], list[str]]:
    shown = status_view(WORLD.application, WORLD.control, (), group=group)
    return dict(shown.data), shown.text.splitlines()


def test_a_group_at_work_is_told_with_its_members(monkeypatch: pytest.MonkeyPatch) -> None:
    data, lines = status(seen(monkeypatch, GroupDescription("", "Stable", ("a", "b"))))
    assert lines[2] == "group: orders is Stable with 2 members"
    assert data["group"] == {"id": "orders", "state": "Stable", "members": 2}
    assert data["health"]["level"] == Level.WORKING
    assert not any(line.startswith("needs a person") for line in lines)


@pytest.mark.parametrize("state", ["Empty", "Dead"])
def test_that_nobody_processes_is_told_in_a_phase_that_works(monkeypatch: pytest.MonkeyPatch, state: str) -> None:
    data, lines = status(seen(monkeypatch, GroupDescription("", state)))
    assert lines[2:4] == [
        f"group: orders is {state}: it has NO MEMBER",
        f"needs a person: Group orders has no member ({state}).",
    ]
    assert (data["group"]["members"], data["health"]["level"]) == (0, Level.ATTENTION)


def test_members_that_are_not_known_are_no_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    """A group in the middle of a rebalance may not name its members."""
    data, lines = status(seen(monkeypatch, GroupDescription("", "PreparingRebalance")))
    assert lines[2] == "group: orders is PreparingRebalance, its members are not known"
    assert data["group"] == {"id": "orders", "state": "PreparingRebalance", "members": None}


@pytest.mark.parametrize("error", [ClusterOutage("group 'orders'", **TOLD), UnsafeState("group 'orders'", **TOLD)])
def test_without_an_answer_the_group_is_unknown_and_nothing_is_called_good(
    monkeypatch: pytest.MonkeyPatch, error: RescaleError
) -> None:
    data, lines = status(seen(monkeypatch, error))
    assert lines[2] == f"group: unknown whether orders has members: {error}"
    assert data["group"] == {"id": "orders", "state": "unknown", "members": None}
    assert data["health"] is None


def test_it_is_the_group_of_the_generation_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    stable = GroupDescription("", "Stable", ("a",))
    assert seen(monkeypatch, stable, complete("orders").control).group_id == "orders-g2"
    assert seen(monkeypatch, stable, ControlState()).group_id == "orders"


def test_the_command_asks_once_and_ends_well_without_an_answer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = []

    def silent(connection: object, group: str, *, seconds: float) -> GroupDescription:
        asked.append(group)
        raise ClusterOutage(f"group {group!r}", **TOLD)

    monkeypatch.setattr(group_members, "describe_group", silent)
    monkeypatch.setattr(commands, "opened", lambda *_: (WORLD.application, CONNECTION))
    monkeypatch.setattr(commands, "ControlTopic", lambda *_: type("Topic", (), {"read": ControlState})())
    assert main(["status", str(write_application(tmp_path))]) == 0
    assert asked == ["orders"]
    assert (
        "group: unknown whether orders has members: group 'orders': found no coordinator"
        in capsys.readouterr().out
    )
