"""How far copies have written the running generation's topics is known when the journal is another attempt's."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from kafka_rescale.core.control.generations import Generations, promoted_generations
from kafka_rescale.core.control.journal import Journal, PartitionOffsets, Phase
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.kafka.control import journal_store

from tests.support.expansion.control_states import after
from tests.support.plans import in_place_plan

FIRST = in_place_plan(4, 6)
AGAIN = in_place_plan(6, 8, generation=3)
COPIED = {move.target: {0: 40, 1: 41} for move in FIRST.moves}
TOPIC = next(iter(COPIED))


def complete(plan: Plan, ends: PartitionOffsets, before: Generations | None = None) -> ControlState:
    """The control state after an expansion."""
    journal = Journal(plan=plan, phase=Phase.COMPLETE, green_ends=ends)
    return ControlState(journal=journal, generations=promoted_generations(journal, before))


def begun(state: ControlState, plan: Plan) -> ControlState:
    """The control state after the next attempt has begun."""
    written: list[ControlState] = []

    def update(change: Any) -> ControlState:
        written.append(after(state, change(state)))
        return written[-1]

    control: Any = SimpleNamespace(application=plan.application, update=update)
    journal_store.begin(control, plan, "run", now_ms=1)
    return written[-1]


def rolled_back(state: ControlState) -> ControlState:
    """The control state after the attempt was rolled back."""
    assert state.journal is not None
    journal = state.journal.model_copy(update={"phase": Phase.ROLLED_BACK})
    return state.model_copy(update={"journal": journal})


def test_it_is_known_while_the_next_attempt_is_at_work_and_when_it_was_rolled_back() -> None:
    state = complete(FIRST, COPIED)
    assert state.copied == COPIED
    attempt = begun(state, AGAIN)
    assert attempt.copied == rolled_back(attempt).copied == begun(rolled_back(attempt), AGAIN).copied == COPIED


def test_a_growth_in_place_adds_to_what_was_known_and_new_topics_replace_it() -> None:
    known = begun(complete(FIRST, COPIED), AGAIN).generations
    more = {TOPIC: {0: 90}}
    assert complete(AGAIN, more, known).copied == {**COPIED, **more}
    beside = AGAIN.model_copy(update={"green": "orders-app-g3"})
    assert complete(beside, more, known).copied == more


def test_nothing_is_written_if_nothing_was_copied() -> None:
    state = complete(FIRST, {})
    assert begun(state, AGAIN).generations == state.generations
    assert ControlState().copied == {}
    assert "copied" not in Generations(running="app").model_dump_json()
