"""Blue is not asked to stop before it has a position in every input partition with records."""

from __future__ import annotations

import pytest
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.kafka.reading.remaining import Ranges
from kafka_rescale.operations.cutover import input_positions
from kafka_rescale.operations.cutover.input_positions import await_positions

from tests.support.expansion.growing_world import AFTER, BEFORE, NAME, GrowingWorld

UNREAD = r"input orders: found records but no committed offset in partitions \[2\]"


@pytest.fixture(autouse=True)
def looked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The partitions that were read. Every offset has a committed record."""
    partitions: list[int] = []

    def with_records(_: object, ranges: Ranges) -> list[tuple[str, int]]:
        partitions.extend(p for _, p in ranges)
        return [of for of, (begin, end) in ranges.items() if (begin or 0) < end]

    monkeypatch.setattr(input_positions, "with_records", with_records)
    return partitions


@pytest.fixture
def world() -> GrowingWorld:
    """An application that has no position in partition 2 of its input."""
    world = GrowingWorld()
    del world.offsets[NAME]["orders"][2]
    return world


def test_with_a_position_everywhere_nothing_is_looked_into_nor_waited_for(looked: list[int]) -> None:
    await_positions(GrowingWorld().rescale, GrowingWorld().plan)
    assert looked == []


def test_an_empty_partition_needs_none(world: GrowingWorld) -> None:
    world.ends["orders"][2] = 0
    await_positions(world.rescale, world.plan)


def test_one_with_offsets_but_without_committed_records_needs_none(
    world: GrowingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(input_positions, "with_records", lambda *_: [])
    await_positions(world.rescale, world.plan)


def test_one_that_runs_is_given_time_for_its_first_commit(
    world: GrowingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float] = []

    def commits(probe: object, *, seconds: float, otherwise: object) -> None:
        asked.append(seconds)
        world.offsets[NAME]["orders"][2] = 5
        assert callable(probe)
        assert probe()

    monkeypatch.setattr(input_positions, "poll_until", commits)
    await_positions(world.rescale, world.plan)
    assert asked == [input_positions.COMMIT_SECONDS]


def test_one_that_has_none_for_good_is_refused_while_it_runs(
    world: GrowingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(input_positions, "COMMIT_SECONDS", 0)
    with pytest.raises(UnsafeState, match=UNREAD):
        await_positions(world.rescale, world.plan)
    assert world.running


def test_one_that_does_not_run_is_not_waited_for(world: GrowingWorld) -> None:
    world.running = False
    with pytest.raises(UnsafeState, match=UNREAD):
        await_positions(world.rescale, world.plan)


class TestGrownMeanwhile:
    """Blue dies of such a growth: it can neither process the new partitions nor be given positions in them."""

    @pytest.fixture
    def grown(self) -> GrowingWorld:
        """An application that a growth of its input has ended. Producers have written to the new partitions."""
        world = GrowingWorld(running=False, members=False)
        world.ends["orders"] |= dict.fromkeys(range(BEFORE, AFTER), 10)
        return world

    def test_the_growth_is_named(self, grown: GrowingWorld) -> None:
        with pytest.raises(
            UnsafeState, match=r"orders.*found 8 partitions, and .* added: \[4, 5, 6, 7\]"
        ) as refused:
            await_positions(grown.rescale, grown.plan)
        assert refused.value.complaint.expected == "4 as when the expansion was planned"
        assert "grown meanwhile" in refused.value.complaint.remedy
        assert "commit its offsets" not in str(refused.value)

    def test_new_partitions_without_records_are_no_obstacle(self, grown: GrowingWorld) -> None:
        grown.ends["orders"] |= dict.fromkeys(range(BEFORE, AFTER), 0)
        await_positions(grown.rescale, grown.plan)

    def test_more_partitions_than_planned_are_refused_before_anything_is_stopped(
        self, world: GrowingWorld
    ) -> None:
        world.ends["orders"] |= dict.fromkeys(range(BEFORE, AFTER + 1), 0)
        with pytest.raises(UnsafeState, match=r"found 9 partitions; expected 4 as .*, or 8 as it aims at"):
            await_positions(world.rescale, world.plan)
