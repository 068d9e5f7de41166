"""A copy that begins with a snapshot also obeys its share, and rests without an open transaction."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.kafka.copy import throttle as module
from kafka_rescale.kafka.copy.marks import SEEDING, Mark, Position
from kafka_rescale.kafka.copy.seeding import Seeding, seed_with
from kafka_rescale.kafka.copy.settings import BULK
from kafka_rescale.kafka.copy.throttle import Throttle
from kafka_rescale.kafka.copy.units import units_of

from tests.integration.copy_helpers import changelog

UNIT = units_of([changelog("a", "key-value", 1, 2)])[0]
ROWS, ROW_BYTES, SHARE = 5, 1_000, 1_000.0


class Writer:
    """Records what is committed. Each batch has one row."""

    unit = UNIT

    def __init__(self) -> None:
        self.pending_records = self.pending_bytes = 0
        self.mark, self.committed = Mark(), list[str]()

    def write(self, rows: list[object]) -> None:
        self.pending_records += len(rows)
        self.pending_bytes += ROW_BYTES * len(rows)

    def commit_at(self, _: object, position: Position) -> None:
        self.mark, self.pending_records, self.pending_bytes = position.mark, 0, 0
        self.committed.append(position.mark.state)

    def commit(self, _: object) -> None:
        self.commit_at(None, Position(0, Mark(records=self.mark.records + self.pending_records)))


def test_it_rests_between_batches_with_everything_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    now, writer = [0.0], Writer()
    open_bytes: list[int] = []

    def sleep(seconds: float) -> None:
        now[0] += seconds
        open_bytes.append(writer.pending_bytes)

    monkeypatch.setattr(module, "time", SimpleNamespace(sleep=sleep))
    seed: Any = type("Seed", (), {"position": 7, "batches": lambda _: iter([["row"]] * ROWS)})()
    seeding = Seeding({UNIT.source: seed}, 0)
    nothing: Any = None
    written: Any = writer
    rows = seed_with(written, nothing, seeding, BULK, nothing, Throttle(lambda: SHARE, lambda: now[0]))
    assert rows == ROWS
    assert now[0] == pytest.approx(ROWS * ROW_BYTES / SHARE)
    assert set(open_bytes) == {0}
    assert writer.committed == [SEEDING] * (ROWS + 1) + [""]
