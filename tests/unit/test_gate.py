"""Whatever finds something behind the warm-up gate stops it and leaves nothing of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.journal import Journal, PartitionOffsets, Phase
from kafka_rescale.core.plan import Move, MoveKind, Plan, Stage
from kafka_rescale.operations import gate
from kafka_rescale.operations.gate import assert_nothing_committed, close_gate

TOPIC = "shop-g2-totals-changelog"
MOVE = Move(
    kind=MoveKind.CHANGELOG,
    source="shop-totals-changelog",
    target=TOPIC,
    store="totals",
    source_partitions=1,
    target_partitions=2,
)
PLAN = Plan(
    application="shop",
    generation=2,
    blue="shop",
    green="shop-g2",
    partitions=2,
    stages=(Stage(index=1, name="stage_1_subtopology_0", subtopology=0, moves=(MOVE,)),),
    inputs=(),
)
ENDS: PartitionOffsets = {TOPIC: {0: 10, 1: 20}}


@dataclass
class World:
    """Green as the deployment and the brokers see it; stands for the adapters of a rescale."""

    gate_ends: PartitionOffsets
    committed: PartitionOffsets = field(default_factory=dict)
    ends: PartitionOffsets = field(default_factory=lambda: ENDS)
    stops: bool = True
    running: bool = True
    done: list[str] = field(default_factory=list)

    @property
    def rescale(self) -> Any:
        lifecycle = SimpleNamespace(stop=self._stop, is_running=lambda _: self.running)
        admin = SimpleNamespace(
            remove_members=lambda group: self.done.append(f"remove members of {group}") or (),
            delete_group=lambda group: self.done.append(f"delete {group}"),
            committed=lambda _: self.committed,
            end_offsets=lambda *_, **__: self.ends,
        )
        return SimpleNamespace(
            lifecycle=lifecycle, admin=admin, connection=None, journal=self.journal, advance=self._advance
        )

    def journal(self) -> Journal:
        return Journal(plan=PLAN, phase=Phase.ROLLING_BACK, gate_ends=self.gate_ends)

    def close(self) -> str:
        return close_gate(self.rescale, self.journal())

    def _stop(self, instance: Any) -> None:
        self.done.append(f"stop {instance.application_id}")
        self.running = self.running and not self.stops

    def _advance(self, phase: Phase, *, gate_ends: PartitionOffsets) -> None:
        self.done.append(f"{phase}: gate closed")
        self.gate_ends = gate_ends


@pytest.fixture(autouse=True)
def restarted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Targets whose copies were restarted."""
    found: list[str] = []
    monkeypatch.setattr(gate, "restart", lambda connection, plan, move, mark: found.append(move.target))
    return found


def test_where_nothing_was_started_nothing_is_done() -> None:
    world = World(gate_ends={})
    assert world.close() == ""
    assert world.done == []


def test_green_is_stopped_and_leaves_the_groups_in_whatever_phase(restarted: list[str]) -> None:
    world = World(gate_ends=ENDS)
    assert world.close() == ""
    assert world.done == [
        "stop shop-g2",
        "remove members of shop-g2",
        "delete shop-g2-gate",
        "rolling_back: gate closed",
    ]
    assert world.gate_ends == {}
    assert restarted == []


def test_what_it_committed_is_deleted_and_what_it_wrote_is_copied_anew(restarted: list[str]) -> None:
    world = World(gate_ends=ENDS, committed={"orders": {0: 5}}, ends={TOPIC: {0: 10, 1: 21}})
    assert world.close() == f"committed offsets of orders and records in {TOPIC}"
    assert "delete shop-g2" in world.done
    assert restarted == [TOPIC]
    assert world.gate_ends == {}


def test_an_instance_that_survives_its_stop_keeps_the_gate_on_record() -> None:
    world = World(gate_ends=ENDS, stops=False)
    with pytest.raises(UnsafeState, match="a running instance after `stop`"):
        world.close()
    assert world.gate_ends == ENDS


def test_offsets_that_nobody_should_have_committed_are_refused() -> None:
    assert_nothing_committed(World(gate_ends={}).rescale, PLAN)
    with pytest.raises(UnsafeState, match="committed offsets of orders"):
        assert_nothing_committed(World(gate_ends={}, committed={"orders": {0: 5}}).rescale, PLAN)
