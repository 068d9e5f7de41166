"""Days may pass between preflight and the pause: what the members read is looked at once more."""

from __future__ import annotations

import pytest
from kafka_rescale.core.control.journal import Phase
from kafka_rescale.core.errors import UnsafeState

from tests.support.expansion.growing_steps import assert_grown, cut_over, use, without_brokers
from tests.support.expansion.growing_world import GrowingWorld


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> GrowingWorld:
    """An application that reads what its plan names."""
    without_brokers(monkeypatch)
    world = GrowingWorld()
    world.reads = ("orders", *(move.source for move in world.plan.repartitions))
    return use(world, monkeypatch)


def test_what_the_plan_names_is_read_by_the_members(world: GrowingWorld) -> None:
    cut_over()
    assert_grown(world)


def test_for_another_topic_that_the_members_read_nothing_is_stopped(world: GrowingWorld) -> None:
    world.reads += ("returns",)
    with pytest.raises(UnsafeState) as refused:
        cut_over()
    assert str(refused.value) == (
        "inputs of 'orders-app': found returns, which its members read and the topology does not name; expected "
        "every topic that the running program reads in the topology: the next generation would begin the others "
        "at auto.offset.reset. The running generation goes on; this attempt is rolled back. Print "
        "Topology#describe() of the running program again, and declare each external topic in `inputs:`. Then "
        "trigger the expansion again."
    )
    assert world.running
    assert world.starts == 0
    assert world.journal.phase is Phase.ROLLED_BACK
    assert not world.journal.stop_asked
