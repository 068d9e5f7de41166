"""What the watch concludes from the lease: its holder may have failed, or may be a run of another Airflow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from kafka_rescale.core.autoscaling.decision import Outcome, RunState
from kafka_rescale.core.cluster import ClusterDescription
from kafka_rescale.core.control.autoscaling import Autoscaling
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.lease import Lease
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.preflight.described import Described
from kafka_rescale.operations import watch as operation
from kafka_rescale.operations.watch import Watched, watch

from tests.support.airflow.autoscaling_watch import declared
from tests.support.situations import INPUTS, STOPPED, situation, unjoined, with_counts

NOW, LATER = 1_000_000, 2_000_000
OURS, THEIRS = "0a", "0b"
BEGUN, ASKED = "expand_shop/manual", "expand_shop/autoscaling__1__to_8"
NOBODY: Any = None
GONE = Journal(plan=situation(8).plan, phase=Phase.QUIESCED, owner=BEGUN)


@dataclass
class Topic:
    """A stand-in for the control topic, which takes every record."""

    state: ControlState
    written: list[Any] = field(default_factory=list)

    def read(self) -> ControlState:
        return self.state

    def ensure(self) -> None:
        """The topic exists."""

    def put_result(self, *record: Any) -> None:
        self.written.append(record)


@pytest.fixture
def look(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Look once at the shop, whose customers have grown, and which is down."""

    def looked(state: ControlState, runs: Mapping[str, RunState]) -> Watched:
        cluster = {"committed": {("shop-orders", 0): 3}}
        given = situation(8, topics=with_counts(customers=8), group=STOPPED, cluster=cluster)
        return _watched(monkeypatch, given.cluster, state, runs)

    return looked


def _watched(
    monkeypatch: pytest.MonkeyPatch,
    cluster: ClusterDescription,
    state: ControlState,
    runs: Mapping[str, RunState],
    by: str = "watch_shop/1",
    now_ms: int = NOW,
) -> Watched:
    application, topology = declared(), situation().topology
    monkeypatch.setattr(operation, "ControlTopic", lambda *_: Topic(state))
    monkeypatch.setattr(operation, "_described", lambda *_: Described(application, topology, 8, state, cluster))
    known = lambda run: runs.get(run, RunState.ABSENT)  # noqa: E731
    return watch(application, topology, NOBODY, by=by, attempt=1, run_state=known, now_ms=now_ms, airflow=OURS)


def lease(owner: str = BEGUN, airflow: str = OURS, expires_at_ms: int = LATER) -> Lease:
    return Lease(owner=owner, epoch=1, target=8, expires_at_ms=expires_at_ms, airflow=airflow)


class TestFailedRun:
    """Such a run does not give its lease back. The application may be down meanwhile."""

    @pytest.mark.parametrize("state", [RunState.FAILED, RunState.SUCCESS, RunState.ABSENT])
    def test_a_run_that_has_ended_or_was_deleted_leaves_the_watch_to_speak(
        self, look: Any, state: RunState
    ) -> None:
        decision = look(ControlState(journal=GONE, lease=lease()), {BEGUN: state}).decision
        assert (decision.outcome, decision.leaves_down) == (Outcome.WAITING, True)
        assert "application shop, which is down" in str(decision.error)

    @pytest.mark.parametrize("state", [RunState.RUNNING, RunState.UNKNOWN])
    def test_a_run_that_may_be_at_work_says_itself_what_it_needs(self, look: Any, state: RunState) -> None:
        decision = look(ControlState(journal=GONE, lease=lease()), {BEGUN: state}).decision
        assert (decision.error, decision.leaves_down) == (None, False)

    def test_a_shell_counts_until_its_lease_expires(self, look: Any) -> None:
        journal = GONE.model_copy(update={"owner": "shell/host/1"})
        held = lease("shell/host/1", airflow="")
        assert look(ControlState(journal=journal, lease=held), {}).decision.error is None
        expired = held.model_copy(update={"expires_at_ms": NOW})
        assert look(ControlState(journal=journal, lease=expired), {}).decision.error is not None


