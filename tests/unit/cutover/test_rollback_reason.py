"""The reason of a rollback is kept, and shown wherever the phase is shown."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance
from kafka_rescale.airflow.lag_gate import Gate, look
from kafka_rescale.airflow.operators.closing import RollBackOperator
from kafka_rescale.cli.views import status_view
from kafka_rescale.core.cluster import GroupDescription
from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.lease import Lease
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.control.switch import Order, Switch
from kafka_rescale.core.errors import Outage, UnsafeState
from kafka_rescale.core.page.health import health_of
from kafka_rescale.kafka.control import journal_store
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.operations.cutover import cutover, growing, in_place, quiesce
from kafka_rescale.operations.expansion.rescale import Rescale
from kafka_rescale.operations.expansion.rollback import RollBack, roll_back

from tests.support.expansion.growing_world import OWNER, GrowingWorld
from tests.support.plans import in_place_application, in_place_plan

APPLICATION, NOBODY = in_place_application(), None
CONNECTION: Any = NOBODY
CAUSE = "catch_up: found nothing; expected an answer. Look at its log."
ROLLED_BACK = Journal(plan=in_place_plan(), phase=Phase.ROLLED_BACK, owner=OWNER, rollback_reason=CAUSE)
LEASE = Lease(owner=OWNER, epoch=1, target=8, expires_at_ms=0)
STATE = ControlState(journal=ROLLED_BACK, lease=LEASE)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> GrowingWorld:
    found = GrowingWorld()
    monkeypatch.setattr(Rescale, "open", lambda *_: found.rescale)
    for module in (in_place, quiesce):
        monkeypatch.setattr(module, "wait_until_complete", lambda admin, topics, **_: admin.end_offsets(topics))
    monkeypatch.setattr(growing, "rehearse_unit", lambda *_: None)
    return found


@pytest.fixture
def unanswered(world: GrowingWorld, monkeypatch: pytest.MonkeyPatch) -> GrowingWorld:
    """A cutover that failed before the promotion, and rolled back."""

    def no_answer(*_: Any) -> None:
        raise Outage("catch_up", found="nothing", expected="an answer", remedy="Look at its log.")

    monkeypatch.setattr(cutover, "assert_promotable", no_answer)
    with pytest.raises(Outage):
        cutover.run_cutover(APPLICATION, CONNECTION, owner=OWNER)
    assert world.journal.phase is Phase.ROLLED_BACK
    return world


def test_a_cutover_that_failed_leaves_why_and_its_retry_says_it(unanswered: GrowingWorld) -> None:
    assert unanswered.journal.rollback_reason == CAUSE
    with pytest.raises(UnsafeState) as again:
        cutover.run_cutover(APPLICATION, CONNECTION, owner=OWNER)
    assert again.value.found == f"rolled_back, because: {CAUSE}"


def test_who_rolls_back_what_was_rolled_back_is_told_why(unanswered: GrowingWorld) -> None:
    said = roll_back(APPLICATION, CONNECTION, owner=OWNER, reason="a task has failed")
    assert said.told.startswith("rolled back before, by the task that failed; ")
    assert said.told.endswith(f"; rolled_back, because: {CAUSE}")
    another = roll_back(APPLICATION, CONNECTION, owner="rollback_x/another", reason="a test")
    assert another.told == f"nothing to roll back: it was done before; rolled_back, because: {CAUSE}"
    assert unanswered.journal.rollback_reason == CAUSE


@pytest.mark.parametrize("by_a_person", [True, False])
def test_a_rollback_by_a_person_leaves_no_lease_behind(world: GrowingWorld, by_a_person: bool) -> None:
    """A task that rolls back its own run may continue in its next try, so it keeps the lease."""
    assert roll_back(APPLICATION, CONNECTION, owner=OWNER, reason="a test", take_over=by_a_person).is_done
    assert world.state.lease is not None
    assert world.state.lease.released == by_a_person
    assert roll_back(APPLICATION, CONNECTION, owner=OWNER, reason="again", take_over=by_a_person).is_done


def test_of_a_rollback_that_was_killed_the_first_reason_stays(world: GrowingWorld) -> None:
    world.rescale.advance(Phase.ROLLING_BACK, rollback_reason=CAUSE)
    assert roll_back(APPLICATION, CONNECTION, owner=OWNER, reason="a task has failed").is_done
    assert (world.journal.phase, world.journal.rollback_reason) == (Phase.ROLLED_BACK, CAUSE)


def test_a_person_who_has_ended_it_is_kept_until_the_next_attempt_and_told_of_autoscaling(
    world: GrowingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    scaled = APPLICATION.model_copy(update={"autoscaling_enabled": True})
    said = roll_back(scaled, CONNECTION, owner=OWNER, reason="a test", take_over=True, stopped_by="anna (run-1)")
    assert world.journal.stopped_by == "anna (run-1)"
    assert "watch_orders-app asks for it again within 2 minutes, and then waits for approval" in said.told


def test_a_switch_that_a_person_has_cancelled_was_ended_by_this_person(world: GrowingWorld) -> None:
    switch = Switch.of(world.journal, None).said(Order.CANCEL, "anna@host", 1)
    world.state = world.state.model_copy(update={"switch": switch})
    said = roll_back(APPLICATION, CONNECTION, owner=OWNER, reason="the run has failed")
    assert world.journal.stopped_by == "anna@host, who has cancelled the switch"
    assert "watch_" not in said.told


def test_a_run_that_has_failed_by_itself_was_ended_by_nobody(world: GrowingWorld) -> None:
    roll_back(APPLICATION, CONNECTION, owner=OWNER, reason="the run has failed")
    assert world.journal.stopped_by == ""


def test_jobs_of_this_run_that_have_failed_are_part_of_the_reason(world: GrowingWorld) -> None:
    failed = JobResult(job="restore/2", run=OWNER, attempt=1, state="failed", detail="Outage: no broker")
    other = failed.model_copy(update={"job": "restore/1", "run": "an earlier one"})
    world.state = world.state.model_copy(update={"results": {r.job: r for r in (failed, other)}})
    roll_back(APPLICATION, CONNECTION, owner=OWNER, reason="the run has failed")
    assert world.journal.rollback_reason == "the run has failed; restore/2 has failed: Outage: no broker"


def test_the_next_attempt_begins_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def update(change: Any) -> ControlState:
        return STATE.model_copy(update={"journal": change(STATE)["journal"]})

    control = SimpleNamespace(application="orders-app", update=update)
    begun = journal_store.begin(control, in_place_plan(), OWNER, now_ms=1)  # type: ignore[arg-type]
    assert (begun.attempt, begun.rollback_reason) == (2, "")


def test_a_journal_of_before_there_were_reasons_is_read_and_tells_its_phase() -> None:
    old = json.loads(ROLLED_BACK.model_dump_json())
    del old["rollback_reason"]
    journal = Journal.model_validate_json(json.dumps(old))
    assert (journal.rollback_reason, journal.told) == ("", "rolled_back")
    assert health_of(ControlState(journal=journal), GroupDescription("x", "Stable", ("i",))).reason == (
        "The last expansion was rolled back; trigger it again to go on with its copies."
    )
    assert "because" not in status_view(APPLICATION, ControlState(journal=journal), ()).text


def test_status_tells_it() -> None:
    shown = status_view(APPLICATION, STATE, ())
    assert f"\nrolled back because: {CAUSE}" in shown.text
    assert (shown.data["phase"], shown.data["rollback_reason"]) == ("rolled_back", CAUSE)


def test_the_page_tells_it_when_it_is_done_and_while_it_is_done() -> None:
    live = GroupDescription("x", "Stable", ("i",))
    assert health_of(STATE, live).reason.endswith(f"go on with its copies. Why: {CAUSE}")
    on_the_way = ROLLED_BACK.model_copy(update={"phase": Phase.ROLLING_BACK})
    assert health_of(STATE.model_copy(update={"journal": on_the_way}), live).reason.endswith(
        f"rolling_back. Why: {CAUSE}"
    )


def test_a_gate_that_waits_in_vain_tells_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ControlTopic, "__init__", lambda *_: None)
    monkeypatch.setattr(ControlTopic, "read", lambda _: STATE)
    gate = Gate(application="orders-app", owner=OWNER, stage=1, threshold=0)
    assert look(CONNECTION, gate).detail == f"phase rolled_back, because: {CAUSE}"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"r": {"restore": "failed", "plan": "success", "cutover": "upstream_failed"}}, "r has failed: restore"),
        ({}, "r has failed"),
        (None, "r has failed"),
    ],
    ids=["one has failed", "none", "no answer"],
)
def test_the_task_that_rolls_back_names_those_that_have_failed(
    monkeypatch: pytest.MonkeyPatch, answer: dict[str, dict[str, str]] | None, reason: str
) -> None:
    def states(dag_id: str, run_ids: list[str]) -> dict[str, dict[str, str]]:
        assert (dag_id, run_ids) == ("expand_x", ["r"])
        if answer is None:
            raise RuntimeError("no answer")
        return answer

    told: dict[str, Any] = {}
    monkeypatch.setattr(RuntimeTaskInstance, "get_task_states", staticmethod(states))

    def run_owned(*_: Any, **arguments: Any) -> RollBack:
        told.update(arguments)
        return RollBack(is_done=True, told="rolled back")

    monkeypatch.setattr(RollBackOperator, "run_owned", run_owned)
    task = RollBackOperator(task_id="roll_back", application_file="x.yaml", reason="r has failed")
    done = task.execute({"dag_run": SimpleNamespace(dag_id="expand_x", run_id="r")})  # type: ignore[arg-type]
    assert done == {"is_done": True, "told": "rolled back", "was_done_before": False}
    assert told["reason"] == reason
