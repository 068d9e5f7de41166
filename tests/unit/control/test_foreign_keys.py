"""A record of a producer that is none of this project's stops nobody from reading the control topic."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control import journal_follower
from kafka_rescale.kafka.control.journal_follower import ControlFollower, JournalFollower
from kafka_rescale.kafka.reading import log_reader
from kafka_rescale.kafka.reading.log_reader import LatestValues

from tests.support.plans import plan_for

CONNECTION = KafkaConnection({"bootstrap.servers": "127.0.0.1:9"})
OWN = Journal(plan=plan_for("shop"), phase=Phase.QUIESCED).model_dump_json().encode()


@pytest.fixture(params=[b"\x00\xff", b"shop/\xff"], ids=["any key", "a key that begins like one of its own"])
def records(request: pytest.FixtureRequest) -> Any:
    """What a client reads: a key that is no text, and then the journal."""
    return [
        SimpleNamespace(
            error=lambda: None,
            key=lambda key=key: key,
            value=lambda value=value: value,
            offset=lambda offset=offset: offset,
            timestamp=lambda: (1, 1),
        )
        for offset, (key, value) in enumerate([(request.param, b"x"), (b"shop/journal", OWN)])
    ]


@pytest.fixture(autouse=True)
def client(records: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def made(*_: Any) -> Any:
        left = iter(records)
        return SimpleNamespace(
            assign=lambda _: None, unassign=lambda: None, close=lambda: None, poll=lambda _: next(left, None)
        )

    for module in (log_reader, journal_follower):
        monkeypatch.setattr(module, "Consumer", made)


def test_what_stands_behind_it_is_read() -> None:
    values = LatestValues(CONNECTION, "_kafka_rescale", "shop/").up_to(2, seconds=30)
    assert values["shop/journal"] == OWN


def test_what_stands_behind_it_is_followed() -> None:
    followed = JournalFollower(CONNECTION, "shop").latest()
    assert followed is not None
    assert followed.phase is Phase.QUIESCED


def test_what_stands_behind_it_is_followed_by_the_watcher_of_jobs() -> None:
    follower = ControlFollower(CONNECTION, "shop")
    assert follower.heard("catch_up") == (0, None)
    assert follower.received == 2