class TestAnotherAirflow:
    """Both Airflows have the same DAGs, so their runs have the same names."""

    RECORD = Autoscaling(target=8, attempts=1, run=ASKED, by="watch_shop/0", reached=36)

    @pytest.mark.parametrize("state", list(RunState))
    def test_its_run_of_the_same_name_is_waited_for(self, look: Any, state: RunState) -> None:
        control = ControlState(autoscaling=self.RECORD, lease=lease(ASKED, THEIRS))
        decision = look(control, {ASKED: state}).decision
        assert (decision.outcome, decision.trigger) == (Outcome.WAITING, None)
        assert f"{ASKED} is unknown" in decision.reason
        assert decision.record.first_failure_ms == 0

    def test_its_run_of_another_name_would_refuse_ours_and_is_waited_for(self, look: Any) -> None:
        decision = look(ControlState(lease=lease(BEGUN, THEIRS)), {}).decision
        assert (decision.outcome, decision.trigger) == (Outcome.WAITING, None)
        assert f"{BEGUN} has not ended, and holds the lease" in decision.reason

    def test_after_the_expiry_of_its_lease_the_watch_goes_on(self, look: Any) -> None:
        control = ControlState(autoscaling=self.RECORD, lease=lease(ASKED, THEIRS, expires_at_ms=NOW))
        assert look(control, {}).decision.outcome is Outcome.TRIGGER

    @pytest.mark.parametrize("airflow", [OURS, ""], ids=["ours", "unknown"])
    def test_a_lease_of_this_or_an_unknown_airflow_is_of_the_run_that_this_airflow_knows(
        self, look: Any, airflow: str
    ) -> None:
        control = ControlState(autoscaling=self.RECORD, lease=lease(ASKED, airflow))
        assert look(control, {ASKED: RunState.FAILED}).decision.outcome is Outcome.TRIGGER


@pytest.mark.parametrize(
    ("command", "has_stores", "asks"),
    [
        pytest.param(None, True, True, id="no-gated-start"),
        pytest.param("start.sh --gated {application_id}", True, False, id="starts-behind-the-gate"),
        pytest.param("start.sh --gated {application_id}", False, True, id="nothing-to-restore-behind-the-gate"),
    ],
)
def test_an_unproven_count_is_asked_about_unless_the_next_generation_starts_before_the_promotion(
    monkeypatch: pytest.MonkeyPatch, command: str | None, has_stores: bool, asks: bool
) -> None:
    application = declared()
    lifecycle = application.lifecycle.model_copy(update={"start_gated": command})
    application = application.model_copy(update={"lifecycle": lifecycle})
    given = unjoined(situation(8, topics=with_counts(orders=8), inputs=INPUTS))
    state = ControlState(autoscaling=Autoscaling(inputs={"shop-orders": 4, "shop-customers": 4}))
    topology = given.topology
    if not has_stores:
        topology = replace(topology, subtopologies=tuple(replace(s, stores=()) for s in topology.subtopologies))
    seen = Described(application, topology, 8, state, given.cluster)
    monkeypatch.setattr(operation, "ControlTopic", lambda *_: Topic(state))
    monkeypatch.setattr(operation, "_described", lambda *_: seen)
    unknown = lambda _: RunState.ABSENT  # noqa: E731
    watched = watch(application, topology, NOBODY, by="watch_shop/1", attempt=1, run_state=unknown, now_ms=NOW)
    assert watched.observed.unproven == ("shop-by-customer-repartition",)
    assert watched.decision.trigger is not None
    assert watched.decision.trigger.approval is asks


def test_a_look_that_dies_behind_its_record_says_once_more_that_it_has_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The record is written before the notifier is called. Only the run that has given up says it again."""
    cluster = situation(8, topics=with_counts(customers=8)).cluster
    before = Autoscaling(target=8, attempts=1, reached=36, first_failure_ms=1, by="watch_shop/1")
    late = before.first_failure_ms + declared().autoscaling_timeout_ms

    def looked(record: Autoscaling, by: str) -> Watched:
        state = ControlState(autoscaling=record)
        return _watched(monkeypatch, cluster, state, {}, by=by, now_ms=late)

    first = looked(before, "watch_shop/2")
    assert (first.decision.outcome, first.just_gave_up) == (Outcome.GAVE_UP, True)
    again = looked(first.decision.record, "watch_shop/2")
    assert (again.decision.outcome, again.just_gave_up) == (Outcome.GAVE_UP, True)
    assert again.decision.record.failures == 1
    later = looked(again.decision.record, "watch_shop/3")
    assert (later.decision.outcome, later.just_gave_up) == (Outcome.GAVE_UP, False)
