"""Which lifecycles can start an application behind the warm-up gate, and how."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import pytest
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.errors import InvalidInput, Outage, TimedOut, UnsafeState
from kafka_rescale.lifecycle.factory import gated_start, held_start, lifecycle_of, stop_in_time
from kafka_rescale.lifecycle.instance import Instance, Lifecycle

from tests.support.small_application import application

GREEN = Instance("shop-g2", 2, 8)
SHELL = {"type": "shell", "start": "true", "stop": "true", "status": "true"}


def made(**lifecycle: Any) -> tuple[Application, Lifecycle]:
    declared = application("shop", lifecycle=lifecycle)
    return declared, lifecycle_of(declared, lambda group: group == "shop-g2")


class Plain:
    def start(self, instance: Instance) -> None: ...

    def stop(self, instance: Instance) -> None: ...

    def is_running(self, instance: Instance) -> bool:
        return False


class Faulty(Plain):
    def start(self, instance: Instance) -> None:
        raise UnsafeState("it", found="x", expected="y", remedy="z")

    def stop(self, instance: Instance) -> None:
        raise OSError("no answer")

    def is_running(self, instance: Instance) -> bool:
        return None  # type: ignore[return-value]


class Unmakeable(Plain):
    def __init__(self) -> None:
        raise KeyError("DEPLOYMENTS_URL")


class Away(Plain):
    def __init__(self) -> None:
        raise ConnectionError("no answer")


class Demanding(Plain):
    def __init__(self, url: str) -> None:
        self.url = url


class Exiting(Plain):
    """A class that calls a program's own `main`, which ends by `SystemExit` after a success as well."""

    def stop(self, instance: Instance) -> None:
        sys.exit(0)


class OfC(Plain, dict[str, str]):
    """Python knows no signature of its constructor."""


class Gated(Plain):
    gated: ClassVar[list[Instance]] = []

    def start_gated(self, instance: Instance) -> None:
        self.gated.append(instance)

    def start_held(self, instance: Instance) -> None:
        self.gated.append(instance)


