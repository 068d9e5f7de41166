"""Approvals, retries and owners: what decides whether a run goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from airflow.providers.standard.exceptions import HITLRejectException
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, RetryAction
from airflow.sdk.exceptions import AirflowSkipException, TaskAwaitingInput
from kafka_rescale.airflow.hooks.rescale import ConnectionMissing
from kafka_rescale.airflow.markdown import plan_brief, steps_markdown
from kafka_rescale.airflow.operators import admin, closing
from kafka_rescale.airflow.operators import approval as approval_module
from kafka_rescale.airflow.operators.approval import OptionalApprovalOperator
from kafka_rescale.airflow.operators.base import RescaleOperator
from kafka_rescale.airflow.operators.cutover import CutoverOperator
from kafka_rescale.airflow.retries import RETRY_POLICY
from kafka_rescale.airflow.runs import owner_of
from kafka_rescale.core.control.journal import Phase
from kafka_rescale.core.errors import (
    ClusterOutage,
    Fenced,
    Finding,
    InvalidInput,
    LeaseHeld,
    NotLetIn,
    Outage,
    PreflightRefused,
    Refused,
    Unreadable,
    UnsafeState,
)
from kafka_rescale.core.expansion.cutover_steps import CutoverStep, Moment
from kafka_rescale.core.plan.chain import ChainRun
from kafka_rescale.core.plan.plan import Move, MoveKind, Plan, Stage
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.operations.preflight.preflight import Preflight

from tests.support.application_files import write_application
from tests.support.plans import in_place_plan, plan_for

WORDS = {"found": "a", "expected": "b", "remedy": "c"}


BEFORE = ("stage_1.restore", "stage_1.expand", "prewarm", "gate_all")


def approval(**arguments: Any) -> OptionalApprovalOperator:
    return OptionalApprovalOperator(task_id="t", enabled_by="approve_plan", subject="?", body="-", **arguments)


def test_an_approval_that_nobody_asked_for_succeeds_at_once() -> None:
    assert approval().execute({"params": {"approve_plan": False}}) is None  # type: ignore[typeddict-item]


def test_an_approval_that_was_asked_for_waits_for_a_person(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airflow.providers.standard.operators.hitl.upsert_hitl_detail", lambda **_: None)
    asked = asked_in_a_run({})
    with pytest.raises(TaskAwaitingInput):
        asked()


@pytest.mark.parametrize("phase", [None, *Phase])
def test_a_cutover_that_has_begun_is_not_asked_about_again(
    monkeypatch: pytest.MonkeyPatch, phase: Phase | None
) -> None:
    """A run that continues past the promotion has to start green.

    While it waited for a person, no generation would run.
    """
    monkeypatch.setattr("airflow.providers.standard.operators.hitl.upsert_hitl_detail", lambda **_: None)
    monkeypatch.setattr(approval_module.KafkaRescaleHook, "connection", lambda _: None)
    monkeypatch.setattr(approval_module, "phase_of", lambda _, application: {"orders": phase}[application])
    asked = asked_in_a_run({}, cutover_of="orders", kafka_config_id="k")
    if phase in {None, Phase.WARMING, Phase.ROLLING_BACK, Phase.ROLLED_BACK}:
        with pytest.raises(TaskAwaitingInput):
            asked()
    else:
        asked()


def asked_in_a_run(
    results: dict[str, Any], before: tuple[str, ...] = BEFORE, **arguments: Any
) -> Callable[[], OptionalApprovalOperator]:
    """Return a function that asks for the approval, after tasks that have left these results."""
    with DAG("expand_orders", schedule=None):
        task = approval(**arguments)
        [EmptyOperator(task_id=job) for job in before] >> task

    def pull(task_ids: str) -> Any:
        return results.get(task_ids)

    ti = SimpleNamespace(id="1", dag_id="expand_orders", xcom_pull=pull)
    context: Any = {"params": {"approve_plan": True}, "task_instance": ti, "ti": ti}

    def ask() -> OptionalApprovalOperator:
        task.execute(context)
        return task

    return ask


def shown_behind(
    results: dict[str, Any], monkeypatch: pytest.MonkeyPatch, before: tuple[str, ...] = BEFORE
) -> list[str]:
    """The paragraphs that a person sees after tasks that have left these results."""
    shown: dict[str, Any] = {}
    monkeypatch.setattr("airflow.providers.standard.operators.hitl.upsert_hitl_detail", shown.update)
    with pytest.raises(TaskAwaitingInput):
        asked_in_a_run(results, before)()
    return shown["body"].split("\n\n")


def test_who_approves_the_cutover_reads_the_verdict_first(monkeypatch: pytest.MonkeyPatch) -> None:
    lags = [["orders-totals-changelog", partition, 1] for partition in range(1000)]
    copied = {"state": "done", "records": 12345, "seeded": 12000, "bytes": 2_000_000, "seconds": 3.5}
    results = {
        "gate_all": {"threshold": 10_000, "lags": lags},
        "prewarm": {"start": 6.2, "restore": 80.0, "stop": 2.1},
        "stage_1.restore": copied,
        "stage_1.expand": ["created a topic"],
    }
    verdict, pause, table, rest, copies, plan, page = shown_behind(results, monkeypatch)
    assert verdict == "**All 1000 partitions are within 10,000 offsets of the end; the largest lag is 1.**"
    assert pause.startswith("**Expected pause: about 8 s** to stop and to start")
    assert len(table.splitlines()) == 7
    assert rest == "The page shows the other 995, which are no further behind."
    assert copies == "Copied: 12,345 records (2.0 MB), 12,000 of them rows of snapshots, in 4 s of 1 tasks."
    assert plan == "-"
    assert "(/plugin/kafka-rescale/kafka-rescale/?application=orders)" in page


@pytest.mark.parametrize(
    ("not_copied", "claim"), [((), "**The whole state was proven"), (("seen",), "**All that is copied was proven")]
)
def test_the_approval_claims_as_proven_what_the_plan_copies(
    not_copied: tuple[str, ...], claim: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan decides, and not the words of the proof."""
    stage = Stage(index=1, name="s", subtopology=0, not_copied=not_copied)
    plan = plan_for("shop").model_copy(update={"stages": (stage,)})
    proof = {"detail": "3 entries of store not copied: no changelog", "as_of_ms": 0, "seconds": 1.0}
    results = {"plan": plan.model_dump(mode="json"), "gate_all": {"threshold": 0}, "prove": proof}
    assert shown_behind(results, monkeypatch)[0].startswith(claim)


