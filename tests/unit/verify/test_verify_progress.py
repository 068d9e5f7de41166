"""A verification that takes minutes says how far it is. Without stores, it checks only the start."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.core.control.journal import Captured, Journal, PartitionOffsets, Phase
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.verify.aborted import Aborted
from kafka_rescale.core.verify.report import Report, is_about
from kafka_rescale.operations.verify import verify
from kafka_rescale.operations.verify.stores import await_all

from tests.support.plans import in_place_plan, stateless_plan

START: PartitionOffsets = {"orders": {p: 10 + p if p < 4 else 0 for p in range(8)}}
STARTED = Journal(
    plan=stateless_plan(),
    phase=Phase.STARTED,
    captured=Captured(committed={"orders": {p: 10 + p for p in range(4)}}),
    green_start=START,
)


def compared(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> Report:
    nobody: Any = None
    monkeypatch.setattr(verify, "ClusterAdmin", lambda _: SimpleNamespace(committed=lambda *_: START))
    monkeypatch.setattr(verify, "look_for_misrouted", lambda *_: ())
    monkeypatch.setattr(verify, "look_for_aborted", lambda *_: Aborted())
    return verify.compare_expansion(nobody, nobody, journal)


def test_an_application_without_topics_of_its_own_has_an_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    report = compared(STARTED, monkeypatch)
    assert (report.passed, report.stores, report.start_offsets) == (True, (), ())
    assert is_about(report.model_dump(mode="json"), STARTED)
    late = STARTED.model_copy(update={"green_start": {"orders": {**START["orders"], 0: 12}}})
    assert len(compared(late, monkeypatch).start_offsets) == 1


def test_stores_can_not_be_compared_up_to_ends_that_nobody_has_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnsafeState, match="no captured offsets"):
        compared(STARTED.model_copy(update={"plan": in_place_plan()}), monkeypatch)


def test_how_much_is_compared_is_told_until_all_is(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    seen = threading.Event()

    def slow() -> Any:
        assert seen.wait(60)
        return "second"

    class Watcher(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            told = record.getMessage()
            if told.startswith("after ") and told.endswith(" s: 7 of 40 records"):
                seen.set()

    handler, logger = Watcher(), logging.getLogger("kafka_rescale.operations.verify.stores")
    logger.addHandler(handler)
    try:
        with ThreadPoolExecutor(2) as pool:
            parts: Any = [pool.submit(lambda: "first"), pool.submit(slow)]
            assert await_all(parts, lambda: "7 of 40 records", seconds=0.05) == ["first", "second"]
    finally:
        logger.removeHandler(handler)


def test_nothing_is_told_of_what_is_quick_and_what_has_failed_is_raised(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    def failed() -> Any:
        raise LookupError("no log")

    with ThreadPoolExecutor(1) as pool, pytest.raises(LookupError, match="no log"):
        await_all([pool.submit(failed)], lambda: "", seconds=60)
    assert not caplog.records