@pytest.fixture
def deployments(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("deployments")
    module.__dict__.update(Plain=Plain, Gated=Gated, Faulty=Faulty, Unmakeable=Unmakeable, Half=object)
    module.__dict__.update(Away=Away, Demanding=Demanding, Exiting=Exiting, OfC=OfC)
    monkeypatch.setitem(sys.modules, "deployments", module)


@pytest.mark.parametrize(
    "lifecycle", [SHELL, {"type": "manual"}, {"type": "python", "callable": "deployments:Plain"}]
)
def test_pre_warming_is_optional(lifecycle: dict[str, str], deployments: None) -> None:
    assert gated_start(*made(**lifecycle)) is None
    assert held_start(*made(**lifecycle)) is None


def test_a_shell_command_starts_behind_the_gate_with_the_same_placeholders() -> None:
    start = gated_start(*made(**SHELL, start_gated="test {application_id} = shop-g2 -a {partitions} = 8"))
    assert start is not None
    start(GREEN)


def test_a_command_that_fails_is_an_outage() -> None:
    start = gated_start(*made(**SHELL, start_gated="false"))
    assert start is not None
    with pytest.raises(Outage, match="`false`"):
        start(GREEN)


def test_a_class_starts_behind_the_gate_if_it_has_the_method(deployments: None) -> None:
    declared, lifecycle = made(type="python", callable="deployments:Gated")
    start = gated_start(declared, lifecycle)
    assert start is not None
    start(GREEN)
    assert Gated.gated == [replace(GREEN, internal_topic_prefix="shop-g2")]


def test_a_person_is_told_to_use_the_gate(caplog: pytest.LogCaptureFixture) -> None:
    start = gated_start(*made(type="manual", instructions="the dashboard", start_gated="set GATE=on"))
    assert start is not None
    start(GREEN)
    assert "BEHIND THE WARM-UP GATE" in caplog.text
    assert "set GATE=on" in caplog.text


def test_only_a_person_is_waited_for_no_longer_than_a_pause_may_last(deployments: None) -> None:
    _, person = made(type="manual", timeout_seconds=1)
    for seconds, waited in ((0.1, 0.1), (60.0, 1.0)):
        with pytest.raises(TimedOut, match="a person") as late:
            stop_in_time(person, GREEN, seconds)
        assert late.value.seconds == waited
    for others in ({**SHELL, "stop": "sleep 0.3"}, {"type": "python", "callable": "deployments:Plain"}):
        stop_in_time(made(**others)[1], GREEN, 0.1)


def test_every_lifecycle_can_start_behind_the_hold_gate(
    deployments: None, caplog: pytest.LogCaptureFixture
) -> None:
    command = held_start(*made(**SHELL, start_held="test {application_id} = shop-g2 -a {partitions} = 8"))
    method = held_start(*made(type="python", callable="deployments:Gated"))
    # A held start by a person returns at once, although nothing has joined the group: held processes never join.
    asked = held_start(*made(type="manual", instructions="the dashboard", start_held="set HOLD=on"))
    assert command is not None
    assert method is not None
    assert asked is not None
    Gated.gated.clear()
    for start in (command, method, asked):
        start(replace(GREEN, application_id="shop-g2"))
    assert Gated.gated == [replace(GREEN, internal_topic_prefix="shop-g2")]
    assert "BEHIND THE HOLD GATE" in caplog.text
    assert "set HOLD=on" in caplog.text


def test_what_a_class_raises_is_an_outage_that_names_the_method(deployments: None) -> None:
    _, lifecycle = made(type="python", callable="deployments:Faulty")
    with pytest.raises(Outage) as failed:
        lifecycle.stop(GREEN)
    assert str(failed.value).startswith(
        "lifecycle method deployments:Faulty.stop for shop-g2: found OSError: no answer; expected a call that "
    )
    with pytest.raises(UnsafeState):
        lifecycle.start(GREEN)


def test_a_class_that_does_not_say_whether_it_runs_has_not_said_that_it_is_stopped(deployments: None) -> None:
    _, lifecycle = made(type="python", callable="deployments:Faulty")
    with pytest.raises(InvalidInput, match="is_running for shop-g2: found None; expected True or False"):
        lifecycle.is_running(GREEN)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Demanding", "missing a required argument: 'url'; expected a class that can be made without"),
        ("Half", "found no method start, stop, is_running"),
        ("Absent", "found module 'deployments' has no attribute 'Absent'"),
    ],
)
def test_a_class_that_can_not_be_used_is_refused(deployments: None, name: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        made(type="python", callable=f"deployments:{name}")


@pytest.mark.parametrize(
    ("name", "said"), [("Away", "found ConnectionError: no answer"), ("Unmakeable", "'DEPLOYMENTS_URL'")]
)
def test_a_constructor_that_fails_is_tried_again(deployments: None, name: str, said: str) -> None:
    """It may log in somewhere. A moment's outage there must not end an expansion for good."""
    with pytest.raises(Outage, match=f"{said}; expected a constructor that returns"):
        made(type="python", callable=f"deployments:{name}")


def test_a_class_without_a_known_signature_can_be_used(deployments: None) -> None:
    _, lifecycle = made(type="python", callable="deployments:OfC")
    assert not lifecycle.is_running(GREEN)


def test_a_method_that_ends_its_process_has_failed(deployments: None) -> None:
    """Nothing around it may be skipped: within the pause, the rollback starts blue again."""
    _, lifecycle = made(type="python", callable="deployments:Exiting")
    with pytest.raises(Outage, match=r"Exiting\.stop for shop-g2: found SystemExit: 0"):
        lifecycle.stop(GREEN)


def test_a_module_that_ends_its_process_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "a_script.py").write_text("import sys\nsys.exit(2)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(InvalidInput, match="found SystemExit: 2"):
        made(type="python", callable="a_script:Deployments")


def test_a_command_is_told_as_it_was_run(caplog: pytest.LogCaptureFixture) -> None:
    """A person who runs it by hand has no placeholders to fill in."""
    caplog.set_level("INFO")
    _, lifecycle = made(
        type="shell", start="true {application_id} 'a b'", stop="false {partitions}", status="true {generation}"
    )
    lifecycle.start(GREEN)
    assert lifecycle.is_running(GREEN)
    with pytest.raises(Outage, match="lifecycle command `false 8` for shop-g2"):
        lifecycle.stop(GREEN)
    assert [record.getMessage().rstrip() for record in caplog.records] == [
        "true shop-g2 'a b' -> 0",
        "true 2 -> 0",
        "false 8 -> 1",
    ]
