"""The thread that compares beside the copy goes on, whatever a round ends with."""

from __future__ import annotations

from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.core.errors import ClusterOutage, UnsafeState
from kafka_rescale.kafka.verify import rolling
from kafka_rescale.kafka.verify.rolling import RollingComparison

WHY = {"found": "one thing", "expected": "another", "remedy": "Run again."}


@pytest.mark.parametrize(
    "failure",
    [ClusterOutage("topic", **WHY), UnsafeState("topic", **WHY), RuntimeError("can't start new thread")],
    ids=lambda failure: type(failure).__name__,
)
def test_the_next_round_comes(failure: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rolling, "PAUSE_SECONDS", 0.01)
    nothing: Any = SimpleNamespace(connection=None, plan=None)
    comparison, again = RollingComparison(nothing, nothing), Event()
    rounds = iter([failure])

    def next_round() -> None:
        if (found := next(rounds, None)) is not None:
            raise found
        again.set()

    monkeypatch.setattr(comparison, "_next", next_round)
    comparison.start()
    assert again.wait(60)
    comparison.end()
