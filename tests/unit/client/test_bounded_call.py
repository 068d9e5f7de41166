"""Calls with a limit of time: the caller waits no longer than that."""

from __future__ import annotations

from threading import Event

import pytest
from kafka_rescale.core.errors import ClusterOutage
from kafka_rescale.kafka.client.bounded_call import StuckCall, bounded


def test_what_a_call_returns_and_raises_is_passed_on() -> None:
    assert bounded(lambda: 7, 10.0, "a unit", "call") == 7
    with pytest.raises(ZeroDivisionError):
        bounded(lambda: 1 // 0, 10.0, "a unit", "call")


def test_a_call_that_does_not_return_is_an_outage() -> None:
    never = Event()
    with pytest.raises(StuckCall, match="a unit: found call without an answer for 0 s") as raised:
        bounded(never.wait, 0.1, "a unit", "call")
    assert isinstance(raised.value, ClusterOutage)
    never.set()
