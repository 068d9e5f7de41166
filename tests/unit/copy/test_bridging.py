"""The positions of a bridge whose group has lost them: proven if the bridge had ended, else an error."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.core.cluster import TopicPartition
from kafka_rescale.core.control.bridge import Bridge
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.keys import Concern
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.kafka.copy import bridging
from kafka_rescale.kafka.copy.marks import EMPTIED, Mark, Position
from kafka_rescale.spark.copy import bridge as bridge_job

from tests.unit.plan.test_repartitioned import plan

PLAN = plan(2, 4)
ENDS = {"orders": {0: 10, 1: 20}}
ENDED = Bridge(plan=PLAN.fingerprint, begun=True, ends=ENDS, quiet_since_ms=1, ended_at_ms=77)
AT_WORK = ENDED.model_copy(update={"ended_at_ms": 0})
PROVEN = Mark(as_of_ms=77)


class Group:
    """The committed positions of the bridge's group; they expire when a test empties them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.positions: dict[TopicPartition, Position] = {}
        self.killed_after: int | None = None
        monkeypatch.setattr(bridging, "closing_consumer", lambda *_: nullcontext(self))
        monkeypatch.setattr(bridging, "fence", lambda *_: None)
        monkeypatch.setattr(bridging, "Bucket", self.bucket)
        monkeypatch.setattr(bridging, "read_positions", self.read)

    def read(self, _: object, sources: Iterable[TopicPartition]) -> dict[TopicPartition, Position]:
        return {source: self.positions[source] for source in sources if source in self.positions}

    def bucket(self, _: object, units: Iterable[Any], __: str) -> Any:
        return SimpleNamespace(writers={unit.source: None for unit in units}, commit_at=self.commit)

    def commit(self, _: object, positions: Mapping[TopicPartition, Position]) -> None:
        for source, position in positions.items():
            if self.killed_after is not None and len(self.positions) >= self.killed_after:
                raise KeyboardInterrupt
            self.positions[source] = position


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> Group:
    return Group(monkeypatch)


class Job:
    """A job that records what it writes to the control topic."""

    connection: Any = None
    key = "bridge"

    def __init__(self) -> None:
        self.written: list[Bridge] = []

    def put(self, _: str, *, records: Mapping[str, Any]) -> None:
        self.written.append(records[Concern.BRIDGE])


@contextmanager
def old_topic(monkeypatch: pytest.MonkeyPatch, ends: dict[int, int]) -> Iterator[Job]:
    monkeypatch.setattr(bridge_job, "ClusterAdmin", lambda _: None)
    monkeypatch.setattr(bridge_job, "ends_of_bridged", lambda *_: {"orders": ends})
    yield Job()


def test_a_bridge_that_had_ended_goes_on_from_its_proof(group: Group) -> None:
    bridging.prepare(Job.connection, PLAN, AT_WORK, ENDED)
    assert group.positions == {("orders", 0): Position(10, PROVEN), ("orders", 1): Position(20, PROVEN)}


def test_a_committed_position_counts_more_than_the_proof(group: Group) -> None:
    group.positions["orders", 0] = Position(15, Mark())
    bridging.prepare(Job.connection, PLAN, AT_WORK, ENDED)
    assert group.positions == {("orders", 0): Position(15, Mark()), ("orders", 1): Position(20, PROVEN)}


@pytest.mark.parametrize("found", [AT_WORK, None])
def test_a_position_of_a_bridge_that_had_not_ended_is_lost(group: Group, found: Bridge | None) -> None:
    with pytest.raises(UnsafeState, match="no position of orders-0, orders-1"):
        bridging.prepare(Job.connection, PLAN, AT_WORK, found)
    assert not group.positions


def test_a_partition_added_since_begins_where_no_record_was_carried_on(
    group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    with old_topic(monkeypatch, {0: 10, 1: 21, 2: 3}) as job:
        known = bridge_job._prepare(job, Journal(plan=PLAN, phase=Phase.COMPLETE), ENDED)  # type: ignore[arg-type]
    assert {source[1]: position.offset for source, position in group.positions.items()} == {0: 10, 1: 20, 2: 0}
    assert group.positions["orders", 2].mark.state == EMPTIED
    assert [(a.count, a.ends, a.begun) for a in known.added] == [(3, {0: 10, 1: 21}, True)]


def test_the_proof_is_dropped_only_after_every_position_is_committed(
    group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal, group.killed_after = Journal(plan=PLAN, phase=Phase.COMPLETE), 1
    with old_topic(monkeypatch, {0: 10, 1: 21}) as job:
        with pytest.raises(KeyboardInterrupt):
            bridge_job._prepare(job, journal, ENDED)  # type: ignore[arg-type]
        assert not job.written, "the next try still finds the proof"
        group.killed_after = None
        known = bridge_job._prepare(job, journal, ENDED)  # type: ignore[arg-type]
    assert sorted(position.offset for position in group.positions.values()) == [10, 20]
    assert job.written == [known]
    assert (known.begun, known.ended_at_ms) == (True, 0)
