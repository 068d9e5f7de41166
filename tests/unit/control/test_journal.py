"""The journal in every order of events that retries, rollbacks and two owners can cause."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from kafka_rescale.core.control.journal import AFTER_PROMOTION, BLUE_STOPPED, FORWARD, Captured, Journal, Phase
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.plan.plan import Plan

PLAN = Plan(application="shop", generation=2, blue="shop", green="shop-g2", partitions=8, stages=(), inputs=())
HAPPY = (
    Phase.WARMING,
    Phase.QUIESCING,
    Phase.QUIESCED,
    Phase.CAUGHT_UP,
    Phase.PROMOTED,
    Phase.STARTED,
    Phase.VERIFIED,
    Phase.COMPLETE,
)


def test_a_run_that_goes_well_passes_every_phase_in_order() -> None:
    journal = Journal(plan=PLAN)
    for now_ms, phase in enumerate(HAPPY):
        journal = journal.advanced(phase, now_ms=now_ms)
        assert (journal.phase, journal.changed_at_ms) == (phase, now_ms)
    assert not journal.in_progress


@pytest.mark.parametrize("phase", Phase)
def test_only_the_step_that_follows_and_a_repetition_are_allowed(phase: Phase) -> None:
    journal = Journal(plan=PLAN, phase=phase)
    for other in Phase:
        if other in {phase, *FORWARD[phase]}:
            assert journal.advanced(other, now_ms=1).phase is other
            continue
        with pytest.raises(UnsafeState) as error:
            journal.advanced(other, now_ms=1)
        assert str(error.value) == (
            f"expansion of shop: found phase {phase}; expected a phase before {other}. "
            "Look at `python -m kafka_rescale status FILE`; another run may have gone on meanwhile."
        )


def test_every_phase_before_the_point_of_no_return_can_be_rolled_back_and_none_after_it() -> None:
    before = set(Phase) - {*AFTER_PROMOTION, Phase.ROLLING_BACK, Phase.ROLLED_BACK}
    assert {p for p, following in FORWARD.items() if Phase.ROLLING_BACK in following} == before
    assert set(BLUE_STOPPED) < before


def test_neither_the_next_attempt_nor_the_first_one_of_the_next_generation_is_the_same() -> None:
    first = Journal(plan=PLAN, phase=Phase.QUIESCED)
    assert first.is_same_attempt(Journal(plan=PLAN, phase=Phase.ROLLED_BACK))
    assert not first.is_same_attempt(Journal(plan=PLAN, attempt=2))
    assert not first.is_same_attempt(Journal(plan=PLAN.model_copy(update={"generation": 3})))


def test_a_journal_is_a_value_that_survives_json() -> None:
    captured = Captured(committed={"orders": {0: 5}}, in_flight={"shop-r-repartition": {1: (3, 9)}})
    journal = Journal(plan=PLAN, captured=captured, green_ends={"x": {0: 7}})
    assert Journal.model_validate_json(journal.model_dump_json()) == journal


class Expansion(RuleBasedStateMachine):
    """Everything that can happen to a journal: a run asks for any step, and may have seen an older journal."""

    def __init__(self) -> None:
        super().__init__()
        self.journal = Journal(plan=PLAN)
        self.seen = [self.journal]
        self.was_promoted = False
        self.now_ms = 0

    @rule(phase=st.sampled_from(Phase))
    def step(self, phase: Phase) -> None:
        """Let a task ask for a phase. The phase follows, or the request is refused and nothing changes."""
        before = self.journal
        self.now_ms += 1
        try:
            self.journal = before.advanced(phase, now_ms=self.now_ms)
        except UnsafeState:
            assert phase is not before.phase
            assert phase not in FORWARD[before.phase]
        self.seen.append(self.journal)

    @rule()
    def crash_and_read_again(self) -> None:
        """Check that the next process reads what was written."""
        self.journal = Journal.model_validate_json(self.journal.model_dump_json())

    @rule()
    def there_is_always_a_way_on(self) -> None:
        """Only a journal that has ended has no following phase: `plan` begins another one."""
        assert bool(FORWARD[self.journal.phase]) == self.journal.in_progress

    @invariant()
    def promotion_is_the_point_of_no_return(self) -> None:
        """Once green owns the inputs, it owns them forever."""
        self.was_promoted |= self.journal.is_promoted
        assert self.journal.is_promoted == self.was_promoted
        assert not (self.was_promoted and self.journal.phase in {Phase.ROLLING_BACK, Phase.ROLLED_BACK})

    @invariant()
    def blue_and_green_never_own_the_inputs_together(self) -> None:
        """Promotion is only reached through the phases in which blue is stopped."""
        phases = [j.phase for j in self.seen]
        if Phase.PROMOTED in phases:
            assert phases[phases.index(Phase.PROMOTED) - 1] is Phase.CAUGHT_UP

    @invariant()
    def the_end_is_no_longer_in_progress(self) -> None:
        """Only after a complete or rolled back expansion can another target begin."""
        assert self.journal.in_progress == (self.journal.phase not in {Phase.COMPLETE, Phase.ROLLED_BACK})


Expansion.TestCase.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)
TestExpansion = Expansion.TestCase
