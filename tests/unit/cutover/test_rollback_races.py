"""A person's rollback beside a running cutover: one of the two wins, and the other leaves alone what it needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.airflow.operators import base, closing
from kafka_rescale.airflow.operators.closing import RollBackOperator
from kafka_rescale.core.control.journal import Phase
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import Fenced, Refused, RescaleError
from kafka_rescale.operations.cutover.cutover import Cutover
from kafka_rescale.operations.expansion import rollback
from kafka_rescale.operations.expansion.rescale import Rescale
from kafka_rescale.operations.expansion.rollback import RollBack, roll_back

from tests.support.expansion.growing_steps import APPLICATION, CONNECTION, cut_over, without_brokers
from tests.support.expansion.growing_world import NAME, OWNER, GrowingWorld

PERSON = "rollback_orders-app/manual"
ASKED = datetime.fromtimestamp(7, UTC)
FENCED = Fenced("transactional.id", found="another controller", expected="none", remedy="Stop here.")


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> GrowingWorld:
    without_brokers(monkeypatch)
    return GrowingWorld()


def _beside(
    world: GrowingWorld,
    monkeypatch: pytest.MonkeyPatch,
    meanwhile: Callable[[], object],
    lost: RescaleError | None = None,
) -> None:
    """Let something happen between a person's reading of the journal and the change that follows.

    :param lost: the error of the first try of that change, if it fails.
    """
    happens = [meanwhile]

    def opened(_: Any, __: Any, owner: str, ___: str) -> Rescale:
        rescale = replace(world.rescale, owner=owner)
        update = rescale.control.update

        def later(change: Callable[[ControlState], Mapping[str, Any]]) -> ControlState:
            if happens:
                happens.pop()()
                if lost is not None:
                    raise lost
            return update(change)

        if owner == PERSON:
            rescale.control.update = later  # type: ignore[method-assign, assignment]
        return rescale

    monkeypatch.setattr(Rescale, "open", opened)


def _by_a_person() -> RollBack:
    return roll_back(
        APPLICATION, CONNECTION, owner=PERSON, reason="a person", take_over=True, airflow="this Airflow"
    )


def test_before_the_pause_it_says_to_reject_what_is_still_asked(
    world: GrowingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    _beside(world, monkeypatch, lambda: None, None)
    assert _by_a_person().told.endswith("was never touched. If approve_cutover of test still asks, reject it")


@pytest.mark.parametrize("lost", [None, FENCED], ids=["behind it", "beside it"])
def test_what_was_promoted_meanwhile_keeps_its_lease_and_is_brought_to_its_end(
    world: GrowingWorld, monkeypatch: pytest.MonkeyPatch, lost: RescaleError | None
) -> None:
    _beside(world, monkeypatch, Cutover(world.rescale).until_promoted, lost)
    said = _by_a_person()
    assert not said.is_done
    assert "only forward" in said.told
    assert world.journal.phase is Phase.PROMOTED
    assert world.state.lease is not None
    assert world.state.lease.holder == OWNER
    cut_over()
    assert world.journal.phase is Phase.STARTED
    assert world.running


def test_what_was_rolled_back_meanwhile_is_not_rolled_back_again(
    world: GrowingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rolled_back() -> None:
        world.rescale.advance(Phase.ROLLING_BACK, rollback_reason="its run has failed")
        world.rescale.advance(Phase.ROLLED_BACK)

    _beside(world, monkeypatch, rolled_back)
    said = _by_a_person()
    assert said.told == "nothing to roll back: it was done before; rolled_back, because: its run has failed"
    assert world.state.lease is not None
    assert world.state.lease.holder == OWNER


@pytest.mark.parametrize("lost", [None, FENCED], ids=["granted", "granted when asked again"])
def test_what_is_not_promoted_is_taken_and_rolled_back(
    world: GrowingWorld, monkeypatch: pytest.MonkeyPatch, lost: RescaleError | None
) -> None:
    seen: list[ControlState] = []
    stop = world._stop

    def stops(instance: Any) -> None:
        seen.append(world.state)
        stop(instance)

    world.rescale.advance(Phase.QUIESCING, pause_started_ms=1, stop_asked=True)
    monkeypatch.setattr(world, "_stop", stops)
    _beside(world, monkeypatch, lambda: None, lost)
    said = _by_a_person()
    assert said.told == f"rolled back; {NAME} was started again"
    assert (world.journal.phase, world.journal.rollback_reason) == (Phase.ROLLED_BACK, "a person")
    assert world.running
    (meanwhile,) = seen
    assert meanwhile.journal is not None
    assert meanwhile.journal.phase is Phase.ROLLING_BACK
    assert meanwhile.lease is not None
    assert (meanwhile.lease.holder, meanwhile.lease.epoch) == (PERSON, 2)
    # Only the Airflow of a deleted run can say that it has ended.
    assert meanwhile.lease.airflow == "this Airflow"
    assert world.state.lease is not None
    assert world.state.lease.released


def test_a_run_that_rolls_itself_back_keeps_its_lease_and_whose_it_is(
    world: GrowingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert world.state.lease is not None
    held = world.state.lease.model_copy(update={"airflow": "this Airflow"})
    world.state = world.state.model_copy(update={"lease": held})
    _beside(world, monkeypatch, lambda: None)
    assert roll_back(APPLICATION, CONNECTION, owner=OWNER, reason="a test").is_done
    assert (world.state.lease.epoch, world.state.lease.airflow) == (1, "this Airflow")
    assert world.state.lease.holder == OWNER


def test_a_lease_that_another_run_has_by_now_is_left_to_it(
    world: GrowingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rollback takes a lease only if a person asks for it."""

    def taken() -> None:
        assert world.state.lease is not None
        lease = world.state.lease.model_copy(update={"owner": "expand_orders-app/another"})
        world.state = world.state.model_copy(update={"lease": lease})

    world.state = world.state.model_copy(
        update={"lease": world.state.lease and world.state.lease.model_copy(update={"owner": PERSON})}
    )
    _beside(world, monkeypatch, taken)
    said = roll_back(APPLICATION, CONNECTION, owner=PERSON, reason="a test")
    assert said.told == "not rolled back: expand_orders-app/another holds the lease"
    assert world.journal.phase is Phase.WARMING


