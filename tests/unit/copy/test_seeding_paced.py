"""A copy that begins with a snapshot also obeys its share, and rests without an open transaction."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

import pytest
from kafka_rescale.kafka.copy import seeding as seeding_module
from kafka_rescale.kafka.copy import throttle as module
from kafka_rescale.kafka.copy.marks import SEEDING, Mark, Position
from kafka_rescale.kafka.copy.seeding import Flow, Seeding, seed_with
from kafka_rescale.kafka.copy.settings import BULK
from kafka_rescale.kafka.copy.throttle import Throttle, unlimited
from kafka_rescale.kafka.copy.units import units_of
from kafka_rescale.kafka.copy.window import FIRST_BYTES, MOST_BYTES, Window
from kafka_rescale.kafka.writing.settings import TRANSACTION_SECONDS

from tests.integration.copy_helpers import changelog

UNIT = units_of([changelog("a", "key-value", 1, 2)])[0]
ROWS, ROW_BYTES, SHARE = 5, 1_000, 1_000.0


class Writer:
    """Records what is committed. Each batch has one row."""

    unit = UNIT

    def __init__(self) -> None:
        self.pending_records = self.pending_bytes = self.rows = 0
        self.mark, self.committed = Mark(), list[str]()

    def was_committed(self) -> None: ...

    def write(self, rows: list[object]) -> None:
        self.rows += len(rows)
        self.pending_records += len(rows)
        self.pending_bytes += ROW_BYTES * len(rows)

    def commit_at(self, _: object, position: Position) -> None:
        self.was_committed()
        self.mark, self.pending_records, self.pending_bytes = position.mark, 0, 0
        self.committed.append(position.mark.state)

    def commit(self, _: object) -> None:
        self.commit_at(None, Position(0, Mark(records=self.mark.records + self.pending_records)))


class Brokers(Writer):
    """Takes so many bytes per second, and answers at once what it has taken."""

    def __init__(self, bytes_per_second: float, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self.speed, self.now, self.on_way, self.most_on_way = bytes_per_second, 0.0, 0.0, 0.0
        self.commits_at: list[float] = []
        monkeypatch.setattr(seeding_module, "time", SimpleNamespace(monotonic=lambda: self.now))

    def write(self, rows: list[object]) -> None:
        super().write(rows)
        self.on_way += ROW_BYTES * len(rows)
        self.most_on_way = max(self.most_on_way, self.on_way)

    def await_answers(self, seconds: float) -> None:
        self.now += seconds
        self.on_way = max(0.0, self.on_way - seconds * self.speed)

    def was_committed(self) -> None:
        self.now += self.on_way / self.speed
        self.on_way = 0.0
        self.commits_at.append(self.now)

    def flow(self, throttle: Throttle) -> Flow:
        return Flow(throttle, Window(BULK), lambda: int(self.on_way / ROW_BYTES), self.await_answers, lambda: None)


def seed_of(rows: int, at_a_time: int) -> Seeding:
    batches = [["row"] * at_a_time] * (rows // at_a_time)
    seed: Any = type("Seed", (), {"position": 7, "batches": lambda _: iter(batches)})()
    return Seeding({UNIT.source: seed}, 0)


@pytest.mark.parametrize("speed", [100_000.0, 300_000.0, 2_000_000.0])
@pytest.mark.parametrize("at_a_time", [1, 2_000, 20_000])
def test_slow_brokers_get_no_transaction_that_outlives_its_time(
    monkeypatch: pytest.MonkeyPatch, speed: float, at_a_time: int
) -> None:
    brokers, nothing = Brokers(speed, monkeypatch), cast(Any, None)
    throttle = Throttle(unlimited, lambda: brokers.now)
    rows = seed_with(
        cast(Any, brokers), nothing, seed_of(20_000, at_a_time), BULK, nothing, brokers.flow(throttle)
    )
    assert rows == 20_000
    assert brokers.most_on_way <= MOST_BYTES
    between = [b - a for a, b in pairwise([0.0, *brokers.commits_at])]
    # What is on its way when a commit begins has to arrive within it. The first rows are larger than expected.
    assert max(between) <= BULK.commit_seconds + 2 * FIRST_BYTES / speed < TRANSACTION_SECONDS
    assert brokers.committed[:-1] == [SEEDING] * (len(brokers.committed) - 1)


def test_a_person_s_pause_renews_the_positions_with_everything_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    writer, now, renewed = Writer(), [0.0], list[int]()
    paused_until = 8 * 86_400.0
    monkeypatch.setattr(
        module, "time", SimpleNamespace(sleep=lambda seconds: now.__setitem__(0, now[0] + 1_000 * seconds))
    )
    throttle = Throttle(lambda: 0.0 if writer.rows > 0 and now[0] < paused_until else None, lambda: now[0])
    nothing: Any = None
    flow = Flow(throttle, Window(BULK), lambda: 0, nothing, lambda: renewed.append(writer.pending_records))
    assert seed_with(cast(Any, writer), nothing, seed_of(3, 1), BULK, nothing, flow) == 3
    assert len(renewed) * 3_600 >= paused_until
    assert set(renewed) == {0}
    assert writer.committed == [SEEDING, SEEDING, ""]


def test_it_rests_between_batches_with_everything_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    now, writer = [0.0], Writer()
    open_bytes: list[int] = []

    def sleep(seconds: float) -> None:
        now[0] += seconds
        open_bytes.append(writer.pending_bytes)

    monkeypatch.setattr(module, "time", SimpleNamespace(sleep=sleep))
    nothing: Any = None
    written: Any = writer
    flow = Flow(Throttle(lambda: SHARE, lambda: now[0]), Window(BULK), lambda: 0, nothing, lambda: None)
    rows = seed_with(written, nothing, seed_of(ROWS, 1), BULK, nothing, flow)
    assert rows == ROWS
    assert now[0] == pytest.approx(ROWS * ROW_BYTES / SHARE)
    assert set(open_bytes) == {0}
    assert writer.committed == [SEEDING] * (ROWS + 1) + [""]
