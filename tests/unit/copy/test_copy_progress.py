"""Readings of copies know where these begin: at the log start, where blue has stopped, where a proof begins."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.core.cluster import TopicDescription
from kafka_rescale.core.control.journal import Captured, Journal, PartitionOffsets, Phase
from kafka_rescale.core.control.progress import PartitionProgress
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.verify.parts import Part
from kafka_rescale.kafka.copy import bridging, progress
from kafka_rescale.kafka.copy.deadline import Deadline
from kafka_rescale.kafka.copy.progress import CopyProgress
from kafka_rescale.operations.expansion import stages

from tests.support.situations import situation
from tests.support.verify.proofs import fences_of
from tests.unit.plan.test_repartitioned import plan as repartitioned

PLAN = situation().plan
MOVE = PLAN.changelogs[0]
CONNECTION: Any = None


class Broker:
    """Its logs begin at 7, and end at 9."""

    def __init__(self, _: Any) -> None:
        self.asked = 0

    def begin_offsets(self, topics: Any) -> PartitionOffsets:
        self.asked += 1
        return {topic: dict.fromkeys(range(64), 7) for topic in topics}

    def end_offsets(self, topics: Any, **_: Any) -> PartitionOffsets:
        return {topic: dict.fromkeys(range(64), 9) for topic in topics}

    def committed(self, _: str) -> PartitionOffsets:
        return {}


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    found = Broker(None)
    for module in (progress, stages, bridging):
        monkeypatch.setattr(module, "ClusterAdmin", lambda _: found)
    monkeypatch.setattr(progress, "copy_consumer", lambda *_: SimpleNamespace(close=lambda: None))
    for module in (progress, bridging):
        monkeypatch.setattr(module, "read_positions", lambda *_: {})
    return found


def test_a_job_asks_once_where_its_sources_begin(broker: Broker) -> None:
    readings = CopyProgress(CONNECTION, PLAN, [MOVE], begins={(MOVE.source, 1): 8})
    first, again = readings.read(), readings.read()
    assert broker.asked == 1
    begins = {p.partition: p.begin for p in first.partitions}
    assert begins == {p: 8 if p == 1 else 7 for p in range(MOVE.source_partitions)}
    assert (first.lag, again.lag) == (2 * MOVE.source_partitions - 1,) * 2


def test_a_gate_knows_it_as_well(broker: Broker) -> None:
    assert {(p.begin, p.left) for p in stages.lags(CONNECTION, PLAN, None)} == {(7, 2)}


def test_a_bridge_begins_where_the_application_has_stopped(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bridging, "closing_consumer", lambda *_, **__: nullcontext())
    monkeypatch.setattr(bridging, "ids_of_bridged", lambda *_: {})
    monkeypatch.setattr(bridging, "ends_of_bridged", lambda *_: {"orders": {0: 9, 1: 9, 2: 9}})
    captured = Captured(committed={"orders": {0: 3, 1: 4}})
    journal = Journal(plan=repartitioned(2, 4), phase=Phase.STARTED, captured=captured)
    found = bridging.live_progress(CONNECTION, ControlState(journal=journal))
    assert [(p.begin, p.left) for p in found] == [(3, 6), (4, 5), (0, 9)]


def test_a_proof_reads_from_where_green_begins() -> None:
    fences = fences_of(Journal(plan=PLAN))
    begun = fences.model_copy(
        update={"green_begins": {t: dict.fromkeys(of, 3) for t, of in fences.green_ends.items()}}
    )
    part = Part(store=MOVE.store, number=0, count=1, modulus=1)
    read = list(part.progress(MOVE.target, begun, 0.5, is_ours=True))
    assert {(p.begin, p.position, p.whole, p.left) for p in read} == {(3, 4, 2, 1)}


def test_the_time_in_which_a_copy_rests_is_not_working_time(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now[0]))
    readings = CopyProgress(CONNECTION, PLAN, [MOVE])

    def seconds_at(moment: float, *, rests: bool) -> float:
        now[0] = moment
        found = readings.read().seconds
        readings.note_rest(rests)
        return found

    assert seconds_at(3_600.0, rests=True) == 3_600.0
    assert seconds_at(10_000.0, rests=True) == 3_600.0
    assert seconds_at(25_200.0, rests=False) == 3_600.0
    assert seconds_at(25_203.0, rests=False) == 3_603.0


def test_a_pause_makes_no_copy_look_too_slow(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fifth per hour, and a pause of six hours after the first: the copies end four hours behind it."""
    now = [0.0]
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now[0]))
    readings = CopyProgress(CONNECTION, PLAN, [MOVE])
    kept = {"cleanup.policy": "compact", "delete.retention.ms": str(24 * 3_600_000)}
    described = {MOVE.source: TopicDescription(MOVE.source, MOVE.source_partitions, 1, kept)}
    deadline = Deadline(described, {MOVE.source: {0: 0}}, clock=lambda: 1 + int(now[0] * 1000))

    def told_at(hour: int, position: int, *, rests: bool) -> str:
        now[0] = 3_600.0 * hour
        part = PartitionProgress(topic=MOVE.source, partition=0, position=position, end=1_000_000)
        said = deadline.told(replace(readings.read(), partitions=(part,), as_of_ms=0))
        readings.note_rest(rests)
        return said

    assert told_at(0, 0, rests=False) == ""
    assert told_at(1, 200_000, rests=True) == ""
    assert told_at(7, 200_000, rests=False) == ""