@pytest.mark.parametrize(
    ("take_over", "failed", "stopped_by"),
    [
        pytest.param(True, [], "anna (rollback_x/r)", id="a-person"),
        pytest.param(False, ["approve_cutover"], "approve_cutover, without an approval", id="a-rejected-approval"),
        pytest.param(False, ["restore"], "", id="a-failed-task"),
    ],
)
def test_a_task_says_which_airflow_it_is_of_and_who_has_ended_the_attempt(
    monkeypatch: pytest.MonkeyPatch, take_over: bool, failed: list[str], stopped_by: str
) -> None:
    told: dict[str, Any] = {}

    def rolled_back(*_: Any, **arguments: Any) -> RollBack:
        told.update(arguments)
        return RollBack(is_done=True, told="rolled back")

    monkeypatch.setattr(base, "airflow_of", lambda _: "this Airflow")
    monkeypatch.setattr(closing, "failed_tasks", lambda _: failed)
    monkeypatch.setattr(rollback, "roll_back", rolled_back)
    monkeypatch.setattr(RollBackOperator, "application", lambda _: APPLICATION)
    monkeypatch.setattr(RollBackOperator, "connection", lambda *_: CONNECTION)
    task = RollBackOperator(task_id="roll_back", application_file="x.yaml", reason="why", take_over=take_over)
    run = SimpleNamespace(dag_id="rollback_x", run_id="r", triggering_user_name="anna", run_after=ASKED)
    task.execute({"dag_run": run})  # type: ignore[arg-type]
    assert (told["owner"], told["airflow"], told["take_over"]) == ("rollback_x/r", "this Airflow", take_over)
    assert told["stopped_by"] == stopped_by
    # A run that expands was triggered before its own attempt began.
    assert told.get("asked_ms") == (7000 if take_over else None)


def _asked_for(monkeypatch: pytest.MonkeyPatch, outcome: RollBack, *, by_a_person: bool) -> dict[str, Any]:
    monkeypatch.setattr(closing, "failed_tasks", lambda _: [])
    monkeypatch.setattr(RollBackOperator, "run_owned", lambda *_, **__: outcome)
    task = RollBackOperator(task_id="roll_back", application_file="x.yaml", reason="why", take_over=by_a_person)
    run = SimpleNamespace(dag_id="rollback_x", run_id="manual-1", run_after=ASKED)
    return task.execute({"dag_run": run})  # type: ignore[arg-type]


