"""KIP-878's behaviour as a function of what is seen, one look after the other."""

from __future__ import annotations

from dataclasses import replace

import pytest
from kafka_rescale.core.autoscaling.decision import Decision, Outcome, RunState
from kafka_rescale.core.autoscaling.parallelism import Observed
from kafka_rescale.core.control.autoscaling import FOLLOW_UP_MS, Autoscaling, Parallelism
from kafka_rescale.core.errors import Refused

from tests.support.airflow.autoscaling_watch import GROWN, IN_LINE, MINUTE, OVER, TIMEOUT, Watch, declared, growing
from tests.support.small_application import application


class TestOff:
    def test_it_is_off_by_default(self) -> None:
        assert application("shop").autoscaling_enabled is False

    def test_the_error_says_what_has_grown_and_both_ways_on(self) -> None:
        decision = Watch(declared(enabled=False)).look()
        assert decision.outcome is Outcome.ERROR
        assert isinstance(decision.error, Refused)
        for part in (
            "INCOMPLETE_SOURCE_TOPIC_METADATA",
            "shop-orders has 8 partitions, 4 known",
            "shop-visits-changelog with 4 partitions instead of 8",
            "Trigger expand_shop with target 8",
            "`partition.autoscaling.enabled: true`",
        ):
            assert part in str(decision.error)

    def test_in_place_the_error_names_the_mode_that_can_go_on(self) -> None:
        """``grown_by_hand_in_place`` refuses such an input, so no expansion in place is a way on."""
        watch = Watch(declared(enabled=False, mode="in_place"))
        decision = watch.look()
        assert decision.outcome is Outcome.ERROR
        for part in (
            "INCOMPLETE_SOURCE_TOPIC_METADATA",
            "shop-orders has 8 partitions, 4 known",
            "Mode in_place refuses inputs that were grown by hand",
            "Declare `mode: blue_green`, and trigger expand_shop with target 8",
        ):
            assert part in str(decision.error)
        assert "partition.autoscaling.enabled" not in str(decision.error)
        again = watch.look()
        assert (again.error, again.trigger) == (None, None), "it is said once"

    def test_it_is_said_once(self) -> None:
        watch = Watch(declared(enabled=False))
        assert watch.look().error is not None
        for _ in range(3):
            decision = watch.look()
            assert (decision.outcome, decision.error, decision.trigger) == (Outcome.ERROR, None, None)
            assert "as watch_shop/1 has said" in decision.reason

    def test_a_look_whose_worker_was_killed_before_it_could_say_it_says_it(self) -> None:
        watch = Watch(declared(enabled=False))
        watch.look()
        assert watch.look(retried=True).error is not None
        assert watch.look().error is None

    def test_something_else_is_another_error(self) -> None:
        watch = Watch(declared(enabled=False))
        watch.look()
        further = Observed(running="shop", grown={"shop-orders": (4, 16)}, partitions=44)
        assert "target 16" in str(watch.look(further).error)

    def test_it_is_said_again_once_it_was_in_line_in_between(self) -> None:
        watch = Watch(declared(enabled=False))
        watch.look()
        watch.look(IN_LINE)
        assert watch.look().error is not None

    def test_internal_topics_alone_are_enough(self) -> None:
        """No input is known to have grown, but Kafka Streams would still refuse to start."""
        unattributed = Observed(running="shop", grown={}, too_few=GROWN.too_few)
        assert "with target 8" in str(Watch(declared(enabled=False)).look(unattributed).error)


