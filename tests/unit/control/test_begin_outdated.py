"""A plan may begin long after it was made. It is refused if another generation was promoted since."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.core.control.journal import Phase
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import Refused
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.core.plan.producers import after_rollback
from kafka_rescale.kafka.control import journal_store

from tests.support.expansion.retired_world import after, chain, plan_of
from tests.support.plans import in_place_application, plan_for

NAME, OWNER = "orders-app", "expand_orders-app/late"
SECOND, THIRD = (plan_of(chain(NAME), n) for n in (2, 3))


def begun(state: ControlState, plan: Plan) -> Any:
    """Begin a plan over a control state, and return the written journal."""

    def update(change: Any) -> ControlState:
        written = {str(k): v for k, v in change(state).items() if "/" not in str(k)}
        return state.model_copy(update=written)

    control: Any = SimpleNamespace(application=NAME, update=update)
    return journal_store.begin(control, plan, OWNER, now_ms=1)


def rolled_back(plan: Plan, *before: Plan) -> ControlState:
    """The control state after these expansions, and the rollback of another one."""
    known = after(*before)
    assert known.journal is not None
    journal = known.journal.model_copy(update={"plan": plan, "phase": Phase.ROLLED_BACK})
    return known.model_copy(update={"journal": journal})


@pytest.mark.parametrize(
    "plan",
    [plan_for(NAME, 16), plan_of(in_place_application(), 2, blue=NAME)],
    ids=["into its topics", "in place of what is left"],
)
@pytest.mark.parametrize("state", [after(SECOND), rolled_back(THIRD, SECOND)], ids=["complete", "rolled back"])
def test_a_plan_of_before_the_last_promotion_is_refused(state: ControlState, plan: Plan) -> None:
    with pytest.raises(Refused, match=f"found a plan for generation 2 .* while {NAME}-g2 is generation 2"):
        begun(state, plan)


def test_the_next_generation_is_begun_also_after_an_attempt_at_another_one() -> None:
    other = plan_for(NAME, 16, generation=3)
    for state in (after(SECOND), rolled_back(THIRD, SECOND), rolled_back(other, SECOND)):
        found = begun(state, THIRD)
        assert (found.phase, found.plan.fingerprint) == (Phase.WARMING, THIRD.fingerprint)
    assert begun(ControlState(), SECOND).plan == SECOND


def test_after_a_rollback_the_same_ids_fence_who_wakes_up_late() -> None:
    """The previous attempt may be of a version with a producer per partition."""
    before = after_rollback(THIRD, SECOND)
    assert {m.producers for m in before.moves} == {0}
    assert begun(rolled_back(before, SECOND), THIRD).plan == before
    assert begun(rolled_back(THIRD, SECOND), THIRD).plan == THIRD
    assert begun(after(SECOND), THIRD).plan == THIRD


@pytest.mark.parametrize("phase", [Phase.COMPLETE, Phase.PROMOTED])
def test_the_same_plan_goes_on_where_it_is(phase: Phase) -> None:
    assert begun(after(SECOND, phase=phase), SECOND).phase is phase


def test_what_a_pre_warming_has_left_on_disk_outlives_the_rollback() -> None:
    """Copies may be made anew before the next attempt's pre-warming, which may never come."""
    state = rolled_back(THIRD, SECOND)
    assert state.journal is not None
    for was_warm, kept in ((THIRD.green, THIRD.green), (SECOND.green, "")):
        warm = state.journal.model_copy(update={"was_warm": was_warm, "prewarmed": {"restore": 1.0}})
        journal = begun(state.model_copy(update={"journal": warm}), THIRD)
        assert (journal.was_warm, journal.prewarmed) == (kept, {})
