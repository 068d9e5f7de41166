"""The beginning of catch_up: copies that green may already have restored are not restarted."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.core.control.journal import Journal
from kafka_rescale.spark.copy import catch_up as module

from tests.support.expansion.gate_world import PLAN


class Restarted(Exception):
    """Raised when copies are looked at. Its argument says whether green has restored them."""


@pytest.mark.parametrize("was_warm", ["", PLAN.green])
def test_an_unfinished_pre_warming_counts_too(monkeypatch: pytest.MonkeyPatch, was_warm: str) -> None:
    """A person may have marked the pre-warming task as successful. Then the journal has only `was_warm`."""
    journal = Journal(plan=PLAN, was_warm=was_warm)

    def restart_stale(*_: Any, attempt: int, prewarmed: bool) -> list[str]:
        assert attempt == journal.attempt
        raise Restarted(prewarmed)

    monkeypatch.setattr(module, "restart_stale", restart_stale)
    job: Any = SimpleNamespace(connection=None, journal=lambda: journal, put=lambda *_: None)
    with pytest.raises(Restarted) as asked:
        module.catch_up(job)
    assert asked.value.args == (bool(was_warm),)