class TestOn:
    def test_what_is_in_line_is_left_alone_and_nothing_is_remembered(self) -> None:
        watch = Watch()
        assert watch.look(IN_LINE).outcome is Outcome.IN_LINE
        assert watch.record == Autoscaling()

    def test_an_input_that_has_grown_triggers_the_expansion_to_its_count(self) -> None:
        trigger = Watch().look().trigger
        assert trigger is not None
        assert (trigger.run_id, trigger.target, trigger.approval) == ("autoscaling__1__to_8", 8, False)

    def test_the_first_of_several_inputs_is_enough(self) -> None:
        """ "Streams will begin autoscaling internal topics when the first source topic is expanded.\""""
        both = Observed(running="shop", grown={"shop-customers": (4, 6), "shop-orders": (4, 12)})
        trigger = Watch().look(both).trigger
        assert trigger is not None
        assert trigger.target == 12

    def test_what_would_shrink_something_else_is_left_to_a_person(self) -> None:
        larger = replace(GROWN, parallelism=(Parallelism(0, 4, 8), Parallelism(1, 16, 8)))
        watch = Watch()
        decision = watch.look(larger)
        assert (decision.outcome, decision.trigger) == (Outcome.ERROR, None)
        for part in ("would shrink sub-topology 1 from 16", "Trigger expand_shop with target 16"):
            assert part in str(decision.error)
        assert watch.look(larger).error is None
        assert watch.look().trigger is not None

    def test_a_look_that_was_killed_asks_for_the_same_run_again_and_nothing_has_failed(self) -> None:
        watch = Watch()
        first = watch.look()
        again = watch.look(retried=True)
        assert again.trigger == first.trigger
        assert (watch.record.attempts, watch.record.first_failure_ms) == (1, 0)

    @pytest.mark.parametrize("state", [RunState.RUNNING, RunState.UNKNOWN])
    def test_a_run_that_has_not_ended_is_waited_for(self, state: RunState) -> None:
        watch = Watch()
        watch.look()
        assert watch.look(run=state, later_ms=2 * TIMEOUT).outcome is Outcome.WAITING
        assert watch.record.first_failure_ms == 0

    def test_a_run_that_was_never_made_is_asked_for_again_by_its_name(self) -> None:
        """For example, its DAG is paused. This is a failure, but no new attempt."""
        watch = Watch()
        first = watch.look()
        assert watch.look().trigger == first.trigger
        assert watch.record.first_failure_ms == watch.now_ms

    def test_growth_that_can_not_be_told_from_a_count_of_the_program_is_said_once_with_the_ways_on(self) -> None:
        unattributed = Observed(running="shop", grown={}, too_few=GROWN.too_few)
        watch = Watch()
        decision = watch.look(unattributed)
        assert (decision.outcome, decision.trigger) == (Outcome.ERROR, None)
        for part in (
            "`count: derived`",
            "`count: start_command`",
            "`count: fixed`",
            "first record in a new partition",
        ):
            assert part in str(decision.error)
        assert watch.look(unattributed).error is None
        assert watch.look().trigger is not None

    def test_it_may_be_switched_off_and_on_again(self) -> None:
        watch = Watch()
        watch.look()
        watch.look(run=RunState.FAILED)
        watch.application = declared(enabled=False)
        assert watch.look(run=RunState.FAILED).error is not None
        watch.application = declared()
        trigger = watch.look().trigger
        assert trigger is not None
        assert trigger.run_id == "autoscaling__3__to_8"
        assert watch.record.first_failure_ms == 0

    def test_missing_topics_are_waited_for(self) -> None:
        assert Watch().look(Observed(running="shop", grown={}, missing="no topic")).outcome is Outcome.WAITING


class TestRetries:
    def test_a_failure_is_retried_at_the_next_look_by_another_run(self) -> None:
        watch = Watch()
        watch.look()
        trigger = watch.look(run=RunState.FAILED).trigger
        assert trigger is not None
        assert trigger.run_id == "autoscaling__2__to_8"

    def test_the_default_is_fifteen_minutes(self) -> None:
        assert application("shop").autoscaling_timeout_ms == TIMEOUT

    def test_the_timeout_counts_from_the_first_failure_and_not_from_the_attempt(self) -> None:
        watch = Watch()
        watch.look()
        assert watch.look(run=RunState.FAILED, later_ms=10 * TIMEOUT).outcome is Outcome.TRIGGER
        assert watch.look(run=RunState.FAILED, later_ms=TIMEOUT - 1).outcome is Outcome.TRIGGER
        assert watch.look(run=RunState.FAILED, later_ms=1).outcome is Outcome.GAVE_UP

    def test_it_can_be_set(self) -> None:
        watch = Watch(declared(**{"partition.autoscaling.timeout.ms": 1_000}))
        watch.look()
        watch.look(run=RunState.FAILED)
        assert watch.look(run=RunState.FAILED, later_ms=1_000).outcome is Outcome.GAVE_UP

    def test_a_success_in_between_resets_it(self) -> None:
        """Between the failures a topic has grown or was made: there are more partitions than ever before."""
        watch = Watch()
        watch.look()
        watch.look(run=RunState.FAILED)
        more = Observed(running="shop", grown=GROWN.grown, partitions=GROWN.partitions + 4)
        assert watch.look(more, RunState.FAILED, later_ms=TIMEOUT).outcome is Outcome.TRIGGER
        assert watch.record.first_failure_ms == watch.now_ms
        assert watch.look(more, RunState.FAILED, later_ms=TIMEOUT).outcome is Outcome.GAVE_UP

    def test_giving_up_warns_counts_once_and_goes_on_without_trying(self) -> None:
        watch = self.given_up()
        for _ in range(3):
            decision = watch.look()
            assert (decision.outcome, decision.trigger, decision.error) == (Outcome.GAVE_UP, None, None)
            assert not decision.outcome.is_quiet
            assert "trigger it with target 8" in decision.reason
        assert watch.record.failures == 1

    def test_another_count_is_tried_again(self) -> None:
        watch = self.given_up()
        further = Observed(running="shop", grown={"shop-orders": (4, 16)}, partitions=44)
        assert watch.look(further).outcome is Outcome.TRIGGER
        assert watch.record.failures == 1

    def test_what_a_person_has_done_meanwhile_ends_it(self) -> None:
        watch = self.given_up()
        watch.look(IN_LINE)
        assert watch.record == Autoscaling(attempts=watch.record.attempts, failures=1)
        assert watch.look().outcome is Outcome.TRIGGER

    @staticmethod
    def given_up() -> Watch:
        """A watch that has tried until its timeout."""
        watch = Watch()
        watch.look()
        watch.look(run=RunState.FAILED)
        assert watch.look(run=RunState.FAILED, later_ms=TIMEOUT).outcome is Outcome.GAVE_UP
        return watch


