"""What the watch remembers of the inputs' counts, and what it says while it waits and the application is down."""

from __future__ import annotations

from dataclasses import replace

import pytest
from kafka_rescale.core.autoscaling.decision import Outcome, RunState
from kafka_rescale.core.autoscaling.parallelism import Observed
from kafka_rescale.core.control.autoscaling import Autoscaling

from tests.support.airflow.autoscaling_watch import GROWN, IN_LINE, Watch, declared, growing


class TestRecordedCounts:
    LINED_UP = replace(IN_LINE, inputs={"shop-orders": 4})

    def test_the_counts_of_a_look_that_finds_all_in_line_are_remembered(self) -> None:
        watch = Watch()
        watch.look(self.LINED_UP)
        assert watch.record.inputs == {"shop-orders": 4}

    def test_they_stay_until_the_growth_has_been_expanded(self) -> None:
        watch = Watch()
        watch.look(self.LINED_UP)
        grown = replace(GROWN, inputs={"shop-orders": 8})
        for run in (RunState.ABSENT, RunState.FAILED, RunState.FAILED):
            watch.look(grown, run)
            assert watch.record.inputs == {"shop-orders": 4}
        watch.look(replace(IN_LINE, inputs={"shop-orders": 8}))
        assert watch.record.inputs == {"shop-orders": 8}

    def test_switched_off_they_are_remembered_as_well(self) -> None:
        watch = Watch(declared(enabled=False))
        watch.look(self.LINED_UP)
        watch.look(replace(GROWN, inputs={"shop-orders": 8}))
        assert watch.record.inputs == {"shop-orders": 4}

    def test_a_record_of_before_has_none(self) -> None:
        old = '{"target":8,"attempts":2,"run":"expand_shop/a","said":"","by":"watch_shop/1"}'
        assert Autoscaling.model_validate_json(old).inputs == {}


class TestDown:
    """If the application is down while the watch waits, the watch is never quiet about it."""

    GROWN = replace(GROWN, is_down=True, lag=6)

    def test_a_bound_that_holds_it_is_told_once_and_warned_of_at_every_look(self) -> None:
        watch = Watch(declared(autoscaling_bounds={"maximum_lag": 5}))
        first, second = watch.look(self.GROWN), watch.look(replace(self.GROWN, lag=7))
        assert "application shop, which is down: found autoscaling_bounds are in the way" in str(first.error)
        assert "trigger expand_shop yourself with target 8" in str(first.error)
        assert second.error is None
        assert {first.outcome, second.outcome} == {Outcome.HELD}
        assert {first.is_quiet, second.is_quiet} == {False}
        assert watch.look().trigger is not None

    def test_a_look_that_was_killed_before_it_could_tell_it_tells_it(self) -> None:
        watch = Watch(declared(autoscaling_bounds={"maximum_lag": 5}))
        watch.look(self.GROWN)
        assert watch.look(self.GROWN, retried=True).error is not None

    def test_what_is_missing_is_told(self) -> None:
        observed = Observed(running="shop", grown={}, missing="no topic", is_down=True)
        assert "no topic" in str(Watch().look(observed).error)

    def test_an_expansion_that_nobody_goes_on_with_is_told(self) -> None:
        decision = Watch().look(growing(is_down=True), owner=RunState.FAILED)
        assert "begun by expand_shop/a-person" in str(decision.error)

    @pytest.mark.parametrize("state", [RunState.RUNNING, RunState.UNKNOWN])
    def test_a_run_at_work_says_itself_what_it_needs(self, state: RunState) -> None:
        watch = Watch()
        watch.look()
        decision = watch.look(self.GROWN, state)
        assert (decision.outcome, decision.error, decision.is_quiet) == (Outcome.WAITING, None, True)
        assert watch.look(growing(is_down=True), owner=state).error is None

    def test_an_expansion_from_a_shell_is_at_work_while_it_holds_the_lease(self) -> None:
        watch = Watch()
        assert watch.look(growing(is_down=True), owner=RunState.ABSENT, is_leased=True).error is None
        assert watch.look(growing(is_down=True), owner=RunState.ABSENT).error is not None

    def test_one_that_was_stopped_with_every_count_in_line_is_no_matter_of_the_watch(self) -> None:
        assert Watch().look(replace(IN_LINE, is_down=True)).is_quiet
