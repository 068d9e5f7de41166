"""The wait for the switch in Airflow: what the task, its trigger and the approval before it do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.standard.exceptions import HITLRejectException
from airflow.sdk.exceptions import TaskAwaitingInput, TaskDeferred
from kafka_rescale.airflow.dags.expansion_tasks import ExpansionTasks
from kafka_rescale.airflow.dags.maintenance import pace_dag, switch_dag
from kafka_rescale.airflow.dags.params import approval_params
from kafka_rescale.airflow.hooks.rescale import ConnectionMissing, KafkaRescaleHook
from kafka_rescale.airflow.operators import approval as approval_module
from kafka_rescale.airflow.operators.approval import CutoverApprovalOperator
from kafka_rescale.airflow.operators.closing import PaceOperator, SwitchOperator
from kafka_rescale.airflow.sensors import switch as sensor_module
from kafka_rescale.airflow.sensors.switch import SwitchSensor
from kafka_rescale.airflow.triggers import switch as trigger_module
from kafka_rescale.airflow.triggers.pause_alert import LOOKS_IN_VAIN
from kafka_rescale.airflow.triggers.switch import SwitchTrigger, is_over
from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.lease import Lease
from kafka_rescale.core.control.pace import DiskRest, Instruction, Pace, Rate
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.control.switch import Order, Switch
from kafka_rescale.core.errors import Outage, Refused, UnsafeState
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.operations.application.load import load_application, topology_of
from kafka_rescale.operations.expansion import rewarm
from kafka_rescale.operations.expansion import switch as operation

from tests.support.application_files import write_application
from tests.support.plans import plan_for

OWNER = "expand_orders-app/r"
NIGHTLY = {"windows": ["02:00-05:00"]}
ASKED = datetime.fromtimestamp(7, UTC)
RUN = SimpleNamespace(dag_id="expand_orders-app", run_id="r", triggering_user_name="ada", run_after=ASKED)
CONTEXT: Any = {"dag_run": RUN, "params": {"approve_cutover": True}}
JOURNAL = Journal(plan=plan_for("orders-app"))
WORDS = {"found": "a", "expected": "b", "remedy": "c"}
TI = SimpleNamespace(id="1", dag_id="d", xcom_pull=lambda **_: None)
ASKING: Any = {**CONTEXT, "ti": TI, "task_instance": TI}
DAY_MS = 86_400_000
BEGUN = Switch.of(JOURNAL, None).begun(now_ms() - DAY_MS, 3 * DAY_MS, None, 3_600_000, asks=True)
"""Asked a day ago, with a limit of three days."""


@pytest.fixture(autouse=True)
def _no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (sensor_module, approval_module):
        monkeypatch.setattr(module.KafkaRescaleHook, "connection", lambda _: None)
    monkeypatch.setattr(rewarm, "restore_again", lambda *_, owner: None)


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """A function that sets the answers of the control topic, one for each look."""

    def answer(*each: operation.Answer | Exception) -> None:
        left = list(each)

        def let_through(*_: object, owner: str) -> operation.Answer:
            assert owner == OWNER
            found = left.pop(0)
            if isinstance(found, Exception):
                raise found
            return found

        monkeypatch.setattr(operation, "let_through", let_through)

    return answer


def sensor(directory: Path) -> SwitchSensor:
    return SwitchSensor(task_id="await_window", application_file=str(write_application(directory)))


OPEN, WAITS = operation.Answer(True, "a window is open"), operation.Answer(False, "the next window", 1)


def test_an_open_gate_is_passed_at_once(answers: Callable[..., None], tmp_path: Path) -> None:
    answers(OPEN)
    assert sensor(tmp_path).execute(CONTEXT) == "a window is open"


def test_what_was_copied_is_restored_before_the_gate_is_asked(
    answers: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Were it asked first, the switch would be let through with a green that has aged."""

    def restore_again(application: Any, _: Any, *, owner: str) -> None:
        assert (application.application_id, owner) == ("orders-app", OWNER)
        raise Outage("pre-warming of orders-app-g2", **WORDS)

    monkeypatch.setattr(rewarm, "restore_again", restore_again)
    answers()
    with pytest.raises(Outage, match="pre-warming of orders-app-g2"):
        sensor(tmp_path).execute(CONTEXT)


def test_a_closed_gate_is_left_to_the_triggerer_which_holds_no_slot(
    answers: Callable[..., None], tmp_path: Path
) -> None:
    answers(WAITS)
    with pytest.raises(TaskDeferred) as deferred:
        sensor(tmp_path).execute(CONTEXT)
    assert isinstance(deferred.value.trigger, SwitchTrigger)
    assert deferred.value.timeout is None, "the limit is in the control topic"
    path, arguments = deferred.value.trigger.serialize()
    assert path == "kafka_rescale.airflow.triggers.switch.SwitchTrigger"
    assert SwitchTrigger(**arguments).serialize() == (path, arguments)
    assert (arguments["application_id"], arguments["owner"]) == ("orders-app", OWNER)