@pytest.mark.parametrize("before", [False, True])
def test_a_persons_rollback_that_changes_nothing_is_not_green(
    monkeypatch: pytest.MonkeyPatch, before: bool
) -> None:
    outcome = RollBack(is_done=False, told="not rolled back: shop-g2 owns the inputs", was_done_before=before)
    with pytest.raises(Refused, match="rollback asked for by manual-1: found not rolled back: shop-g2 owns"):
        _asked_for(monkeypatch, outcome, by_a_person=True)
    # The run's own rollback task has nothing to tell a person, because the run has already failed.
    assert _asked_for(monkeypatch, outcome, by_a_person=False)["is_done"] is False


@pytest.mark.parametrize("phase", [Phase.PROMOTED, Phase.QUIESCED])
def test_a_rollback_that_was_frozen_does_not_start_blue_beside_a_run_that_has_gone_on(
    world: GrowingWorld, monkeypatch: pytest.MonkeyPatch, phase: Phase
) -> None:
    """A person has taken over meanwhile, and the new run has stopped blue, or has promoted green."""
    stop = world._stop

    def stops_and_freezes(instance: Any) -> None:
        stop(instance)
        assert world.state.lease is not None
        lease = world.state.lease.model_copy(update={"owner": "expand/another"})
        journal = world.journal.model_copy(update={"phase": phase, "attempt": 2})
        world.state = world.state.model_copy(update={"lease": lease, "journal": journal})

    world.rescale.advance(Phase.QUIESCING, pause_started_ms=1, stop_asked=True)
    monkeypatch.setattr(world, "_stop", stops_and_freezes)
    monkeypatch.setattr(Rescale, "open", lambda *_: world.rescale)
    with pytest.raises(Fenced, match=f"found phase {phase}"):
        roll_back(APPLICATION, CONNECTION, owner=OWNER, reason="a failure")
    assert not world.running


def test_a_rollback_that_was_frozen_does_not_stop_what_another_run_has_started(
    world: GrowingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    def frozen(_: Rescale) -> None:
        journal = world.journal.model_copy(update={"phase": Phase.STARTED, "attempt": 2})
        world.state = world.state.model_copy(update={"journal": journal})

    world.rescale.advance(Phase.QUIESCING, pause_started_ms=1, stop_asked=True)
    monkeypatch.setattr(rollback.producers, "release", frozen)
    monkeypatch.setattr(Rescale, "open", lambda *_: world.rescale)
    with pytest.raises(Fenced, match="found phase started"):
        roll_back(APPLICATION, CONNECTION, owner=OWNER, reason="a failure")
    assert world.running


@pytest.mark.parametrize("stop_asked", [True, False])
def test_a_rollback_that_was_frozen_does_not_release_producers_that_another_run_holds(
    world: GrowingWorld, monkeypatch: pytest.MonkeyPatch, stop_asked: bool
) -> None:
    def frozen(*_: Any) -> None:
        journal = world.journal.model_copy(update={"phase": Phase.QUIESCED, "attempt": 2})
        world.state = world.state.model_copy(update={"journal": journal})

    released: list[Rescale] = []
    world.rescale.advance(Phase.QUIESCING, pause_started_ms=1, stop_asked=stop_asked)
    monkeypatch.setattr(rollback.log, "warning", frozen)
    monkeypatch.setattr(rollback.producers, "release", released.append)
    monkeypatch.setattr(Rescale, "open", lambda *_: world.rescale)
    with pytest.raises(Fenced, match="found phase quiesced"):
        roll_back(APPLICATION, CONNECTION, owner=OWNER, reason="a failure")
    assert released == []


def test_a_change_of_the_journal_that_loses_a_race_is_made_again_while_the_lease_is_ours(
    world: GrowingWorld,
) -> None:
    rescale = world.rescale
    update, races = rescale.control.update, [FENCED]

    def loses(change: Callable[[ControlState], Mapping[str, Any]]) -> ControlState:
        if races:
            raise races.pop()
        return update(change)

    rescale.control.update = loses  # type: ignore[method-assign, assignment]
    assert rescale.advance(Phase.QUIESCING).phase is Phase.QUIESCING
    races.append(FENCED)
    assert world.state.lease is not None
    taken = world.state.lease.model_copy(update={"owner": "expand/another"})
    world.state = world.state.model_copy(update={"lease": taken})
    with pytest.raises(Fenced, match="expand/another"):
        rescale.advance(Phase.QUIESCED)
    assert world.journal.phase is Phase.QUIESCING
