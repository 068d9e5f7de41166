"""A verification that takes minutes says how far it is."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from kafka_rescale.operations.verify import awaited


def test_how_many_stores_are_compared_is_told_until_all_are(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    seen = threading.Event()

    def slow() -> Any:
        assert seen.wait(60)
        return "second"

    class Watcher(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.getMessage().startswith("1 of 2 stores are compared after"):
                seen.set()

    handler, logger = Watcher(), logging.getLogger("kafka_rescale.operations.verify")
    logger.addHandler(handler)
    try:
        with ThreadPoolExecutor(2) as pool:
            parts: Any = [pool.submit(lambda: "first"), pool.submit(slow)]
            assert awaited(parts, seconds=0.05) == ("first", "second")
    finally:
        logger.removeHandler(handler)


def test_nothing_is_told_of_what_is_quick_and_what_has_failed_is_raised(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    def failed() -> Any:
        raise LookupError("no log")

    with ThreadPoolExecutor(1) as pool, pytest.raises(LookupError, match="no log"):
        awaited([pool.submit(failed)], seconds=60)
    assert not caplog.records
