"""A form whose task begins late says its word only about what its person could know, and only as the last word."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import BaseOperator
from kafka_rescale.airflow.operators.closing import PaceOperator, RetireOperator, SwitchOperator
from kafka_rescale.core.control.pace import Instruction, Pace
from kafka_rescale.core.control.switch import Order, Switch
from kafka_rescale.core.errors import Refused
from kafka_rescale.operations.expansion import pace
from kafka_rescale.operations.expansion.rescale import Rescale

from tests.support.application_files import write_application
from tests.support.expansion.retired_world import after, chain, plan_of
from tests.support.expansion.waiting_switch import CONNECTION, HOUR, NOON, Control, control_topic, stopped_clock

RUN = "manual__noon"
ADA = f"ada (switch_orders-app/{RUN})"
EVE = Instruction(by="eve@shell", at_ms=NOON + HOUR)
Task = Callable[..., BaseOperator]


@pytest.fixture
def control(monkeypatch: pytest.MonkeyPatch) -> Control:
    """The control topic of an attempt that began an hour before noon. By now it is two hours past noon."""
    now = stopped_clock(monkeypatch)
    now[0] = NOON + 2 * HOUR
    made = control_topic(monkeypatch)
    monkeypatch.setattr(pace, "ControlTopic", made)
    monkeypatch.setattr(pace, "now_ms", lambda: now[0])
    begun_at(made, NOON - HOUR)
    return made


@pytest.fixture
def task(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Task:
    """Makes a task of the application's file."""
    file = write_application(tmp_path)

    def make(kind: type[BaseOperator], **arguments: Any) -> BaseOperator:
        monkeypatch.setattr(kind, "connection", lambda *_: CONNECTION)
        return kind(task_id="a_task", application_file=str(file), **arguments)

    return make


def begun_at(control: Control, ms: int) -> None:
    journal = control.state.journal
    assert journal is not None
    note(control, journal=journal.model_copy(update={"begun_ms": ms, "attempt": 7}))


def note(control: Control, **records: Any) -> None:
    control.state = control.state.model_copy(update=records)


def asked_at_noon(task: BaseOperator, *, later_ms: int = 0, run_id: str = RUN) -> Any:
    """Let a task begin whose run Ada has triggered at noon, or later."""
    at = datetime.fromtimestamp((NOON + later_ms) / 1000, UTC)
    run = SimpleNamespace(dag_id="switch_orders-app", run_id=run_id, triggering_user_name="ada", run_after=at)
    params = {"dry_run": False, "confirm": "orders-app"}
    return task.execute({"dag_run": run, "params": params})


def paced(control: Control) -> Pace:
    journal = control.state.journal
    assert journal is not None
    return Pace.of(journal.plan.fingerprint, control.state.pace)


def switched(control: Control) -> Switch:
    assert control.state.journal is not None
    return Switch.of(control.state.journal, control.state.switch)


@pytest.mark.parametrize(
    ("kind", "action"), [(SwitchOperator, "cut over now"), (PaceOperator, "pause"), (PaceOperator, "limit")]
)
def test_a_word_counts_for_no_attempt_that_began_after_it(
    control: Control, task: Task, kind: type[BaseOperator], action: str
) -> None:
    """The DAG was paused, or its worker has died, and meanwhile another attempt has begun."""
    begun_at(control, NOON + 1)
    with pytest.raises(Refused, match=r"found attempt 7, which began Wed 25 Nov 2026 12:00 UTC, after .*again"):
        asked_at_noon(task(kind, action=action))
    assert control.writes == 0


@pytest.mark.parametrize("by", [EVE.by, ADA])
def test_the_retry_of_a_word_leaves_another_persons_newer_word(control: Control, task: Task, by: str) -> None:
    held = switched(control).said(Order.HOLD, by, EVE.at_ms)
    note(control, switch=held)
    now = task(SwitchOperator, action="cut over now")
    if by == ADA:  # An earlier try of the same run has said it, and its answer got lost.
        asked_at_noon(now)
        assert switched(control).order is Order.NOW
        return
    with pytest.raises(Refused, match=r"found a word of eve@shell at Wed 25 Nov 2026 13:00 UTC, after .*again"):
        asked_at_noon(now)
    assert switched(control) == held


