"""KIP-878's decision. Each look compares the counts of an application's inputs with those of its internal topics.

In the KIP, the group leader of Kafka Streams decides at every rebalance. Here, a DAG decides every few minutes.
Where the KIP calls ``Admin#createPartitions``, this module asks for an expansion, which also moves the state.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.autoscaling.messages import (
    described,
    gave_up,
    not_told,
    out_of_bounds,
    over_partitioned,
    switched_off,
    unproven,
    waits_while_down,
    would_shrink,
)
from kafka_rescale.core.autoscaling.parallelism import Observed
from kafka_rescale.core.control.autoscaling import Autoscaling
from kafka_rescale.core.control.lease import Lease
from kafka_rescale.core.errors import Refused


class RunState(StrEnum):
    """The state of an expansion's run in Airflow."""

    ABSENT = "absent"
    RUNNING = "running"
    SUCCESS = "success"
    FAILED = "failed"
    UNKNOWN = "unknown"


UNFINISHED = frozenset({RunState.RUNNING, RunState.UNKNOWN})


def has_ended(held: Lease, state: RunState, airflow: str) -> bool | None:
    """Return whether the run that holds a lease has ended; None if an Airflow can't tell.

    A run that Airflow doesn't know has been deleted, but only if it was a run of this Airflow. Another Airflow may
    use the same brokers.

    :param state: the state of the run of that name in this Airflow.
    :param airflow: this Airflow; empty if its id is not known.
    """
    if state is RunState.ABSENT:
        return True if held.airflow and held.airflow == airflow else None
    return None if state is RunState.UNKNOWN else state is not RunState.RUNNING


class Outcome(StrEnum):
    """The outcome of a look."""

    IN_LINE = "in_line"
    WAITING = "waiting"
    FOLLOW_UP = "follow_up"
    TRIGGER = "trigger"
    HELD = "held"
    GAVE_UP = "gave_up"
    ERROR = "error"

    @property
    def is_quiet(self) -> bool:
        """Whether no user has to look."""
        return self not in {Outcome.GAVE_UP, Outcome.ERROR}


IDLE = frozenset({Outcome.WAITING, Outcome.HELD})


@dataclass(frozen=True)
class Trigger:
    """An expansion to ask for.

    :param approval: whether a user has to agree to the plan and to the cutover.
    """

    run_id: str
    target: int
    approval: bool


@dataclass(frozen=True)
class Decision:
    """The outcome of a look, and the actions that follow.

    :param reason: the reason in words, for a user.
    :param record: the record to write before anything else is done.
    :param trigger: the expansion to ask for, if there is one.
    :param error: the error to raise. The watch raises it once per discrepancy.
    :param leaves_down: whether the watch waits although the application is down and no run is at work on it.
    """

    outcome: Outcome
    reason: str
    record: Autoscaling
    trigger: Trigger | None = None
    error: Refused | None = None
    leaves_down: bool = False

    @property
    def is_quiet(self) -> bool:
        """Whether no user has to look."""
        return self.outcome.is_quiet and not self.leaves_down