def test_a_gate_that_has_closed_again_is_waited_for_again(answers: Callable[..., None], tmp_path: Path) -> None:
    """A person may have postponed the switch between the trigger's event and the task."""
    answers(WAITS, OPEN)
    with pytest.raises(TaskDeferred):
        sensor(tmp_path).execute_complete(CONTEXT, "open")
    assert sensor(tmp_path).execute_complete(CONTEXT, "open") == "a window is open"


def test_a_cancelled_switch_fails_the_task(answers: Callable[..., None], tmp_path: Path) -> None:
    answers(UnsafeState("switch", **WORDS))
    with pytest.raises(UnsafeState):
        sensor(tmp_path).execute_complete(CONTEXT, "cancelled")


def state(phase: Phase = Phase.WARMING, owner: str = OWNER, **words: Any) -> ControlState:
    begun = Switch.of(JOURNAL, None).begun(now_ms(), 86_400_000, None, None, asks=False)
    switch = begun.said(words.pop("order", Order.HOLD), "ada", now_ms(), **words)
    lease = Lease(owner=owner, epoch=1, target=8, expires_at_ms=0)
    return ControlState(lease=lease, journal=JOURNAL.model_copy(update={"phase": phase}), switch=switch)


@pytest.mark.parametrize(
    ("found", "over"),
    [
        (state(), False),
        (state(order=Order.NOW, not_before_ms=now_ms() + 10**10), False),
        (state(order=Order.NOW), True),
        (state(order=Order.CANCEL), True),
        (state(Phase.ROLLED_BACK), True),
        (state(Phase.QUIESCING), True),
        (state(owner="rollback_orders-app/x"), True),
        (ControlState(), True),
    ],
    ids=["held", "later", "now", "cancelled", "rolled back", "begun", "taken over", "nothing"],
)
def test_the_trigger_fires_when_the_task_has_something_to_decide(found: ControlState, over: bool) -> None:
    assert is_over(found, OWNER, now_ms())[0] == over


def test_the_trigger_does_not_fire_while_the_copy_is_paused_but_at_the_end_of_the_wait() -> None:
    paused = {"pace": Pace(plan=JOURNAL.plan.fingerprint, paused=Instruction(by="ada", at_ms=0))}
    over, text = is_over(state(order=Order.NOW).model_copy(update=paused), OWNER, now_ms())
    assert not over
    assert text.startswith("the copy is paused by ada")
    assert is_over(state(order=Order.CANCEL).model_copy(update=paused), OWNER, now_ms())[0]
    over, text = is_over(state(order=Order.NOW).model_copy(update=paused), OWNER, now_ms() + DAY_MS)
    assert (over, text.partition(",")[0]) == (True, "expired"), "a pause does not stop max_wait_seconds"


def test_the_trigger_does_not_fire_while_the_copy_rests_for_a_disk_and_says_so_once() -> None:
    def looked(usable: int) -> tuple[bool, str]:
        rest = DiskRest(broker=3, path="/d", usable=usable, copied=90, percent=10, enough=11, since_ms=0)
        rate = Rate(run=OWNER, attempt=1, at_ms=now_ms(), disk=rest, is_paused=True)
        result = JobResult(job="catch_up", run=OWNER, attempt=1, state="running")
        resting = {"rates": {"catch_up": rate}, "results": {"catch_up": result}}
        return is_over(state(order=Order.NOW).model_copy(update=resting), OWNER, now_ms())

    said = "the copy is at rest since Thu 01 Jan 1970 00:00 UTC: log dir '/d' of broker 3 is too full"
    assert looked(1) == looked(2) == (False, said)


def test_a_missing_connection_is_waited_for_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []

    async def missing(_: object) -> None:
        looked.append(1)
        raise ConnectionMissing("connection", **WORDS)

    monkeypatch.setattr(KafkaRescaleHook, "aconnection", missing)
    trigger = SwitchTrigger(kafka_config_id="k", application_id="orders-app", owner=OWNER, poll_seconds=0)

    async def first() -> str:
        return str((await anext(aiter(trigger.run()))).payload)

    assert asyncio.run(first()).startswith("connection: found ")
    assert len(looked) == LOOKS_IN_VAIN