def test_a_word_replaces_the_words_that_were_noted_before_it(control: Control, task: Task) -> None:
    note(control, switch=switched(control).said(Order.HOLD, EVE.by, NOON - 1))
    asked_at_noon(task(SwitchOperator, action="cut over now"))
    assert (switched(control).order, switched(control).by) == (Order.NOW, ADA)


@pytest.mark.parametrize(
    ("action", "newer"),
    [("pause", {"resumed": EVE}), ("resume", {"paused": EVE}), ("limit", {"limited": EVE, "limit": 5})],
)
def test_the_retry_of_a_pace_leaves_another_persons_newer_word(
    control: Control, task: Task, action: str, newer: dict[str, Any]
) -> None:
    known = paced(control).model_copy(update=newer)
    note(control, pace=known)
    with pytest.raises(Refused, match=r"found a word of eve@shell at Wed 25 Nov 2026 13:00 UTC, after .*again"):
        asked_at_noon(task(PaceOperator, action=action))
    assert paced(control) == known
    older = {name: EVE.model_copy(update={"at_ms": NOON}) for name in newer if name != "limit"}
    note(control, pace=known.model_copy(update=older))
    asked_at_noon(task(PaceOperator, action=action))
    assert paced(control) != known


def test_what_holds_already_is_no_word_against_anybody(control: Control, task: Task) -> None:
    note(control, pace=paced(control).model_copy(update={"paused": EVE}))
    asked_at_noon(task(PaceOperator, action="pause"))
    assert paced(control).paused == EVE


def test_behind_other_tasks_the_dag_decides_when_it_is_said(control: Control, task: Task) -> None:
    """A DAG of a user may expand first, and say its word afterwards."""
    begun_at(control, NOON + 1)
    now = task(SwitchOperator, action="cut over now")
    now.upstream_task_ids.add("expand")
    asked_at_noon(now)
    assert switched(control).order is Order.NOW


def test_no_generation_is_deleted_that_became_old_since(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    state = after(plan_of(chain("orders-app"), 2))
    assert state.journal is not None
    late = state.journal.model_copy(update={"begun_ms": NOON + 1, "pause_started_ms": NOON + 2})
    topic = SimpleNamespace(read=lambda: state.model_copy(update={"journal": late}))
    monkeypatch.setattr("kafka_rescale.airflow.operators.base.airflow_of", lambda _: "")
    monkeypatch.setattr(Rescale, "open", lambda *_: SimpleNamespace(control=topic))
    with pytest.raises(Refused, match=r"retirement of orders-app: found attempt 1, which began .*, after .*again"):
        asked_at_noon(task(RetireOperator))


def test_a_word_that_was_asked_for_later_counts_although_the_other_was_noted_later(
    control: Control, task: Task
) -> None:
    """The runs of a form are queued one behind the other, so the first word is noted behind the second request."""
    asked_at_noon(task(SwitchOperator, action="postpone"))
    asked_at_noon(task(SwitchOperator, action="cancel"), later_ms=3_000, run_id="manual__second")
    assert switched(control).order is Order.CANCEL
    asked_at_noon(task(PaceOperator, action="limit", bytes_per_second=5))
    asked_at_noon(task(PaceOperator, action="limit", bytes_per_second=50), later_ms=3_000, run_id="manual__second")
    assert paced(control).limit == 50


def test_a_cancel_counts_that_was_asked_for_behind_an_answer_that_was_noted_later(
    control: Control, task: Task
) -> None:
    journal = control.state.journal
    assert journal is not None
    answer = Switch.of(journal, None).said(Order.NOW, "boss", NOON + HOUR, asked_for_ms=NOON - 1)
    note(control, switch=answer)
    asked_at_noon(task(SwitchOperator, action="cancel"))
    assert switched(control).order is Order.CANCEL


def test_a_pause_of_an_earlier_attempt_can_be_ended_by_a_late_resume(control: Control, task: Task) -> None:
    journal = control.state.journal
    assert journal is not None
    word = Instruction(by="eve@shell", at_ms=NOON - HOUR)
    note(control, pace=Pace.of(journal.plan.fingerprint, None).model_copy(update={"paused": word}))
    begun_at(control, NOON + HOUR)
    asked_at_noon(task(PaceOperator, action="resume"))
    assert paced(control).paused is None
