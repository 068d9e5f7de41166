"""Every operation that finds green behind the warm-up gate stops it, and leaves nothing of it."""

from __future__ import annotations

import pytest
from kafka_rescale.core.control.journal import Journal, PartitionOffsets, Phase
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.operations.expansion import warm_up_gate as gate
from kafka_rescale.operations.expansion.warm_up_gate import assert_nothing_committed, close_gate

from tests.support.expansion.gate_world import ENDS, PLAN, TOPIC, GateWorld


@pytest.fixture(autouse=True)
def restarted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The targets whose copies were restarted."""
    found: list[str] = []
    monkeypatch.setattr(gate, "restart", lambda connection, plan, move, mark: found.append(move.target))
    return found


def left_behind(gate_ends: PartitionOffsets) -> Journal:
    return Journal(plan=PLAN, phase=Phase.ROLLING_BACK, gate_ends=gate_ends)


def close(world: GateWorld) -> str:
    return close_gate(world.rescale, world.journal)


def test_where_nothing_was_started_nothing_is_done() -> None:
    world = GateWorld(journal=left_behind({}))
    assert close(world) == ""
    assert world.done == []


def test_green_is_stopped_and_leaves_the_groups_during_a_rollback_as_well(restarted: list[str]) -> None:
    world = GateWorld(journal=left_behind(ENDS), running=True, members=True)
    assert close(world) == ""
    assert world.done == [
        "stop shop-g2",
        "remove_members shop-g2",
        "delete_group shop-g2-gate",
        "change ",
    ]
    assert world.journal.gate_ends == {}
    assert restarted == []


def test_what_it_committed_is_deleted_and_what_it_wrote_is_copied_anew(restarted: list[str]) -> None:
    wrote: PartitionOffsets = {TOPIC: {0: 10, 1: 21}}
    world = GateWorld(journal=left_behind(ENDS), committed={"orders": {0: 5}}, ends=wrote)
    assert close(world) == f"committed offsets of orders and records in {TOPIC}"
    assert world.committed == {}
    assert restarted == [TOPIC]
    assert world.journal.gate_ends == {}


@pytest.mark.parametrize("has_copied", [True, False])
def test_what_was_copied_since_is_not_taken_for_its_records(restarted: list[str], *, has_copied: bool) -> None:
    """A person may mark ``prewarm`` as success while green restores; then ``catch_up`` copies beside it."""
    world = GateWorld(copies={"blue": {0: '{"session": "before"}'}}, running=True, members=True)
    copied = gate.digest_of_copies(world.rescale, PLAN)
    world.journal = left_behind(ENDS).model_copy(update={"gate_copied": copied})
    world.ends = {TOPIC: {0: 10, 1: 21}}
    if has_copied:
        world.copies = {"blue": {0: '{"session": "after"}'}}
    assert close(world) == ("" if has_copied else f"records in {TOPIC}")
    assert restarted == ([] if has_copied else [TOPIC])
    assert (world.journal.gate_ends, world.journal.gate_copied) == ({}, "")
    assert not world.running


def test_what_the_gate_has_refused_is_read_before_its_group_is_gone(restarted: list[str]) -> None:
    marks = {"orders": {0: "refused: a record for topic totals"}}
    world = GateWorld(journal=left_behind(ENDS), committed={"orders": {0: 5}}, marks=marks)
    assert close(world) == "committed offsets of orders and refused: a record for topic totals"
    assert world.marks == {}
    assert restarted == []


def test_an_instance_that_survives_its_stop_keeps_the_gate_on_record() -> None:
    world = GateWorld(journal=left_behind(ENDS), running=True, members=True, stops=False)
    with pytest.raises(UnsafeState, match="a running instance after `stop`"):
        close(world)
    assert world.journal.gate_ends == ENDS


def test_offsets_that_nobody_should_have_committed_are_refused() -> None:
    assert_nothing_committed(GateWorld().rescale, PLAN)
    with pytest.raises(UnsafeState, match="committed offsets of orders"):
        assert_nothing_committed(GateWorld(committed={"orders": {0: 5}}).rescale, PLAN)
