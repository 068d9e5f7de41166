"""What the tests of a switch that is waited for have in common. Other files have a control topic of their own."""

from __future__ import annotations

import pytest

from tests.support.expansion.waiting_switch import Control, control_topic, stopped_clock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    return stopped_clock(monkeypatch)


@pytest.fixture
def control(monkeypatch: pytest.MonkeyPatch, clock: list[int]) -> Control:
    return control_topic(monkeypatch)
