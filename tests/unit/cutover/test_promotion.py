"""Nothing is promoted if blue or its producers have come back meanwhile. A failure leaves a running blue."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.lease import Lease
from kafka_rescale.core.errors import Fenced, Outage, UnsafeState
from kafka_rescale.operations.cutover import growing, in_place, persistence, quiesce, start_green
from kafka_rescale.operations.cutover.cutover import producers as held
from kafka_rescale.operations.cutover.cutover import run_cutover
from kafka_rescale.operations.expansion import rollback
from kafka_rescale.operations.expansion.rescale import Rescale
from kafka_rescale.operations.expansion.rollback import roll_back
from kafka_rescale.operations.modes import in_place as in_place_mode

from tests.support.expansion.gate_world import Killed
from tests.support.expansion.growing_world import AFTER, NAME, OWNER, GrowingWorld
from tests.support.plans import in_place_application

APPLICATION, NOBODY = in_place_application(), None
CONNECTION: Any = NOBODY
PERSON = "rollback_orders-app/manual"


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> GrowingWorld:
    found = GrowingWorld()
    monkeypatch.setattr(Rescale, "open", lambda *_: found.rescale)
    monkeypatch.setattr(persistence, "COMMAND_SECONDS", 0.0)
    monkeypatch.setattr(in_place, "fence", lambda *_: None)
    monkeypatch.setattr(start_green, "watch_first_output", lambda *_: {"restore": 0.0})
    monkeypatch.setattr(growing, "rehearse_unit", lambda *_: None)
    for module in (in_place, quiesce):
        monkeypatch.setattr(module, "wait_until_complete", lambda admin, topics, **_: admin.end_offsets(topics))
    return found


def cut_over() -> None:
    run_cutover(APPLICATION, CONNECTION, owner=OWNER)


def _starts(world: GrowingWorld) -> None:
    world.running = world.members = True


def _has_started_and_ended(world: GrowingWorld) -> None:
    world.offsets[NAME]["orders"][2] += 1


def _has_written(world: GrowingWorld) -> None:
    world.ends["orders-app-per-customer-changelog"][1] += 1


@pytest.mark.parametrize(
    ("meanwhile", "found"),
    [
        (_starts, "a running instance"),
        (_has_started_and_ended, "offsets of orders-2 that it has committed since"),
        (_has_written, "new records in its internal topics"),
    ],
)
def test_what_has_changed_since_blue_was_proven_gone_is_not_promoted(
    world: GrowingWorld, monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[GrowingWorld], None], found: str
) -> None:
    def change_once(*_: Any) -> None:
        monkeypatch.setattr(growing, "rehearse_unit", lambda *_: None)
        meanwhile(world)

    monkeypatch.setattr(growing, "rehearse_unit", change_once)
    with pytest.raises(UnsafeState) as refused:
        cut_over()
    assert refused.value.found == found
    assert world.journal.phase is Phase.ROLLED_BACK
    assert world.running


def test_an_input_that_has_grown_further_than_planned_is_refused_while_there_is_a_way_back(
    world: GrowingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growing, "rehearse_unit", lambda *_: world.ends["orders"].update({AFTER: 0}))
    world.ends["orders"] |= dict.fromkeys(range(4, AFTER), 0)
    monkeypatch.setattr(world, "_start", _starts_whatever_the_counts(world))
    with pytest.raises(UnsafeState, match=r"found 9 partitions; expected 4 as .*, or 8"):
        cut_over()
    assert world.journal.phase is Phase.ROLLED_BACK


def _starts_whatever_the_counts(world: GrowingWorld) -> Callable[[Any], None]:
    return lambda _: _starts(world)


def test_an_input_that_has_grown_no_further_than_planned_is_no_obstacle(
    world: GrowingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growing, "rehearse_unit", lambda *_: world.ends["orders"].update({4: 0, 5: 0}))
    cut_over()
    assert world.journal.is_promoted


def test_what_another_try_of_the_task_has_promoted_is_not_promoted_again(
    world: GrowingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process was frozen behind its last look at the clock. The other try may be dead, so this one goes on."""
    update = world._update

    def frozen(change: Any) -> Any:
        if world.journal.phase is not Phase.CAUGHT_UP:
            return update(change)
        monkeypatch.setattr(world, "_update", update)
        world.state = world.state.model_copy(
            update={"journal": world.journal.model_copy(update={"phase": Phase.PROMOTED})}
        )
        return update(change)

    monkeypatch.setattr(world, "_update", frozen)
    cut_over()
    assert world.journal.phase is Phase.STARTED
    assert world.running
    assert world.journal.input_ends == {}, "as the other try has promoted it"


