"""A process of a cutover that is frozen, and wakes when another one of the same run has gone on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kafka_rescale.core.control.journal import Phase
from kafka_rescale.core.errors import Fenced, RescaleError, UnsafeState
from kafka_rescale.operations.cutover import copies, cutover, growing
from kafka_rescale.operations.cutover.cutover import Cutover
from kafka_rescale.operations.expansion.rollback import roll_back

from tests.support.expansion.growing_steps import (
    APPLICATION,
    CONNECTION,
    assert_grown,
    cut_over,
    use,
    without_brokers,
)
from tests.support.expansion.growing_world import OWNER, GrowingWorld


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    without_brokers(monkeypatch)
    monkeypatch.setattr(copies, "READY_SECONDS", 0.1)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether the producers are held, after each call about them."""
    found: list[bool] = []
    monkeypatch.setattr(cutover.producers, "hold", lambda *_: found.append(True))
    monkeypatch.setattr(cutover.producers, "release", lambda _: found.append(False))
    return found


def _rolled_back() -> None:
    assert roll_back(APPLICATION, CONNECTION, owner=OWNER, reason="another try").is_done


def _worlds(
    monkeypatch: pytest.MonkeyPatch,
    meanwhile: Callable[[GrowingWorld], object],
    made: Callable[[], GrowingWorld] = GrowingWorld,
) -> Iterator[GrowingWorld]:
    """Yield a world for each call of a process: it freezes there, and something happens meanwhile."""
    for at in range(1, 200):
        world = made()
        world.calls, world.freezes_at, world.meanwhile = 0, at, lambda world=world: meanwhile(world)  # type: ignore[misc]
        yield use(world, monkeypatch)
        if world.freezes_at:
            return


def test_wherever_it_freezes_it_leaves_alone_the_next_attempt_of_its_run(
    monkeypatch: pytest.MonkeyPatch, held: list[bool]
) -> None:
    """The lease is still that of its run: the run was cleared, and its task ``plan`` has begun another attempt."""

    def begun_again(world: GrowingWorld) -> None:
        if not world.journal.is_promoted:
            _rolled_back()
            world.begin_again()

    worlds = _worlds(monkeypatch, begun_again)
    use(next(worlds), monkeypatch)
    cut_over()  # it froze before it had read anything, so this is the next attempt's own cutover
    attempts = set()
    for world in worlds:
        held.clear()
        try:
            cut_over()
        except RescaleError:
            assert (world.journal.phase, world.journal.attempt) == (Phase.WARMING, 2)
            assert not world.journal.rollback_reason
        else:
            assert world.journal.phase is Phase.STARTED
        assert world.running
        assert not any(held[-1:])
        attempts.add(world.journal.attempt)
    assert attempts == {1, 2}


def test_what_was_rolled_back_while_it_prepared_stays_rolled_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def frozen(*arguments: Any) -> Any:
        _rolled_back()
        return hold(*arguments)

    hold = cutover.hold_compaction
    world = use(GrowingWorld(), monkeypatch)
    monkeypatch.setattr(cutover, "hold_compaction", frozen)
    with pytest.raises(UnsafeState, match="rolled_back, because: another try"):
        cut_over()
    assert (world.journal.phase, world.running) == (Phase.ROLLED_BACK, True)


def test_wherever_it_meets_a_promotion_by_a_try_that_has_died_it_starts_green(
    monkeypatch: pytest.MonkeyPatch, held: list[bool]
) -> None:
    for world in _worlds(monkeypatch, lambda world: Cutover(world.rescale).until_promoted()):
        held.clear()
        cut_over()
        assert_grown(world)
        assert not held[-1]


def test_wherever_another_try_does_everything_green_runs_and_so_do_its_producers(
    monkeypatch: pytest.MonkeyPatch, held: list[bool]
) -> None:
    """In place, a stop that takes effect late stops green: it is started again, and the producers are released."""
    for world in _worlds(monkeypatch, lambda _: cut_over()):
        held.clear()
        cut_over()
        assert world.journal.phase is Phase.STARTED
        assert world.running
        assert not held[-1]


def test_two_tries_behind_the_promotion_start_green_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def promoted() -> GrowingWorld:
        world = GrowingWorld()
        Cutover(world.rescale).until_promoted()
        return world

    for world in _worlds(monkeypatch, lambda _: cut_over(), promoted):
        cut_over()
        assert_grown(world)


@pytest.mark.parametrize("other", ["attempt", "run"])
def test_a_promotion_that_is_not_its_own_is_left_to_whose_it_is(
    monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    world = use(GrowingWorld(), monkeypatch)

    def promoted(*_: Any) -> None:
        assert world.state.lease is not None
        journal = world.journal.model_copy(update={"phase": Phase.PROMOTED})
        lease = world.state.lease
        if other == "attempt":
            journal = journal.model_copy(update={"attempt": 2})
        else:
            lease = lease.model_copy(update={"owner": "expand_orders-app/another"})
        world.state = world.state.model_copy(update={"journal": journal, "lease": lease})

    monkeypatch.setattr(growing, "rehearse_unit", promoted)
    with pytest.raises(Fenced):
        cut_over()
    assert (world.journal.phase, world.running) == (Phase.PROMOTED, False)
