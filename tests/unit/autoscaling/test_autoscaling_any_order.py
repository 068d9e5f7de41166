"""What must always hold for KIP-878's retries, in any order of failures, successes, killed workers and hours."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from kafka_rescale.core.autoscaling.decision import Decision, Outcome, RunState
from kafka_rescale.core.autoscaling.parallelism import Observed

from tests.support.airflow.autoscaling_watch import GROWN, MINUTE, TIMEOUT, Watch


class World(RuleBasedStateMachine):
    """Runs that fail or succeed, topics that grow, and a clock that runs. The invariants hold whatever happens."""

    def __init__(self) -> None:
        super().__init__()
        self.watch = Watch()
        self.partitions = GROWN.partitions
        self.run: str | None = None
        self.state = RunState.ABSENT
        self.triggered: list[str] = []
        self.failing_since: int | None = None
        self.decision: Decision | None = None

    @rule(minutes=st.integers(1, 20))
    def time_goes_by_and_the_watch_looks(self, minutes: int) -> None:
        self.watch.now_ms += minutes * MINUTE
        self._look(retried=False)

    @precondition(lambda self: self.decision is not None)
    @rule()
    def the_worker_is_killed_and_the_task_retried(self) -> None:
        self._look(retried=True)

    @precondition(lambda self: self.state is RunState.RUNNING)
    @rule()
    def the_run_fails(self) -> None:
        self.state = RunState.FAILED

    @precondition(lambda self: self.state is RunState.RUNNING)
    @rule(more=st.integers(1, 8))
    def a_topic_grows(self, more: int) -> None:
        self.partitions += more

    def _look(self, *, retried: bool) -> None:
        given_up, before = self.watch.record.given_up, self.watch.record
        grew = self.partitions > before.reached > 0
        observed = Observed(running="shop", grown=GROWN.grown, partitions=self.partitions)
        decision = self.watch.look(observed, self.state, later_ms=0, retried=retried)
        if grew:
            self.failing_since, given_up = None, False
        if self.state is RunState.FAILED and before.run:
            self.failing_since = self.failing_since or self.watch.now_ms
        waited = self.failing_since is not None and self.watch.now_ms - self.failing_since >= TIMEOUT
        if before.run and self.state is RunState.RUNNING:
            assert decision.outcome is Outcome.WAITING
        else:
            assert (decision.outcome is Outcome.GAVE_UP) is (waited or given_up)
        self._trigger(decision)
        self.decision = decision

    def _trigger(self, decision: Decision) -> None:
        if decision.trigger is None:
            return
        # Airflow makes a run of one id only once.
        if decision.trigger.run_id not in self.triggered:
            self.triggered.append(decision.trigger.run_id)
            self.state = RunState.RUNNING

    @invariant()
    def every_attempt_is_one_run(self) -> None:
        assert self.watch.record.attempts == len(self.triggered)

    @invariant()
    def it_gives_up_at_most_once_per_success(self) -> None:
        assert self.watch.record.failures <= 1 + self.partitions - GROWN.partitions


TestWorld = World.TestCase
TestWorld.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