class TestStopFails:
    """The stop command fails, and the application may be down or not. So whatever can run has to run again."""

    @pytest.fixture
    def done(self, world: GrowingWorld, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        done: list[str] = []

        def fails(_: Any) -> None:
            world.running = False
            raise Outage("command `stop`", found="exit code 1", expected="0", remedy="Look at it.")

        monkeypatch.setattr(world, "_stop", fails)
        monkeypatch.setattr(held, "hold", lambda *_: done.append("hold"))
        monkeypatch.setattr(held, "release", lambda _: done.append("release"))
        return done

    def test_producers_go_on_and_blue_is_started(self, world: GrowingWorld, done: list[str]) -> None:
        with pytest.raises(Outage, match="command `stop`"):
            cut_over()
        assert done == ["hold", "release"]
        assert world.running
        assert world.journal.phase is Phase.ROLLED_BACK

    def test_blue_is_started_although_producers_can_not_be_released(
        self, world: GrowingWorld, done: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fails(_: Any) -> None:
            raise Outage("command `start` of producers", found="exit code 1", expected="0", remedy="Look at it.")

        monkeypatch.setattr(held, "release", fails)
        with pytest.raises(Outage, match="of producers"):
            cut_over()
        assert done == ["hold"]
        assert world.running
        # The rollback has to be repeated. It does not claim that everything is as before.
        assert world.journal.phase is Phase.ROLLING_BACK


@pytest.mark.parametrize(
    ("owner", "is_over"),
    [(OWNER, True), (PERSON, True), (PERSON, False)],
    ids=["by its own run", "by a person", "a person is about to"],
)
def test_who_stops_blue_after_another_has_rolled_back_starts_it_again(
    world: GrowingWorld, monkeypatch: pytest.MonkeyPatch, owner: str, is_over: bool
) -> None:
    def stops_late(_: Any) -> None:
        monkeypatch.setattr(world, "_stop", lambda _: setattr(world, "running", False))
        with nullcontext() if is_over else pytest.raises(Killed):
            roll_back(APPLICATION, CONNECTION, owner=owner, reason="a person", take_over=owner == PERSON)
        assert world.running
        world.running = False

    def dies(*_: Any) -> None:
        raise Killed

    released: list[Any] = []
    monkeypatch.setattr(Rescale, "open", lambda _, __, owner, ___: replace(world.rescale, owner=owner))
    monkeypatch.setattr(held, "release", released.append)
    monkeypatch.setattr(world, "_stop", stops_late)
    if not is_over:
        monkeypatch.setattr(in_place_mode, "release_compaction", dies)
    with pytest.raises((UnsafeState, Fenced)):
        cut_over()
    assert world.running
    assert world.journal.rollback_reason == "a person"
    # Once by the rollback, and once by the cutover that has held them beside it.
    assert len(released) == 2


@pytest.mark.parametrize(
    ("phase", "beside", "runs"),
    [
        pytest.param(Phase.QUIESCING, False, False, id="quiescing"),
        pytest.param(Phase.PROMOTED, False, False, id="promoted"),
        pytest.param(Phase.STARTED, False, True, id="started"),
        pytest.param(Phase.COMPLETE, False, True, id="complete"),
        pytest.param(Phase.COMPLETE, True, False, id="complete-beside"),
    ],
)
def test_who_stops_blue_late_starts_it_nowhere_beside_an_attempt_that_needs_it_down(
    world: GrowingWorld, monkeypatch: pytest.MonkeyPatch, phase: Phase, beside: bool, runs: bool
) -> None:
    """Once green has been started, it needs its producers; in place, it is what was stopped late."""
    plan = world.plan.model_copy(update={"green": f"{NAME}-g2"} if beside else {})

    def stops_late(_: Any) -> None:
        world.running = False
        lease = Lease(owner="expand_orders-app/another", epoch=2, target=8, expires_at_ms=2**62)
        begun = Journal(plan=plan, phase=phase, attempt=2, owner=lease.owner)
        world.state = world.state.model_copy(update={"journal": begun, "lease": lease})

    released: list[Any] = []
    monkeypatch.setattr(held, "release", released.append)
    monkeypatch.setattr(world, "_stop", stops_late)
    with pytest.raises(Fenced):
        cut_over()
    assert world.running is runs
    assert len(released) == (phase in {Phase.STARTED, Phase.COMPLETE})


def test_a_stop_asked_for_after_the_snapshot_of_the_journal_is_undone(world: GrowingWorld) -> None:
    """A rollback uses the journal at the time when it marks it, not when it first read it."""
    read = world.state
    world.rescale.advance(Phase.QUIESCING, pause_started_ms=1, stop_asked=True)
    world.running = False
    stale = world.rescale
    stale.control.read = lambda: read  # type: ignore[method-assign]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Rescale, "open", lambda *_: stale)
        assert roll_back(APPLICATION, CONNECTION, owner=OWNER, reason="a test").is_done
    assert world.running


def test_nobody_waits_in_a_rollback_for_what_did_not_run_before(
    world: GrowingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world, "_start", lambda _: None)
    monkeypatch.setattr(rollback, "START_SECONDS", 0.1)
    world.rescale.advance(Phase.QUIESCING, pause_started_ms=1, stop_asked=True, blue_ran=False)
    assert roll_back(APPLICATION, CONNECTION, owner=OWNER, reason="a test").is_done
    world.begin_again()
    world.rescale.advance(Phase.QUIESCING, pause_started_ms=1, stop_asked=True, blue_ran=True)
    with pytest.raises(Outage, match="START IT BY HAND NOW"):
        roll_back(APPLICATION, CONNECTION, owner=OWNER, reason="a test")


def test_green_that_does_not_come_up_is_no_success(world: GrowingWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start_green, "watch_first_output", lambda *_: {})
    with monkeypatch.context() as failing:
        failing.setattr(world, "_start", lambda _: None)
        with pytest.raises(Outage, match="NOBODY PROCESSES THEM"):
            cut_over()
        assert world.journal.phase is Phase.PROMOTED
    cut_over()
    assert world.journal.phase is Phase.STARTED


class TestGreenDoesNotStart:
    """There is no way back any more. So producers may write green's inputs as soon as these have grown."""

    @pytest.fixture
    def released(self, world: GrowingWorld, monkeypatch: pytest.MonkeyPatch) -> list[int]:
        """The count of the input at each release of its producers."""
        released: list[int] = []
        monkeypatch.setattr(held, "release", lambda _: released.append(len(world.ends["orders"])))
        return released

    @staticmethod
    def fails(what: str) -> Callable[..., None]:
        def fail(*_: Any) -> None:
            raise Outage(what, found="exit code 1", expected="0", remedy="Look at it.")

        return fail

    def test_its_producers_are_released_all_the_same(
        self, world: GrowingWorld, released: list[int], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with monkeypatch.context() as failing:
            failing.setattr(world, "_start", self.fails("command `start`"))
            with pytest.raises(Outage, match="command `start`"):
                cut_over()
        assert (world.journal.phase, released) == (Phase.PROMOTED, [AFTER])
        cut_over()
        assert (world.journal.phase, released) == (Phase.STARTED, [AFTER, AFTER])

    def test_that_it_is_down_is_told_and_not_that_they_are_too(
        self, world: GrowingWorld, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(world, "_start", self.fails("command `start`"))
        monkeypatch.setattr(held, "release", self.fails("command `start` of producers"))
        with pytest.raises(Outage) as failed:
            cut_over()
        assert failed.value.what == "command `start`"

    def test_they_stay_held_while_the_input_has_not_grown(
        self, world: GrowingWorld, released: list[int], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        grow = world._grow
        refuses = self.fails("topic 'orders'")
        monkeypatch.setattr(world, "_grow", lambda counts: refuses() if "orders" in counts else grow(counts))
        with pytest.raises(Outage, match="topic 'orders'"):
            cut_over()
        assert (world.journal.phase, released) == (Phase.PROMOTED, [])