def test_the_trigger_waits_through_an_outage_and_hears_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[ControlState | Exception] = [
        state(),
        Outage("control topic", **WORDS),
        state(),
        state(order=Order.NOW),
    ]

    async def connection(_: object) -> None:
        return None

    def read(_: object, application_id: str, owner: str) -> tuple[bool, str]:
        found = looks.pop(0)
        if isinstance(found, Exception):
            raise found
        return is_over(found, owner, now_ms())

    monkeypatch.setattr(KafkaRescaleHook, "aconnection", connection)
    monkeypatch.setattr(trigger_module, "_read", read)
    trigger = SwitchTrigger(kafka_config_id="k", application_id="orders-app", owner=OWNER, poll_seconds=0)

    async def first() -> str:
        async for event in trigger.run():
            return str(event.payload)
        raise AssertionError

    assert asyncio.run(first()).startswith("open, order now by ada")
    assert looks == []
    looks.append(Refused("hook", **WORDS))
    assert asyncio.run(first()).startswith("Refused: "), "the task meets it itself"


@pytest.fixture
def asks(tmp_path: Path) -> Callable[..., CutoverApprovalOperator]:
    def make(**changes: Any) -> CutoverApprovalOperator:
        file = write_application(tmp_path, **changes)
        application = load_application(file)
        tasks = ExpansionTasks(application, str(file), topology_of(application))
        (task,) = (task for task in tasks.tasks() if task.task_id == "approve_cutover")
        made = tasks.operator(task)
        assert isinstance(made, CutoverApprovalOperator)
        return made

    return make


