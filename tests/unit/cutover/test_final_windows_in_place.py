"""In place, final windows (`EmitStrategy.onWindowClose`) of keys that move into an existing partition come out."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.expansion.offset_metadata import OffsetMetadata
from kafka_rescale.operations.cutover import start_green

from tests.support.expansion import growing_world
from tests.support.expansion.gate_world import Killed
from tests.support.expansion.growing_steps import cut_over, use, without_brokers
from tests.support.expansion.growing_world import BEFORE, NAME, GrowingWorld
from tests.support.plans import in_place_plan

HOUR_MS = 3_600_000


@pytest.fixture(autouse=True)
def _no_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    without_brokers(monkeypatch)


def _killed(*_: Any) -> Any:
    raise Killed


def emitted(hour: int) -> str:
    """The metadata of a partition whose windows have been emitted up to an hour."""
    return OffsetMetadata(hour * HOUR_MS, {"per-customer": hour * HOUR_MS}).encode()


def _refuse(*_: Any) -> None:
    raise UnsafeState("a test", found="this", expected="that", remedy="None.")


class TestFinalWindows:
    """From 4 to 6, keys move between old partitions, whose offsets stay where they are."""

    @pytest.fixture
    def world(self, monkeypatch: pytest.MonkeyPatch) -> GrowingWorld:
        """Without records in flight."""
        monkeypatch.setattr(growing_world, "AFTER", 6)
        world = use(GrowingWorld(in_place_plan(4, 6)), monkeypatch)
        world.offsets[NAME] = {topic: dict(world.ends[topic]) for topic in world.offsets[NAME]}
        return world

    def test_old_partitions_get_the_times_of_their_new_keys(self, world: GrowingWorld) -> None:
        """With their own, later times, the windows of these keys would be left out."""
        own = {p: emitted(12 - p) for p in range(BEFORE)}
        topics = [m.source for m in world.plan.repartitions]
        world.metadata = {topic: dict(own) for topic in ["orders", *topics]}
        cut_over()
        # The keys of the input do not matter, so none of them moves.
        assert world.metadata == {
            "orders": own,
            **{topic: dict.fromkeys(range(6), emitted(9)) for topic in topics},
        }

    def test_an_old_partition_has_no_times_if_those_of_its_new_keys_are_not_known(
        self, world: GrowingWorld
    ) -> None:
        """Its closed windows may come out again, but none is left out."""
        topic = world.plan.repartitions[0].source
        world.metadata = {topic: {0: emitted(12)}}
        cut_over()
        assert not any(world.metadata.values())

    def test_a_start_that_works_already_is_no_failure(
        self, world: GrowingWorld, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its status says for a moment that it does not run, and another try finds its group with members."""
        topic = world.plan.repartitions[0].source
        with pytest.MonkeyPatch.context() as dying:
            dying.setattr(start_green, "watch_first_output", _killed)
            with pytest.raises(Killed):
                cut_over()
        world.metadata[topic] = {0: emitted(13)}
        world.running = False
        monkeypatch.setattr(world, "_commit", _refuse)
        monkeypatch.setattr(world.rescale.admin, "commit", _refuse)
        cut_over()
        assert world.metadata[topic] == {0: emitted(13)}

    def test_what_the_application_has_gone_on_from_is_not_set_back(self, world: GrowingWorld) -> None:
        """It has died since it was started, and the task is tried again."""
        topic = world.plan.repartitions[0].source
        world.metadata = {topic: {p: emitted(12 - p) for p in range(BEFORE)}}
        with pytest.MonkeyPatch.context() as dying:
            dying.setattr(start_green, "watch_first_output", _killed)
            with pytest.raises(Killed):
                cut_over()
        world.metadata[topic][0] = emitted(13)
        world.running, gone_on = False, deepcopy(world.offsets[NAME])
        cut_over()
        assert world.metadata[topic] == {0: emitted(13), **dict.fromkeys(range(1, 6), emitted(9))}
        assert world.offsets[NAME] != gone_on, "it was started again"
