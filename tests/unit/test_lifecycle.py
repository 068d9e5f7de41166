"""Which lifecycles can start an application behind the warm-up gate, and how."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest
from kafka_rescale.core.application import Application
from kafka_rescale.core.errors import Outage
from kafka_rescale.lifecycle.factory import gated_start, lifecycle_of
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


class Gated(Plain):
    def __init__(self) -> None:
        self.gated: list[Instance] = []

    def start_gated(self, instance: Instance) -> None:
        self.gated.append(instance)


@pytest.fixture
def deployments(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("deployments")
    module.__dict__.update(Plain=Plain, Gated=Gated)
    monkeypatch.setitem(sys.modules, "deployments", module)


@pytest.mark.parametrize(
    "lifecycle", [SHELL, {"type": "manual"}, {"type": "python", "callable": "deployments:Plain"}]
)
def test_pre_warming_is_optional(lifecycle: dict[str, str], deployments: None) -> None:
    assert gated_start(*made(**lifecycle)) is None


def test_a_shell_command_starts_behind_the_gate_with_the_same_placeholders() -> None:
    start = gated_start(*made(**SHELL, start_gated="test {application_id} = shop-g2 -a {partitions} = 8"))
    assert start is not None
    start(GREEN)


def test_a_command_that_fails_is_an_outage() -> None:
    start = gated_start(*made(**SHELL, start_gated="false"))
    assert start is not None
    with pytest.raises(Outage, match="'false'"):
        start(GREEN)


def test_a_class_starts_behind_the_gate_if_it_has_the_method(deployments: None) -> None:
    declared, lifecycle = made(type="python", callable="deployments:Gated")
    start = gated_start(declared, lifecycle)
    assert start is not None
    start(GREEN)
    assert isinstance(lifecycle, Gated)
    assert lifecycle.gated == [GREEN]


def test_a_person_is_told_to_use_the_gate(caplog: pytest.LogCaptureFixture) -> None:
    start = gated_start(*made(type="manual", instructions="the dashboard", start_gated="set GATE=on"))
    assert start is not None
    start(GREEN)
    assert "BEHIND THE WARM-UP GATE" in caplog.text
    assert "set GATE=on" in caplog.text