class TestFollowUp:
    def test_a_success_is_looked_at_once_more_ten_seconds_later(self) -> None:
        watch = Watch()
        watch.look()
        assert watch.look(IN_LINE, RunState.SUCCESS).outcome is Outcome.FOLLOW_UP
        assert watch.look(IN_LINE, later_ms=FOLLOW_UP_MS - 1).outcome is Outcome.FOLLOW_UP
        decision = watch.look(IN_LINE, later_ms=1)
        assert decision.outcome is Outcome.IN_LINE
        assert "follow-up check" in decision.reason
        assert FOLLOW_UP_MS == 10_000

    def test_brokers_that_do_not_know_yet_are_not_taken_at_their_word(self) -> None:
        watch = Watch()
        watch.look()
        assert watch.look(GROWN, RunState.SUCCESS).outcome is Outcome.FOLLOW_UP
        assert watch.look(GROWN, later_ms=1).outcome is Outcome.FOLLOW_UP

    def test_a_success_that_has_changed_nothing_is_a_failure(self) -> None:
        watch = Watch()
        watch.look()
        watch.look(GROWN, RunState.SUCCESS)
        assert watch.look(GROWN).outcome is Outcome.TRIGGER
        assert watch.record.first_failure_ms == watch.now_ms


class TestOverPartitioned:
    @pytest.mark.parametrize("enabled", [True, False])
    def test_it_is_an_error_whether_on_or_off(self, enabled: bool) -> None:
        watch = Watch(declared(enabled=enabled))
        error = watch.look(OVER).error
        assert "shop-visits-changelog with 8 partitions instead of 4" in str(error)
        assert "can't shrink" in str(error)
        assert watch.look(OVER).error is None

    def test_nothing_is_triggered_even_if_an_input_has_grown_as_well(self) -> None:
        both = Observed(running="shop", grown=GROWN.grown, too_few=GROWN.too_few, too_many=OVER.too_many)
        assert Watch().look(both).trigger is None


class TestExpansionInProgress:
    def test_that_of_a_person_is_waited_for(self) -> None:
        decision = Watch().look(growing(), owner=RunState.FAILED)
        assert (decision.outcome, decision.trigger) == (Outcome.WAITING, None)
        assert "begun by expand_shop/a-person" in decision.reason

    def test_its_own_is_gone_on_with_after_a_failure_even_outside_the_windows(self) -> None:
        watch = Watch(declared(autoscaling_bounds={"maximum_lag": 5}))
        watch.look()
        decision = watch.look(growing(lag=10), RunState.FAILED)
        assert decision.trigger is not None
        assert decision.trigger.target == 8

    def test_one_to_the_same_count_that_somebody_else_goes_on_with_is_waited_for(self) -> None:
        watch = Watch()
        watch.look()
        assert watch.look(growing(), RunState.FAILED, owner=RunState.RUNNING).outcome is Outcome.WAITING

    @pytest.mark.parametrize("observed", [GROWN, growing()], ids=["rolled back", "in progress"])
    def test_a_run_that_has_not_ended_is_waited_for_and_costs_no_time(self, observed: Observed) -> None:
        """A run with an open question holds the lease. Another run would be refused again and again."""
        watch = Watch()
        watch.look()
        for _ in range(3):
            decision = watch.look(observed, RunState.FAILED, held_by="expand_shop/a-person", later_ms=TIMEOUT)
            assert (decision.outcome, decision.trigger) == (Outcome.WAITING, None)
            assert "expand_shop/a-person has not ended, and holds the lease" in decision.reason
        assert watch.look(observed).outcome is Outcome.TRIGGER

    def test_counts_on_the_way_are_no_error(self) -> None:
        """Between the promotion and the growth of the inputs, green's topics have more partitions than follow."""
        assert Watch().look(growing(too_many=OVER.too_many)).error is None