def test_no_table_of_an_approval_is_wider_than_two_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Airflow shows the approval in a narrow column, beside the list of required actions."""
    results = {"gate_all": {"threshold": 0, "lags": [["a", 0, None]]}}
    text = "\n".join(
        (*shown_behind(results, monkeypatch), plan_brief(plan_for("shop")), plan_brief(in_place_plan()))
    )
    assert max(line.count("|") for line in text.splitlines()) == 3


@pytest.mark.parametrize(
    ("result", "told"),
    [
        (
            {"records": 12345, "bytes": 2_000_000, "seconds": 3.5},
            "**Every record that has to move can be moved: 12,345",
        ),
        ({}, "**No record has to move.**"),
        (None, "**No record has to move.**"),
    ],
)
def test_who_approves_a_stop_in_place_reads_first_what_the_rehearsal_has_found(
    result: dict[str, Any] | None, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    verdict, *_ = shown_behind({"rehearse": result}, monkeypatch, ("rehearse",))
    assert verdict.startswith(told)


@pytest.mark.parametrize(
    ("result", "told"),
    [
        ({"restore": 12.34, "stop": 1.0}, "green restored its stores for 12.3 s ahead of the pause"),
        ({}, "green restores all of its stores within the pause"),
        (None, "green restores all of its stores within the pause"),
    ],
)
def test_who_approves_sees_whether_the_pause_grows_with_the_state(
    result: dict[str, float] | None, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert told in shown_behind({"prewarm": result}, monkeypatch)[1]


def test_the_approval_of_the_plan_has_nothing_ahead_of_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown_behind({}, monkeypatch, ("plan",))[0] == "-"


def pushed_by_the_plan(
    monkeypatch: pytest.MonkeyPatch, file: Path, plan: Plan, messages: list[str], **params: Any
) -> dict[str, str]:
    """The values that the plan task leaves for the approvals."""
    pushed: dict[str, str] = {}
    monkeypatch.setattr(admin.PlanOperator, "_begin", lambda *_: None)
    found = {"plan": plan.model_dump(mode="json"), "noop": False, "messages": messages}
    ti = SimpleNamespace(
        xcom_pull=lambda task_ids: found, xcom_push=lambda key, value: pushed.update({key: value})
    )
    context: Any = {"ti": ti, "params": params}
    admin.PlanOperator(task_id="plan", application_file=str(file), only_show=False).execute(context)
    return pushed


def test_who_approves_the_plan_sees_what_preflight_found_worth_knowing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = write_application(tmp_path)
    told = pushed_by_the_plan(monkeypatch, file, plan_for("shop"), ["one.", "two."])
    table, _, remarks = told["table"].partition("\n\n* ")
    assert table.endswith(" |")
    assert remarks == "one.\n* two."
    assert pushed_by_the_plan(monkeypatch, file, plan_for("shop"), [])["table"].strip() == table


def test_who_approves_the_cutover_reads_each_of_its_steps_with_the_names_that_it_touches(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The steps have this run's limit of the pause. If there are many names, they show only some."""
    file = write_application(tmp_path)
    told = pushed_by_the_plan(monkeypatch, file, in_place_plan(), [], max_pause_seconds=77)["steps"]
    title, _, *steps = told.splitlines()
    assert title == "**What the cutover will do**"
    assert [line.partition(".")[0] for line in steps] == [str(n) for n in range(1, len(steps) + 1)]
    assert "within 77 s of the begin of the pause" in told
    (grown,) = (line for line in steps if "Grow the application's own topics" in line)
    assert "`orders-app-per-region-changelog 4 -> 8`" in grown
    many = steps_markdown([CutoverStep(Moment.PAUSE, "Stop.", ("a", "b", "c", "d", "e", "f"))])
    assert many.endswith("1. *in the pause*: Stop. (`a`, `b`, `c`, `d` and 2 more)")
    assert steps_markdown([CutoverStep(Moment.PAUSE, "Stop.")]).endswith("Stop.")


