"""An old topic that was deleted and made anew: what is known of its first log says nothing about its new one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.core.control.bridge import Bridge, unfinished, verdict
from kafka_rescale.core.control.journal import Journal, PartitionOffsets, Phase
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import PreflightRefused, UnsafeState
from kafka_rescale.core.expansion.bridge_progress import Left
from kafka_rescale.kafka.copy import bridging
from kafka_rescale.kafka.copy.marks import EMPTIED, Mark, Position
from kafka_rescale.kafka.copy.units import units_of
from kafka_rescale.kafka.reading.progress import Snapshot
from kafka_rescale.spark.copy import bridge as bridge_job

from tests.support.cluster.young_broker import YoungBroker
from tests.unit.copy.test_bridging import Group, Job
from tests.unit.plan.test_repartitioned import plan

PLAN = plan(2, 4)
ENDS: PartitionOffsets = {"orders": {0: 40, 1: 35}}
FEWER: PartitionOffsets = {"orders": {0: 30, 1: 0}}
MORE: PartitionOffsets = {"orders": {0: 50, 1: 50}}
FIRST, ANEW = {"orders": "first"}, {"orders": "second"}
ENDED = Bridge(plan=PLAN.fingerprint, begun=True, ends=ENDS, ids=FIRST, quiet_since_ms=1, ended_at_ms=77)
COMPLETE = Journal(plan=PLAN, phase=Phase.COMPLETE)
STATE = ControlState(journal=COMPLETE, bridge=ENDED)
CARRIED = Position(40, Mark(as_of_ms=5, fingerprint=PLAN.bridges[0].fingerprint))
BY_HAND = Position(0, Mark())
NOBODY: Any = None


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> YoungBroker:
    """A broker with the topic that was made anew. The broker that is asked first knows no topic."""
    found = YoungBroker({topic: dict(of) for topic, of in MORE.items()}, {})
    found.ids = dict(ANEW)
    for module in (bridging, bridge_job):
        monkeypatch.setattr(module, "ClusterAdmin", lambda _: found)
    return found


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> Group:
    return Group(monkeypatch)


def left(state: ControlState = STATE) -> Left:
    progress = bridging.live_progress(NOBODY, state)
    return Left.of({"orders": {p.partition: p.end for p in progress}}, progress)


@pytest.mark.parametrize("last", [FEWER, MORE, ENDS])
def test_all_its_records_are_late(last: PartitionOffsets) -> None:
    records = {"orders": {p: end for p, end in last["orders"].items() if end}}
    assert Bridge.of(PLAN, ENDED, ANEW).late(last) == records
    assert verdict(COMPLETE, ENDED, last=last, ids=ANEW, topics=()).due
    assert len(list(unfinished(COMPLETE, ENDED, last=last, ids=ANEW))) == 1


def test_the_same_topic_keeps_its_proof() -> None:
    for ids in (FIRST, {}):
        assert Bridge.of(PLAN, ENDED, ids).proven == ENDS
    assert Bridge.of(PLAN, ENDED.model_copy(update={"ids": {}}), ANEW).proven == ENDS, "of an earlier version"


def test_one_without_records_gives_a_bridge_no_work() -> None:
    assert not verdict(COMPLETE, ENDED, last={"orders": {0: 0, 1: 0}}, ids=ANEW, topics=()).due


def test_nothing_else_begins_before_its_records_are_carried_on(broker: YoungBroker) -> None:
    assert bridging.verdict_now(NOBODY, STATE).due
    with pytest.raises(PreflightRefused, match="in partitions 0"):
        bridging.assert_ended(NOBODY, STATE, plan(4, 8))


@pytest.mark.parametrize("ends", [FEWER, MORE])
def test_a_producer_does_not_move_ahead_of_its_records(
    broker: YoungBroker, group: Group, ends: PartitionOffsets
) -> None:
    broker.ends = ends
    group.positions["orders", 0] = CARRIED
    found = left()
    assert (found.is_passed, found.records) == (False, sum(ends["orders"].values()))


def run(broker: YoungBroker) -> Job:
    job: Any = Job()
    job.control = SimpleNamespace(read=lambda: STATE)
    bridge_job._prepare(job, COMPLETE, ENDED)
    return job  # type: ignore[no-any-return]


@pytest.mark.parametrize("kept", [{}, {("orders", 0): CARRIED, ("orders", 1): CARRIED}])
def test_its_bridge_asks_for_positions(broker: YoungBroker, group: Group, kept: dict[Any, Position]) -> None:
    """By default, brokers delete the positions together with the topic."""
    group.positions |= kept
    with pytest.raises(UnsafeState, match=r"no position of orders-0, orders-1; .* commit its log starts"):
        run(broker)
    assert group.positions == kept


def test_its_bridge_goes_on_from_what_a_person_commits(broker: YoungBroker, group: Group) -> None:
    group.positions = {("orders", 0): BY_HAND, ("orders", 1): BY_HAND}
    assert left().records == 100
    (known,) = run(broker).written
    assert group.positions == {("orders", 0): BY_HAND, ("orders", 1): BY_HAND}
    assert (known.ids, known.ended_at_ms) == (ANEW, 0)
    group.positions = dict.fromkeys(group.positions, Position(50, CARRIED.mark))
    assert left(STATE.model_copy(update={"bridge": known})).is_passed


def beat(broker: YoungBroker, known: Bridge) -> bridge_job._Watch:
    job: Any = SimpleNamespace(
        arguments=SimpleNamespace(silent_seconds=1), key="bridge", put=lambda *_, **__: None
    )
    progress: Any = SimpleNamespace(read=lambda: Snapshot((), 0, 0.0), note_rest=lambda *_: None)
    follower: Any = SimpleNamespace(first=lambda: COMPLETE)
    pacer: Any = SimpleNamespace(adapted=lambda _: {}, has_news=False, is_paused=False)
    units = units_of(PLAN.bridges)
    watch = bridge_job._Watch(job, broker, progress, "s", units, known, follower, pacer, None)
    watch.beat()
    return watch


def test_a_bridge_notes_at_work_which_topic_it_reads(broker: YoungBroker) -> None:
    watch = beat(broker, Bridge(plan=PLAN.fingerprint))
    assert (watch.known.begun, watch.known.ids, watch.is_over()) == (True, ANEW, False)


def test_a_bridge_at_work_stops_and_keeps_the_first_id(broker: YoungBroker) -> None:
    watch = beat(broker, ENDED.model_copy(update={"ended_at_ms": 0}))
    assert (watch.deleted, watch.is_over(), watch.has_ended(), watch.known.ids) == (["orders"], True, False, FIRST)


def test_a_partition_that_waits_is_no_position_of_a_person() -> None:
    assert bridging.is_by_hand(BY_HAND)
    assert not bridging.is_by_hand(Position(0, Mark(state=EMPTIED)))
    assert not bridging.is_by_hand(CARRIED)


def test_a_record_without_ids_is_written_as_before() -> None:
    assert "ids" not in Bridge(plan="p").model_dump()
    assert Bridge.model_validate(ENDED.model_dump()) == ENDED