class TestBounds:
    def test_beyond_the_maximum_a_person_has_to_decide(self) -> None:
        watch = Watch(declared(autoscaling_bounds={"maximum_partitions": 6}))
        decision = watch.look()
        assert "at most 6 partitions (autoscaling_bounds.maximum_partitions)" in str(decision.error)
        assert decision.trigger is None
        assert watch.look().error is None

    def test_a_lag_holds_for_as_long_as_it_lasts_and_does_not_count_as_a_failure(self) -> None:
        watch = Watch(declared(autoscaling_bounds={"maximum_lag": 5}))
        behind = Observed(running="shop", grown=GROWN.grown, lag=6, partitions=36)
        for _ in range(20):
            decision = watch.look(behind)
            assert (decision.outcome, decision.trigger) == (Outcome.HELD, None)
            assert "6 offsets behind" in decision.reason
        assert watch.look().outcome is Outcome.TRIGGER

    def test_outside_the_windows_it_waits(self) -> None:
        watch = Watch(declared(autoscaling_bounds={"windows": ["00:30-00:40"]}))
        assert watch.look(later_ms=0).outcome is Outcome.HELD
        watch.now_ms = 35 * MINUTE
        assert watch.look(later_ms=0).outcome is Outcome.TRIGGER

    def test_the_timeout_does_not_run_while_a_window_is_closed(self) -> None:
        """The last attempt before the window closed has failed. The next window has the rest of the timeout."""
        watch = Watch(declared(autoscaling_bounds={"windows": ["22:00-05:00"]}))
        assert self.at(watch, 4, 50).outcome is Outcome.TRIGGER
        assert self.at(watch, 4, 58, RunState.FAILED).outcome is Outcome.TRIGGER
        assert self.at(watch, 5, 2, RunState.FAILED).outcome is Outcome.HELD
        assert self.at(watch, 12, 0).outcome is Outcome.HELD
        assert self.at(watch, 22, 0).outcome is Outcome.TRIGGER
        assert self.at(watch, 22, 10, RunState.FAILED).outcome is Outcome.TRIGGER
        assert self.at(watch, 22, 11, RunState.FAILED).outcome is Outcome.GAVE_UP

    def test_a_lag_that_comes_and_goes_does_not_let_it_try_for_ever(self) -> None:
        watch = Watch(declared(autoscaling_bounds={"maximum_lag": 5}))
        behind = Observed(running="shop", grown=GROWN.grown, lag=6, partitions=36)
        watch.look()
        watch.look(run=RunState.FAILED)
        for _ in range(7):
            assert watch.look(behind, RunState.FAILED).outcome is Outcome.HELD
            assert watch.look().outcome is Outcome.TRIGGER
        assert watch.look(behind, RunState.FAILED).outcome is Outcome.HELD
        assert watch.look().outcome is Outcome.GAVE_UP

    def test_the_timeout_does_not_run_while_a_maximum_leaves_it_to_a_person(self) -> None:
        watch = Watch(declared())
        watch.look()
        watch.look(run=RunState.FAILED)
        watch.application = declared(autoscaling_bounds={"maximum_partitions": 6})
        assert watch.look(run=RunState.FAILED).error is not None
        watch.application = declared()
        assert watch.look(later_ms=TIMEOUT).outcome is Outcome.TRIGGER

    def test_a_first_failure_while_it_is_held_is_not_put_into_the_future(self) -> None:
        """A look was killed after it had asked for its run. The run exists, and the retried look is held."""
        watch = Watch(declared(autoscaling_bounds={"maximum_lag": 5}))
        behind = Observed(running="shop", grown=GROWN.grown, lag=6, partitions=36)
        watch.look()
        assert watch.look(behind, retried=True).outcome is Outcome.HELD
        assert watch.look(run=RunState.FAILED, later_ms=TIMEOUT).outcome is Outcome.TRIGGER
        assert watch.record.first_failure_ms == watch.now_ms

    @staticmethod
    def at(watch: Watch, hour: int, minute: int, run: RunState = RunState.ABSENT) -> Decision:
        """Look at a time of the first day of the epoch."""
        watch.now_ms = (hour * 60 + minute) * MINUTE
        return watch.look(run=run, later_ms=0)

    @pytest.mark.parametrize(("threshold", "asked"), [(7, True), (8, False)])
    def test_above_a_threshold_a_person_has_to_approve(self, threshold: int, asked: bool) -> None:
        trigger = Watch(declared(autoscaling_bounds={"approval_above": threshold})).look().trigger
        assert trigger is not None
        assert trigger.approval is asked