@pytest.mark.parametrize("is_paused", [False, True])
def test_preflight_tells_of_a_bridge_only_if_it_is_paused(
    is_paused: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A bridge's DAG is not paused when it is made, so usually no person has to unpause it."""
    file = str(write_application(tmp_path))
    bridge = Move(kind=MoveKind.INPUT, source="a", target="b", store="a", source_partitions=4, target_partitions=8)
    connection = KafkaConnection({"bootstrap.servers": "kafka:9092"})
    stage = Stage(index=1, name="stage_1", subtopology=0, bridges=(bridge,))
    found = Preflight(plan_for("orders-app").model_copy(update={"stages": (stage,)}), False, ("one.",))
    monkeypatch.setattr("kafka_rescale.operations.preflight.preflight.preflight", lambda *_, **__: found)
    monkeypatch.setattr(admin.PreflightOperator, "connection", lambda *_: connection)
    for name in ("require_kafka_for_spark", "require_spark_files", "room_needed"):
        monkeypatch.setattr(admin, name, lambda *_: "")
    ti = SimpleNamespace(get_dag={"bridge_orders-app": SimpleNamespace(is_paused=is_paused)}.__getitem__)
    run = SimpleNamespace(dag_id="expand_orders-app", run_id="r", run_type="manual")
    context: Any = {"ti": ti, "dag_run": run}
    told = admin.PreflightOperator(task_id="preflight", application_file=file).execute(context)["messages"]
    paused = ["bridge_orders-app is paused: unpause it, or the cutover waits for it in vain."]
    assert told == ["one.", *(paused if is_paused else [])]


@pytest.mark.parametrize(
    ("after_readers", "target", "expected"),
    [(False, 6, None), ("False", 6, None), (True, 6, ChainRun(6)), ("True", "", ChainRun())],
)
def test_preflight_is_told_of_the_chain_that_expands_the_readers_first(
    after_readers: bool | str,
    target: int | str,
    expected: ChainRun | None,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    file = str(write_application(tmp_path))
    asked: list[ChainRun | None] = []

    def preflight(*_: object, chain_run: ChainRun | None, **__: object) -> Preflight:
        asked.append(chain_run)
        return Preflight(None, True, ())

    monkeypatch.setattr("kafka_rescale.operations.preflight.preflight.preflight", preflight)
    connection = KafkaConnection({"bootstrap.servers": "kafka:9092"})
    monkeypatch.setattr(admin.PreflightOperator, "connection", lambda *_: connection)
    for name in ("require_kafka_for_spark", "require_spark_files", "room_needed"):
        monkeypatch.setattr(admin, name, lambda *_: "")
    run = SimpleNamespace(dag_id="expand_orders-app", run_id="r", run_type="manual")
    told = admin.PreflightOperator(
        task_id="preflight", application_file=file, target=target, after_readers=after_readers
    )
    context: Any = {"dag_run": run}
    told.execute(context)
    assert asked == [expected]


def test_a_run_may_limit_the_pause_otherwise_than_the_file(tmp_path: Path) -> None:
    file = str(write_application(tmp_path, max_pause_seconds=120))
    of_the_run = CutoverOperator(task_id="a", application_file=file, max_pause_seconds="30")
    of_the_file = CutoverOperator(task_id="b", application_file=file, max_pause_seconds="")
    assert of_the_run.application().max_pause_seconds == 30
    assert of_the_file.application().max_pause_seconds == 120


def test_no_answer_is_a_rejection_and_a_rejection_fails_without_a_retry() -> None:
    task = approval()
    assert (task.fail_on_reject, task.defaults) == (True, ["Reject"])
    assert task.response_timeout is not None
    decision = task.retry_policy.evaluate(HITLRejectException("no"), try_number=1, max_tries=2)
    assert decision.action is RetryAction.FAIL


@pytest.mark.parametrize("kind", [UnsafeState, Refused, LeaseHeld, InvalidInput, Fenced])
def test_what_needs_a_person_is_not_retried(kind: type[Exception]) -> None:
    error = kind("thing", **WORDS)
    assert RETRY_POLICY.evaluate(error, try_number=1, max_tries=2).action is RetryAction.FAIL


def test_a_refused_preflight_is_not_retried() -> None:
    error = PreflightRefused([Finding("thing", "a", "b", "c")])
    assert RETRY_POLICY.evaluate(error, try_number=1, max_tries=2).action is RetryAction.FAIL


@pytest.mark.parametrize("kind", [Outage, ClusterOutage, NotLetIn, ConnectionMissing, Unreadable])
def test_what_may_pass_is_retried(kind: type[Exception]) -> None:
    error = kind("thing", **WORDS)
    assert RETRY_POLICY.evaluate(error, try_number=1, max_tries=2).action is RetryAction.RETRY


def test_an_outage_within_a_pause_is_retried_by_the_delays_of_its_task() -> None:
    """A delay of the retry policy would replace them."""
    decision = RETRY_POLICY.evaluate(Outage("thing", **WORDS), try_number=9, max_tries=12)
    assert (decision.action, decision.retry_delay) == (RetryAction.RETRY, None)


def test_the_owner_is_the_run_and_not_its_date() -> None:
    run = SimpleNamespace(dag_id="expand_x", run_id="manual__2", logical_date=None)
    assert owner_of({"dag_run": run}) == "expand_x/manual__2"


@pytest.mark.parametrize("found", [None, {"restore": 4.2}])
def test_pre_warming_is_skipped_where_it_cannot_be(
    monkeypatch: pytest.MonkeyPatch, found: dict[str, float] | None
) -> None:
    monkeypatch.setattr(admin.PrewarmOperator, "run_owned", lambda *_, **__: found)
    task = admin.PrewarmOperator(task_id="prewarm", application_file="application.yaml", local_state_deleted=False)
    if found is None:
        with pytest.raises(AirflowSkipException, match="not pre-warmed"):
            task.execute({})  # type: ignore[typeddict-item]
    else:
        assert task.execute({}) == found  # type: ignore[typeddict-item]


@pytest.mark.parametrize(("text", "deleted"), [("True", True), ("False", False)])
def test_the_word_that_local_state_is_gone_is_text_by_then(
    monkeypatch: pytest.MonkeyPatch, text: str, *, deleted: bool
) -> None:
    asked: list[bool] = []
    monkeypatch.setattr(
        admin.PrewarmOperator, "run_owned", lambda *_, local_state_deleted: asked.append(local_state_deleted) or {}
    )
    task = admin.PrewarmOperator(task_id="prewarm", application_file="application.yaml", local_state_deleted=text)
    assert task.execute({}) == {}  # type: ignore[typeddict-item]
    assert asked == [deleted]


def operators_in(module: ModuleType) -> list[type[RescaleOperator]]:
    """The operators that a module defines."""
    return [kind for kind in vars(module).values() if getattr(kind, "__module__", "") == module.__name__]


@pytest.mark.parametrize("kind", [*operators_in(admin), *operators_in(closing)])
def test_every_operator_takes_keywords_only_and_documents_its_parameters(kind: type[RescaleOperator]) -> None:
    with pytest.raises(TypeError):
        kind("application.yaml")  # type: ignore[misc]
    assert kind.__doc__
    assert "application_file" in kind.template_fields
