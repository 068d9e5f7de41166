"""When the watch asks a person, although the bounds let an expansion begin unattended."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from kafka_rescale.core.autoscaling.decision import Look, RunState, Trigger
from kafka_rescale.core.autoscaling.messages import asks_again
from kafka_rescale.core.autoscaling.parallelism import Observed, observe
from kafka_rescale.core.control.autoscaling import Autoscaling
from kafka_rescale.core.control.generations import Generations
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.state import ControlState

from tests.support.airflow.autoscaling_watch import GROWN, IN_LINE, Watch, declared
from tests.support.situations import INPUTS, journal, situation, unjoined, with_counts

BY_CUSTOMER = "shop-by-customer-repartition"
UNPROVEN = replace(GROWN, unproven=(BY_CUSTOMER,))
STOPPED = "anna (rollback_shop/manual)"


def stopped(target: int = 8, by: str = STOPPED) -> Journal:
    """An expansion that a person has rolled back."""
    plan = situation(target).plan
    return Journal(plan=plan, phase=Phase.ROLLED_BACK, owner="expand_shop/autoscaling", stopped_by=by)


def trigger_of(watch: Watch, observed: Observed, run: RunState = RunState.ABSENT) -> Trigger:
    """Look once; the look has to ask for an expansion."""
    trigger = watch.look(observed, run).trigger
    assert trigger is not None
    return trigger


class TestUnprovenCounts:
    def recorded(self, **changes: Any) -> Observed:
        """The re-keyed orders have grown to 8, as the record of the watch shows."""
        fields: dict[str, Any] = {"topics": with_counts(orders=8), "inputs": INPUTS, **changes}
        control = fields.pop("control", ControlState())
        record = Autoscaling(inputs={"shop-orders": 4, "shop-customers": 4})
        given = unjoined(situation(8, **fields))
        return observe(replace(given, control=control.model_copy(update={"autoscaling": record})))

    def test_the_count_that_alone_shows_a_growth_is_named(self) -> None:
        observed = self.recorded()
        assert observed.grown == {"shop-orders": (4, 8)}
        assert observed.unproven == (BY_CUSTOMER,)

    @pytest.mark.parametrize("count", ["derived", "joined"])
    def test_a_count_that_the_file_explains_is_not(self, count: str) -> None:
        observed = self.recorded(repartitions=[{"name": "by-customer", "count": count}])
        assert (observed.grown, observed.unproven) == ({"shop-orders": (4, 8)}, ())

    def test_a_count_that_an_expansion_has_made_is_not(self) -> None:
        made = Generations(running="shop", generation=2, partitions=4)
        observed = self.recorded(control=ControlState(generations=made))
        assert (observed.grown, observed.unproven) == ({"shop-orders": (4, 8)}, ())

    def test_an_input_whose_changelogs_show_its_growth_leaves_no_count_unproven(self) -> None:
        observed = observe(situation(topics=with_counts(customers=8)))
        assert (observed.grown, observed.unproven) == ({"shop-customers": (4, 8)}, ())

    def test_a_person_has_to_approve_and_is_told_the_topic_and_the_remedies(self) -> None:
        decision = Watch().look(UNPROVEN)
        assert decision.trigger is not None
        assert decision.trigger.approval
        for part in (
            "A person has to approve it",
            BY_CUSTOMER,
            "withNumberOfPartitions",
            "`count: derived`",
            "`start_command` or `fixed`",
            "`start_gated`",
        ):
            assert part in decision.reason

    def test_a_retry_asks_too(self) -> None:
        watch = Watch()
        assert [trigger_of(watch, UNPROVEN, run).approval for run in (RunState.ABSENT, RunState.FAILED)] == [
            True
        ] * 2

    def test_a_generation_that_starts_before_the_promotion_needs_no_person(self) -> None:
        look = Look(
            declared(),
            UNPROVEN,
            Autoscaling(),
            RunState.ABSENT,
            RunState.ABSENT,
            "watch_shop/1",
            1_000_000,
            is_prewarmed=True,
        )
        decision = look.decide()
        assert decision.trigger is not None
        assert not decision.trigger.approval
        assert decision.reason == Watch().look().reason


class TestEndedByAPerson:
    @pytest.mark.parametrize("by", [STOPPED, "approve_cutover, without an approval"])
    def test_the_next_run_for_the_same_target_asks_and_says_why(self, by: str) -> None:
        watch = Watch()
        assert not trigger_of(watch, GROWN).approval
        decision = watch.look(replace(GROWN, stopped=stopped(by=by)), RunState.FAILED)
        assert decision.trigger == Trigger("autoscaling__2__to_8", 8, approval=True)
        assert f"the last attempt was ended by {by}" in decision.reason

    def test_every_further_run_asks_until_the_counts_are_in_line(self) -> None:
        """The journal of the next attempt doesn't say any more what has ended the one before it."""
        watch = Watch()
        watch.look()
        trigger_of(watch, replace(GROWN, stopped=stopped()), RunState.FAILED)
        assert trigger_of(watch, GROWN, RunState.FAILED).approval
        watch.look(IN_LINE)
        assert watch.record.stopped_by == ""
        assert not trigger_of(watch, GROWN).approval

    def test_an_attempt_that_has_failed_by_itself_is_tried_again_without_a_question(self) -> None:
        watch = Watch()
        watch.look()
        assert not trigger_of(watch, GROWN, RunState.FAILED).approval

    def test_of_another_target_nothing_was_ended(self) -> None:
        assert not trigger_of(Watch(), replace(GROWN, stopped=stopped(target=16))).approval

    @pytest.mark.parametrize(("by", "is_seen"), [(STOPPED, True), ("", False)])
    def test_the_watch_sees_it_in_the_journal(self, by: str, is_seen: bool) -> None:
        rolled_back = journal(8, Phase.ROLLED_BACK).journal
        assert rolled_back is not None
        control = ControlState(journal=rolled_back.model_copy(update={"stopped_by": by}))
        assert (observe(replace(situation(), control=control)).stopped is not None) is is_seen

    def test_records_of_before_name_nobody(self) -> None:
        old = stopped().model_dump(exclude={"stopped_by"})
        assert Journal.model_validate(old).stopped_by == ""
        assert Autoscaling.model_validate({"target": 8, "run": "expand_shop/a"}).stopped_by == ""

    def test_a_person_is_told_what_autoscaling_does_then(self) -> None:
        assert "watch_shop asks for it again within 2 minutes, and then waits for approval" in asks_again(
            declared()
        )
        assert asks_again(declared(enabled=False)) == ""
