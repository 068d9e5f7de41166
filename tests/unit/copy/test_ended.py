"""The positions of tasks that have ended are kept, and a task that is still at work is never fenced for that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import pytest
from kafka_rescale.core.cluster import TopicPartition
from kafka_rescale.core.errors import Outage
from kafka_rescale.kafka.copy import ended as module
from kafka_rescale.kafka.copy.ended import LOOK_SECONDS, EndedCopies
from kafka_rescale.kafka.copy.marks import Mark, Position
from kafka_rescale.kafka.copy.units import CopyUnit, buckets_of, units_of

from tests.unit.plan.test_repartitioned import plan

PLAN = plan(4, 8)
LISTS = buckets_of(units_of(PLAN.bridges))
ENDS = {unit.source: 10 for units in LISTS for unit in units}


class Brokers:
    """What is committed, and which units were fenced and committed again."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.at: dict[TopicPartition, int] = {}
        self.kept: list[TopicPartition] = []
        self.failures: list[Outage] = []

    def positions(self, _: object, sources: Iterable[TopicPartition]) -> dict[TopicPartition, Position]:
        return {source: Position(self.at[source], Mark(records=3)) for source in sources if source in self.at}

    def bucket(self, _: object, units: Sequence[CopyUnit], __: str) -> Any:
        if self.failures:
            raise self.failures.pop()
        brokers = self

        class Fencing:
            writers = dict.fromkeys(unit.source for unit in units)

            def commit_at(self, _: object, positions: Mapping[TopicPartition, Position]) -> None:
                assert all(of == Position(brokers.at[source], Mark(records=3)) for source, of in positions.items())
                brokers.kept += positions

        return Fencing()


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Brokers:
    brokers = Brokers()
    monkeypatch.setattr(module, "closing_consumer", lambda *_: nullcontext())
    monkeypatch.setattr(module, "read_positions", brokers.positions)
    monkeypatch.setattr(module, "Bucket", brokers.bucket)
    return brokers


def looked(brokers: Brokers, copies: EndedCopies, seconds: float = LOOK_SECONDS) -> list[TopicPartition]:
    """What a call keeps so much later."""
    brokers.seconds, brokers.kept = brokers.seconds + seconds, []
    copies.keep()
    return brokers.kept


def test_only_tasks_that_two_looks_have_found_at_their_ends_are_kept(brokers: Brokers) -> None:
    assert len(LISTS) == 4
    (first,), (second,) = LISTS[0], LISTS[1]
    nobody: Any = None
    copies = EndedCopies(nobody, PLAN, LISTS, ENDS, lambda: brokers.seconds)
    brokers.at = {first.source: 12, second.source: 9}
    assert looked(brokers, copies, LOOK_SECONDS - 1) == []
    assert looked(brokers, copies, 1) == [], "its last commit may be under way"
    brokers.at[second.source] = 10
    assert looked(brokers, copies) == [first.source]
    assert looked(brokers, copies, LOOK_SECONDS / 2) == []
    assert looked(brokers, copies, LOOK_SECONDS / 2) == [first.source, second.source]


def test_an_outage_is_tried_again_at_the_next_call(brokers: Brokers) -> None:
    nobody: Any = None
    copies = EndedCopies(nobody, PLAN, LISTS, ENDS, lambda: brokers.seconds)
    brokers.at = dict.fromkeys(ENDS, 10)
    looked(brokers, copies)
    brokers.failures = [Outage("a", found="b", expected="c", remedy="D.")]
    with pytest.raises(Outage):
        looked(brokers, copies)
    assert len(looked(brokers, copies, 0)) == 4