def test_the_approval_asks_until_the_limit_of_the_file_counted_from_the_first_time(
    asks: Callable[..., CutoverApprovalOperator], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Earlier versions rolled back without an answer within a day."""
    shown: dict[str, Any] = {}
    monkeypatch.setattr("airflow.providers.standard.operators.hitl.upsert_hitl_detail", shown.update)
    monkeypatch.setattr(approval_module, "phase_of", lambda *_: Phase.WARMING)
    monkeypatch.setattr(operation, "begin_wait", lambda *_, **__: BEGUN)
    left = timedelta(milliseconds=BEGUN.until_ms - now_ms())
    with pytest.raises(TaskAwaitingInput) as parked:
        asks().execute(ASKING)
    assert parked.value.timeout is not None
    assert timedelta(milliseconds=BEGUN.until_ms - now_ms()) <= parked.value.timeout <= left
    assert "**If nobody answers**, nothing is thrown away. The copies are kept near until" in shown["body"]
    assert "If nothing copies for 1 h (`delete.retention.ms`), they begin anew." in shown["body"]
    assert "what was copied stays for the next run" in shown["body"]


@pytest.mark.parametrize("times", [1, 5], ids=["once", "more often than Airflow retries"])
def test_without_an_answer_it_asks_again_while_a_raised_limit_is_ahead(
    asks: Callable[..., CutoverApprovalOperator], monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """Airflow ends the wait at the limit from when it asked. The page shows the limit of a later word."""
    asked: list[str] = []
    monkeypatch.setattr(
        "airflow.providers.standard.operators.hitl.upsert_hitl_detail", lambda **of: asked.append(of["ti_id"])
    )
    monkeypatch.setattr(approval_module, "phase_of", lambda *_: Phase.WARMING)
    monkeypatch.setattr(operation, "begin_wait", lambda *_, **__: BEGUN)
    states = [ControlState(journal=JOURNAL, switch=BEGUN)] * times
    expired = BEGUN.model_copy(update={"until_ms": now_ms() - 1})
    states += [ControlState(journal=JOURNAL, switch=expired)]
    monkeypatch.setattr(
        "kafka_rescale.kafka.control.control_topic.ControlTopic",
        lambda *_: SimpleNamespace(read=lambda: states.pop(0)),
    )
    for _ in range(times):
        left = timedelta(milliseconds=BEGUN.until_ms - now_ms())
        with pytest.raises(TaskAwaitingInput) as parked:
            asks().execute_complete(ASKING, answered("Reject", by=None))
        assert parked.value.timeout is not None
        assert timedelta(milliseconds=BEGUN.until_ms - now_ms()) <= parked.value.timeout <= left
    assert asked == ["1"] * times, "that removes the answer that Airflow has given at the old limit"
    with pytest.raises(UnsafeState, match=r"no answer within max_wait_seconds"):
        asks().execute_complete(ASKING, answered("Reject", by=None))


def test_a_form_without_windows_asks_for_a_time_alone(asks: Callable[..., CutoverApprovalOperator]) -> None:
    assert list(asks().serialized_params) == ["at"]
    with_windows = asks(cutover_windows=NIGHTLY)
    assert list(with_windows.serialized_params) == ["when", "at"]
    assert with_windows.serialized_params["when"]["value"] == "in the window"
    assert "02:00-05:00 UTC" in str(with_windows.serialized_params["when"])


def answered(option: str, by: str | None = "ada", **fields: Any) -> dict[str, Any]:
    from airflow.sdk.timezone import utcnow

    who = {"id": "1", "name": by} if by else None
    event = {"chosen_options": [option], "params_input": fields, "responded_at": utcnow()}
    return {**event, "responded_by_user": who, "timedout": by is None}


@pytest.mark.parametrize(
    ("fields", "order", "is_timed"),
    [
        ({}, Order.WINDOW, False),
        ({"when": "now", "at": None}, Order.NOW, False),
        ({"when": "in the window", "at": "2030-01-01T00:00:00Z"}, Order.NOW, True),
        ({"when": "in the window", "at": "soon"}, Order.HOLD, False),
    ],
)
def test_an_approval_is_noted_with_its_time_and_the_person(
    asks: Callable[..., CutoverApprovalOperator],
    monkeypatch: pytest.MonkeyPatch,
    fields: dict[str, Any],
    order: Order,
    is_timed: bool,
) -> None:
    noted: dict[str, Any] = {}
    monkeypatch.setattr(operation, "approve", lambda *_, **words: noted.update(words))
    asks(cutover_windows=NIGHTLY).execute_complete(CONTEXT, answered("Approve", **fields))
    assert (noted["order"], noted["not_before_ms"] > 0) == (order, is_timed)
    assert (noted["by"], noted["owner"]) == (f"ada ({OWNER})", OWNER)


def test_a_rejection_is_a_persons_and_no_answer_is_told_as_that(
    asks: Callable[..., CutoverApprovalOperator], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operation, "approve", lambda *_, **__: pytest.fail("nobody has approved"))
    with pytest.raises(HITLRejectException, match=r"Reject.*Nothing was stopped, and the copies stay\.$"):
        asks(outputs=[{"topic": "totals"}]).execute_complete(CONTEXT, answered("Reject"))
    grown = asks(outputs=[{"topic": "totals", "partitions": 8}])
    with pytest.raises(
        HITLRejectException, match=r"Outputs that have grown for it \(totals\) keep their partitions"
    ):
        grown.execute_complete(CONTEXT, answered("Reject"))
    in_place = asks(mode="in_place", outputs=[{"topic": "totals"}])
    with pytest.raises(HITLRejectException, match=r"Nothing was stopped\.$"):
        in_place.execute_complete(CONTEXT, answered("Reject"))
    Path(in_place.application_file).unlink()
    with pytest.raises(HITLRejectException):
        in_place.execute_complete(CONTEXT, answered("Reject"))
    over = ControlState(journal=JOURNAL, switch=BEGUN.model_copy(update={"until_ms": now_ms() - 1}))
    monkeypatch.setattr(
        "kafka_rescale.kafka.control.control_topic.ControlTopic", lambda *_: SimpleNamespace(read=lambda: over)
    )
    with pytest.raises(UnsafeState, match=r"no answer within max_wait_seconds.*the copies stay"):
        asks().execute_complete(CONTEXT, answered("Reject", by=None))


def test_the_form_says_a_word_in_the_name_of_the_person_who_has_triggered_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[Any] = []

    def say(_: object, connection: object, action: str, **words: object) -> str:
        said.append((action, words))
        return "waits"

    monkeypatch.setattr(operation, "say_action", say)
    monkeypatch.setattr(SwitchOperator, "connection", lambda *_: None)
    file = write_application(tmp_path)
    task = SwitchOperator(task_id="switch", application_file=str(file), action="postpone", until="u", reason="r")
    assert task.execute(CONTEXT) == "waits"
    assert said == [("postpone", {"by": f"ada ({OWNER})", "until": "u", "reason": "r", "asked_ms": 7000})]
    dag = switch_dag(load_application(file), file)
    assert list(dag.params) == ["action", "until", "reason"]
    assert not dag.params.get_param("action").has_value, "nobody says a word by mistake"
    assert list(approval_params(load_application(file))) == ["at"]


def test_the_form_of_the_pace_says_it_in_the_name_of_the_person(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    said: list[Any] = []

    def say(_: object, __: object, action: str, **words: object) -> str:
        said.append((action, words))
        return "paused"

    monkeypatch.setattr("kafka_rescale.operations.expansion.pace.say_pace", say)
    monkeypatch.setattr(PaceOperator, "connection", lambda *_: None)
    file = write_application(tmp_path)
    for limit in ("7", ""):
        task = PaceOperator(
            task_id="pace", application_file=str(file), action="limit", bytes_per_second=limit, reason="r"
        )
        assert task.execute(CONTEXT) == "paused"
    by = {"by": f"ada ({OWNER})", "reason": "r", "asked_ms": 7000}
    assert said == [("limit", {**by, "bytes_per_second": 7}), ("limit", {**by, "bytes_per_second": None})]
    dag = pace_dag(load_application(file), file)
    assert list(dag.params) == ["action", "bytes_per_second", "reason"]
    assert not dag.params.get_param("action").has_value, "nobody says a word by mistake"
