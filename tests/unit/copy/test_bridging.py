"""The positions of a bridge whose group has lost them: proven if the bridge had ended, else an error."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from kafka_rescale.core.cluster import TopicPartition
from kafka_rescale.core.control.added_partitions import Added, steps
from kafka_rescale.core.control.bridge import Bridge
from kafka_rescale.core.control.journal import Journal, PartitionOffsets, Phase
from kafka_rescale.core.control.keys import Concern
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import ClusterOutage, UnsafeState
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.kafka.copy import bridging
from kafka_rescale.kafka.copy.marks import EMPTIED, Mark, Position
from kafka_rescale.kafka.copy.units import units_of
from kafka_rescale.spark.copy import bridge as bridge_job

from tests.support.cluster.young_broker import YoungBroker
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
        monkeypatch.setattr(bridging, "closing_consumer", self.consumer)
        monkeypatch.setattr(bridging, "fence", lambda *_: None)
        monkeypatch.setattr(bridging, "Bucket", self.bucket)
        monkeypatch.setattr(bridging, "read_positions", self.read)

    def consumer(self, *_: object, **__: object) -> Any:
        return nullcontext(self)

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
    arguments = SimpleNamespace(silent_seconds=1)

    def __init__(self) -> None:
        self.written: list[Bridge] = []

    def put(self, _: str, *, detail: str = "", records: Mapping[str, Any] | None = None) -> None:
        self.written += [record for concern, record in (records or {}).items() if concern == Concern.BRIDGE]


@contextmanager
def old_topic(monkeypatch: pytest.MonkeyPatch, ends: dict[int, int]) -> Iterator[Job]:
    monkeypatch.setattr(bridge_job, "ClusterAdmin", lambda _: None)
    monkeypatch.setattr(bridge_job, "ids_of_bridged", lambda *_: {})
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


class TestDeleted:
    """An old topic that is deleted before its bridge has ended."""

    OTHER: ClassVar = PLAN.bridges[0].model_copy(update={"source": "payments", "target": "payments-p4"})

    def two(self) -> Plan:
        """A plan with two bridges."""
        (stage,) = PLAN.stages
        return PLAN.model_copy(
            update={"stages": (stage.model_copy(update={"bridges": (*stage.bridges, self.OTHER)}),)}
        )

    def run(self, monkeypatch: pytest.MonkeyPatch, ends: PartitionOffsets, state: ControlState) -> Job:
        for module in (bridging, bridge_job):
            monkeypatch.setattr(module, "ClusterAdmin", lambda _: YoungBroker(ends, {}))
        job: Any = Job()
        job.control = SimpleNamespace(read=lambda: state)
        bridge_job.bridge(job)
        return job  # type: ignore[no-any-return]

    def test_its_bridge_ends(self, monkeypatch: pytest.MonkeyPatch) -> None:
        state = ControlState(journal=Journal(plan=PLAN, phase=Phase.COMPLETE), bridge=AT_WORK)
        (ended,) = self.run(monkeypatch, {}, state).written
        after = state.model_copy(update={"bridge": ended})
        assert ended.ended_at_ms
        assert not bridging.verdict_now(Job.connection, after).due
        bridging.assert_ended(Job.connection, after, plan(4, 8))

    def test_of_a_log_that_is_made_anew_no_offset_is_known(
        self, monkeypatch: pytest.MonkeyPatch, group: Group
    ) -> None:
        state = ControlState(journal=Journal(plan=PLAN, phase=Phase.COMPLETE), bridge=AT_WORK)
        (ended,) = self.run(monkeypatch, {}, state).written
        with pytest.raises(UnsafeState, match=r"no position of orders-0, .* made anew, commit its log starts"):
            self.run(monkeypatch, {"orders": {0: 30, 1: 0}}, state.model_copy(update={"bridge": ended}))
        assert not group.positions

    def test_the_other_bridges_go_on_without_it(self, group: Group, monkeypatch: pytest.MonkeyPatch) -> None:
        two = self.two()
        known = AT_WORK.model_copy(update={"plan": two.fingerprint, "ends": {}})
        group.positions |= {("payments", 0): Position(3, Mark()), ("payments", 1): Position(4, Mark())}
        carried: list[Any] = []

        def carry_on(*given: Any) -> Any:
            carried.append(given[-1])
            return SimpleNamespace(known=given[2], deleted=(), has_ended=lambda: True)

        monkeypatch.setattr(bridge_job, "_carry_on", carry_on)
        state = ControlState(journal=Journal(plan=two, phase=Phase.COMPLETE), bridge=known)
        self.run(monkeypatch, {"payments": {0: 9, 1: 9}}, state)
        assert carried == [{"orders"}]
        assert group.positions.keys() == {("payments", 0), ("payments", 1)}

    def test_no_step_waits_for_it(self) -> None:
        added = [Added(topic=topic, count=3, ends={0: 5, 1: 5}) for topic in ("orders", "payments")]
        (step,) = steps(Journal(plan=self.two(), phase=Phase.COMPLETE), added, {"orders"})
        assert step.ends == {("payments", 0): 5, ("payments", 1): 5}

    def test_a_bridge_at_work_stops_so_that_the_next_run_goes_on_without_it(self) -> None:
        journal = Journal(plan=PLAN, phase=Phase.COMPLETE)
        given: Any = SimpleNamespace(first=lambda: journal)
        absent: Any = None
        watch = bridge_job._Watch(
            absent, YoungBroker({}, {}), absent, "s", units_of(PLAN.bridges), AT_WORK, given, absent, None
        )
        watch.beat()
        assert (watch.deleted, watch.is_over(), watch.has_ended()) == (["orders"], True, False)


def test_a_bridge_at_work_writes_its_rate_although_brokers_hide_its_ends() -> None:
    """Tasks learn of a person's pause by that record alone."""
    journal, written = Journal(plan=PLAN, phase=Phase.COMPLETE), list[Any]()

    def away(*_: object) -> Any:
        raise ClusterOutage("topic 'orders'", found="no leader", expected="one", remedy="Run again.")

    absent: Any = None
    job: Any = SimpleNamespace(put=lambda *given, **records: written.append((*given, records)))
    given: Any = SimpleNamespace(first=lambda: journal)
    pacer: Any = SimpleNamespace(adapted=lambda _: {"rate/bridge": 0})
    admin: Any = SimpleNamespace(topic_ids=away)
    watch = bridge_job._Watch(job, admin, absent, "s", units_of(PLAN.bridges), AT_WORK, given, pacer, None)
    with pytest.raises(ClusterOutage):
        watch.beat()
    assert written == [("running", {"records": {"rate/bridge": 0}})]
