"""A switch that is waited for, without brokers: its control topic, its clock, and what people say about it."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.cluster import TopicDescription
from kafka_rescale.core.control.journal import Journal
from kafka_rescale.core.control.lease import Lease
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.control.switch import Order
from kafka_rescale.core.errors import Fenced
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.core.plan.planning import build_plan
from kafka_rescale.kafka.control import lease as leases
from kafka_rescale.operations.application.load import topology_of
from kafka_rescale.operations.expansion import switch as operation

from tests.support.application_files import CHAIN
from tests.support.plans import IN_PLACE_TOPICS

OWNER = "expand_orders-app/r"
NOON = 1_795_608_000_000
"""25 November 2026, 12:00 UTC, a Wednesday."""
HOUR, DAY = 3_600_000, 86_400_000
NIGHTLY = {"windows": ["02:00-05:00"]}
CONNECTION: Any = None


class Control:
    """The control topic of a test. Another controller may change it just before a write, by ``before_write``."""

    application = "orders-app"

    def __init__(self, state: ControlState) -> None:
        self.state = state
        self.before_write: Callable[[], None] = lambda: None
        self.writes = 0

    def __call__(self, *_: object) -> Control:
        return self

    def read(self) -> ControlState:
        return self.state

    def update(self, change: Callable[[ControlState], Any]) -> ControlState:
        seen, self.before_write, before = self.state, lambda: None, self.before_write
        before()
        if self.state is not seen:
            raise Fenced("control", found="another", expected="none", remedy="")
        changes = {str(key): value for key, value in change(self.state).items()}
        self.writes += bool(changes)
        self.state = self.state.model_copy(update=changes)
        return self.state


def planned() -> Plan:
    """A plan from 4 partitions to 8, with copies."""
    application = app()
    counts = {f"orders-app-{name}": 4 for name in IN_PLACE_TOPICS} | {"orders": 4, "totals": 4}
    topology = topology_of(application)
    return build_plan(application, topology, blue="orders-app", generation=2, current=counts, target=8)


def stopped_clock(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let it be noon until the test changes the list's only element."""
    now = [NOON]
    monkeypatch.setattr(operation, "now_ms", lambda: now[0])
    monkeypatch.setattr(leases, "FIRST_PAUSE_SECONDS", 0)
    return now


def control_topic(monkeypatch: pytest.MonkeyPatch) -> Control:
    """Stand in for the control topic of an expansion whose copies are being made, and for its brokers."""
    held = Lease(owner=OWNER, epoch=1, target=8, expires_at_ms=0)
    made = Control(ControlState(lease=held, journal=Journal(plan=planned())))
    compacted = {"cleanup.policy": "compact", "delete.retention.ms": str(2 * HOUR)}

    def describe(topics: list[str]) -> dict[str, TopicDescription]:
        return {topic: TopicDescription(topic, 4, 1, compacted) for topic in topics}

    monkeypatch.setattr(operation, "ControlTopic", made)
    monkeypatch.setattr(operation, "ClusterAdmin", lambda _: SimpleNamespace(describe_topics=describe))
    return made


def app(**changes: Any) -> Application:
    """The application of a file."""
    return Application.model_validate({**CHAIN, **changes})


def through(owner: str = OWNER, **changes: Any) -> operation.Answer:
    """Let a run through if its moment has come."""
    return operation.let_through(app(**changes), CONNECTION, owner=owner)


def say(action: str, until: str = "", **changes: Any) -> str:
    """Say a word in the name of Ada."""
    return operation.say_action(app(**changes), CONNECTION, action, by="ada", until=until)


def ask(**changes: Any) -> None:
    """Ask a person for the approval."""
    operation.begin_wait(app(**changes), CONNECTION, owner=OWNER, asks=True)


def approve(
    order: Order = Order.WINDOW, not_before_ms: int = 0, *, answered_ms: int | None = None, **changes: Any
) -> None:
    """Approve in the name of Bob; by default, with an answer that names no time."""
    operation.approve(
        app(**changes),
        CONNECTION,
        owner=OWNER,
        by="bob",
        order=order,
        not_before_ms=not_before_ms,
        answered_ms=answered_ms,
    )