@dataclass(frozen=True)
class Look:
    """One look at an application.

    :param known: the record of earlier looks.
    :param run: the state of the run that ``known`` names, if it names a run.
    :param owner: the state of the run that has begun the expansion in progress, if there is one.
    :param by: ``<dag_id>/<run_id>`` of the watch that looks.
    :param now_ms: the wall clock in ms since the epoch.
    :param held_by: the run at work that holds the lease. Another run would be refused. Empty if there is none.
    :param is_leased: whether a run at work holds the lease, or any owner holds a lease that may still be at work.
    :param is_prewarmed: whether the next generation starts on the new counts before the promotion. Then a count
        that the program sets itself ends the expansion while there is a way back.
    """

    application: Application
    observed: Observed
    known: Autoscaling
    run: RunState
    owner: RunState
    by: str
    now_ms: int
    held_by: str = ""
    is_leased: bool = False
    is_prewarmed: bool = False

    def decide(self) -> Decision:
        """Return the decision."""
        decision = self._decided()
        if decision.outcome in IDLE and self.observed.is_down and not self._is_at_work:
            return self._waits_while_down(decision)
        return decision

    @property
    def _is_at_work(self) -> bool:
        """Whether a run is at work on an expansion. Then that run reports what it needs."""
        has_run = bool(self.known.run) and self.run in UNFINISHED
        has_owner = self.observed.in_progress is not None and self.owner in UNFINISHED
        return has_run or has_owner or self.is_leased

    def _decided(self) -> Decision:
        record = self.known.seen(self.observed.partitions)
        if record.run and self.run in UNFINISHED:
            return Decision(Outcome.WAITING, f"{record.run} is {self.run}", record)
        if record.run:
            record = self._ended(record)
        if self.observed.in_progress is not None:
            return self._in_progress(record)
        if record.awaits_follow_up(self.now_ms):
            return Decision(Outcome.FOLLOW_UP, "succeeded just now: the follow-up check is still to come", record)
        if self.observed.missing:
            return Decision(Outcome.WAITING, f"nothing to compare yet: {self.observed.missing}", record)
        return self._compared(record)

    def _compared(self, record: Autoscaling) -> Decision:
        observed = self.observed
        if observed.too_many:
            return self._said_once(record.settled(), over_partitioned(observed))
        if not (observed.grown or observed.too_few):
            checked = "follow-up check: " if record.succeeded_ms else ""
            record = record.in_line(observed.inputs)
            return Decision(Outcome.IN_LINE, f"{checked}every count follows from the inputs", record)
        if not self.application.autoscaling_enabled:
            return self._said_once(record.settled(), switched_off(self.application, observed))
        if not observed.grown:
            return self._said_once(record.settled(), not_told(observed))
        if observed.shrinking:
            return self._said_once(record.settled(), would_shrink(self.application, observed))
        return self._expand(record.aimed_at(observed.target, observed.partitions))

    def _ended(self, record: Autoscaling) -> Autoscaling:
        """Return the record after a requested run has ended, or was never made."""
        if self.run is RunState.SUCCESS:
            return record.succeeded(self.now_ms)
        if self.run is RunState.FAILED:
            return record.failed(self.now_ms).model_copy(update={"run": ""})
        # The expansion's run is absent. If this same run of the watch has asked for it, the worker of the watch
        # was killed before Airflow made the run. Then no expansion has failed.
        return record if record.by == self.by else record.failed(self.now_ms)

    def _in_progress(self, record: Autoscaling) -> Decision:
        journal = self.observed.in_progress
        assert journal is not None
        is_ours = self.application.autoscaling_enabled and record.target == journal.plan.partitions
        if is_ours and self.owner not in UNFINISHED:
            return self._attempt(record)
        what = f"an expansion to {journal.plan.partitions} partitions is in progress ({journal.phase})"
        return Decision(Outcome.WAITING, f"{what}, begun by {journal.owner or 'an unknown run'}", record)

    def _expand(self, record: Autoscaling) -> Decision:
        bounds = self.application.autoscaling_bounds
        if record.succeeded_ms:
            # The expansion has succeeded, but the follow-up check finds the same counts as before.
            record = record.failed(self.now_ms).model_copy(update={"succeeded_ms": 0})
        if not bounds.allows(record.target):
            return self._said_once(record.held(self.now_ms), out_of_bounds(self.application, self.observed))
        if obstacles := ", ".join(bounds.obstacles(self.observed.lag, self.now_ms)):
            reason = f"to {record.target} partitions, but {obstacles}"
            return Decision(Outcome.HELD, reason, record.held(self.now_ms))
        return self._attempt(record)

    def _attempt(self, record: Autoscaling) -> Decision:
        if self.held_by:
            # No expansion has failed meanwhile. So the timeout stops, as it does while a bound is in the way.
            said = f"{self.held_by} has not ended, and holds the lease"
            return Decision(Outcome.WAITING, said, record.held(self.now_ms))
        application, timeout_ms = self.application, self.application.autoscaling_timeout_ms
        record = self._stopped(record.resumed(self.now_ms))
        if record.given_up or record.is_exceeded(self.now_ms, timeout_ms):
            return Decision(Outcome.GAVE_UP, gave_up(application, record.target), record.gave_up(self.by))
        dag_id = f"expand_{application.application_id}"
        run_id = record.run.partition("/")[2] or f"autoscaling__{record.attempts + 1}__to_{record.target}"
        doubts = "; ".join(self._doubts(record))
        asks = bool(doubts) or application.autoscaling_bounds.wants_approval(record.target)
        trigger = Trigger(run_id, record.target, approval=asks)
        reason = f"{dag_id} to {record.target} partitions: {described(self.observed)}"
        if doubts:
            reason = f"{reason}. A person has to approve it: {doubts}"
        return Decision(Outcome.TRIGGER, reason, record.asked(f"{dag_id}/{run_id}", self.by), trigger)

    def _stopped(self, record: Autoscaling) -> Autoscaling:
        """Return the record with the person who has ended the last attempt at its target, if a person has.

        The record keeps it, because the journal of the next attempt does not.
        """
        journal = self.observed.stopped
        if journal is None or journal.plan.partitions != record.target:
            return record
        return record.model_copy(update={"stopped_by": journal.stopped_by})

    def _doubts(self, record: Autoscaling) -> Iterator[str]:
        """Yield the reasons why a person has to approve an expansion that the bounds let begin unattended."""
        if self.observed.unproven and not self.is_prewarmed:
            yield unproven(self.observed)
        if record.stopped_by:
            yield f"the last attempt was ended by {record.stopped_by}"

    def _waits_while_down(self, decision: Decision) -> Decision:
        # The texts of the bounds have a time of day and a lag. These change from look to look, but the error must
        # not.
        why = "autoscaling_bounds are in the way" if decision.outcome is Outcome.HELD else decision.reason
        told = self._said_once(decision.record, waits_while_down(self.application, self.observed, why))
        reason = f"{decision.reason}; {self.observed.running} is down meanwhile"
        return replace(decision, reason=reason, record=told.record, error=told.error, leaves_down=True)

    def _said_once(self, record: Autoscaling, error: Refused) -> Decision:
        said = str(error)
        if self.known.said == said and self.known.by != self.by:
            again = record.model_copy(update={"said": said, "by": self.known.by})
            return Decision(Outcome.ERROR, f"still, as {self.known.by} has said: {said}", again)
        return Decision(Outcome.ERROR, said, record.model_copy(update={"said": said, "by": self.by}), error=error)
