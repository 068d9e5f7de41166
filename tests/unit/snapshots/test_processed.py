"""Has everything been processed, if the group of a bridge that has ended has lost its offsets?"""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.core.control.journal import PartitionOffsets
from kafka_rescale.core.errors import Outage
from kafka_rescale.kafka.reading import processed
from kafka_rescale.kafka.reading.processed import await_processed

UNTIL_MS = 100
CONNECTION: Any = None


@pytest.fixture(autouse=True)
def committed(monkeypatch: pytest.MonkeyPatch) -> dict[int, int]:
    """The committed offsets. The old topic has 10 records in each partition, all of that day."""
    offsets: dict[int, int] = {}
    admin = SimpleNamespace(
        end_offsets=lambda *_, **__: {"orders": {0: 10, 1: 10}},
        begin_offsets=lambda *_, **__: {"orders": {0: 0, 1: 0}},
        committed=lambda *_: {"orders": offsets},
    )

    def records(_: object, __: str, ranges: dict[int, tuple[int, int]], **___: bool) -> Iterator[Any]:
        for start, end in ranges.values():
            for at in range(start, end):
                yield SimpleNamespace(timestamp=lambda: (0, UNTIL_MS - 1), offset=lambda at=at: at)

    monkeypatch.setattr(processed, "ClusterAdmin", lambda _: admin)
    monkeypatch.setattr(processed, "read_ranges", records)
    return offsets


def wait(proven: PartitionOffsets | None = None) -> None:
    await_processed(CONNECTION, "bridge", ["orders"], UNTIL_MS, seconds=0.01, tell=lambda _: None, proven=proven)


def test_what_a_bridge_has_proven_needs_no_offsets() -> None:
    wait({"orders": {0: 10, 1: 10}})


def test_without_a_proof_an_offset_that_is_missing_stands_for_the_log_start() -> None:
    with pytest.raises(Outage, match="the first in orders-0 at 0"):
        wait()


def test_a_record_that_came_after_the_proof_is_waited_for() -> None:
    with pytest.raises(Outage, match="the first in orders-1 at 9"):
        wait({"orders": {0: 10, 1: 9}})


def test_an_offset_that_was_committed_since_counts_instead(committed: dict[int, int]) -> None:
    committed[1] = 10
    wait({"orders": {0: 10, 1: 9}})
