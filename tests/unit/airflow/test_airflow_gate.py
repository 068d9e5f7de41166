"""The lag gate: one reading, the trigger's loop, the sensor's end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import asdict, replace
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import TaskDeferred
from kafka_rescale.airflow import lag_gate as gate_module
from kafka_rescale.airflow.lag_gate import Gate, GateReason, Reading, look
from kafka_rescale.airflow.markdown import lag_table, lag_verdict
from kafka_rescale.airflow.sensors import lag_gate as sensor_module
from kafka_rescale.airflow.sensors.lag_gate import LagGateSensor
from kafka_rescale.airflow.triggers import lag_gate as trigger_module
from kafka_rescale.airflow.triggers.lag_gate import LagGateTrigger
from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.lag_history import LagHistory
from kafka_rescale.core.control.lease import Lease
from kafka_rescale.core.control.pace import DiskRest, Instruction, Pace, Rate
from kafka_rescale.core.control.progress import PartitionProgress
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import InvalidInput, Outage, UnsafeState
from kafka_rescale.core.expansion.bridge_progress import HEARTBEAT_MS
from kafka_rescale.core.expansion.pacing_words import FRESH_MS
from kafka_rescale.core.expansion.silent_jobs import SILENT_MS
from kafka_rescale.core.plan.plan import Move, MoveKind, Plan, Stage
from kafka_rescale.kafka.client.waiting import now_ms

OWNER = "expand_x/run-1"
GATE = Gate(application="x", owner=OWNER, threshold=10)
PARTITIONS = 4
MOVE = Move(
    kind=MoveKind.CHANGELOG,
    source="x-s-changelog",
    target="x-g2-s-changelog",
    store="s",
    source_partitions=PARTITIONS,
    target_partitions=8,
)
PLAN = Plan(
    application="x",
    generation=2,
    blue="x",
    green="x-g2",
    partitions=8,
    stages=(Stage(index=1, name="stage_1_subtopology_0", subtopology=0, moves=(MOVE,)),),
    inputs=(),
)


def state_of(
    phase: Phase = Phase.WARMING, owner: str = OWNER, *, released: bool = False, **results: JobResult
) -> ControlState:
    lease = Lease(owner=owner, epoch=1, target=8, expires_at_ms=0, released=released)
    jobs = {name.replace("__", "/"): result for name, result in results.items()}
    return ControlState(lease=lease, journal=Journal(plan=PLAN, phase=phase), results=jobs)


def progress(*lags: int) -> list[PartitionProgress]:
    return [
        PartitionProgress(topic=MOVE.source, partition=p, position=100 - g, end=100) for p, g in enumerate(lags)
    ]


def result(job: str, state: str, lags: tuple[int, ...] = (), run: str = OWNER) -> JobResult:
    return JobResult(job=job, run=run, attempt=1, state=state, partitions=tuple(progress(*lags)))


@pytest.fixture
def reading(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Read the gate with a given control state and given lags, instead of those of a cluster."""

    def read(state: ControlState, lags: list[PartitionProgress], gate: Gate = GATE) -> Reading:
        class Control:
            def __init__(self, *_: object) -> None: ...

            def read(self) -> ControlState:
                return state

        monkeypatch.setattr("kafka_rescale.kafka.control.control_topic.ControlTopic", Control)
        monkeypatch.setattr("kafka_rescale.operations.expansion.stages.lags", lambda *_: lags)
        return look(None, gate)  # type: ignore[arg-type]

    return read


def test_it_opens_when_every_partition_is_within_the_threshold(reading: Any) -> None:
    assert reading(state_of(), progress(10, 0, 3, 10)).reason is GateReason.OPEN


def test_it_holds_while_one_partition_of_many_lags(reading: Any) -> None:
    found = reading(state_of(), progress(0, 0, 11, 0))
    assert found.reason is GateReason.HOLDING
    assert [(each.partition, each.lag) for each in found.decision.holding] == [(2, 11)]


def test_it_holds_while_the_copy_is_paused_and_says_by_whom(reading: Any) -> None:
    paused = Pace(plan=PLAN.fingerprint, paused=Instruction(by="ada", at_ms=1_795_608_000_000, reason="sale"))
    found = reading(state_of().model_copy(update={"pace": paused}), progress(0, 0, 0, 0))
    assert found.reason is GateReason.PAUSED
    assert not found.reason.passes
    assert not found.reason.is_final
    assert str(found) == "paused the copy is paused by ada since Wed 25 Nov 2026 12:00 UTC (sale)"
    of_another = paused.model_copy(update={"plan": "another"})
    assert reading(state_of().model_copy(update={"pace": of_another}), progress(0, 0, 0, 0)).reason.passes


def test_it_holds_while_the_copy_rests_for_a_disk_and_says_which(reading: Any) -> None:
    rest = DiskRest(broker=3, path="/d", usable=1, copied=90, percent=10, enough=11, since_ms=1_795_608_000_000)
    rate = Rate(run=OWNER, attempt=1, at_ms=now_ms(), disk=rest, is_paused=True)
    resting = state_of(catch_up=result("catch_up", "running")).model_copy(update={"rates": {"catch_up": rate}})
    found = reading(resting, progress(0, 0, 0, 0))
    assert found.reason is GateReason.PAUSED
    assert "the copy is at rest since Wed 25 Nov 2026 12:00 UTC: log dir '/d' of broker 3 is too full." in str(
        found
    )
    assert "Free space there" in str(found)
    dead = rate.model_copy(update={"at_ms": now_ms() - FRESH_MS})
    silent = resting.model_copy(update={"rates": {"catch_up": dead}})
    assert reading(silent, progress(0, 0, 0, 0)).reason.passes, "no timeout would ever end its wait"


def test_it_holds_while_a_partition_is_not_reported(reading: Any) -> None:
    assert reading(state_of(), progress(0, 0, 0)).reason is GateReason.HOLDING


@pytest.mark.parametrize(
    "state",
    [
        state_of(owner="expand_x/run-2"),
        state_of(released=True),
        state_of(Phase.ROLLING_BACK),
        state_of(Phase.ROLLED_BACK),
        ControlState(),
    ],
    ids=["another run's", "released", "rolling back", "rolled back", "nothing"],
)
def test_a_run_that_lost_the_expansion_stops_waiting(reading: Any, state: ControlState) -> None:
    found = reading(state, progress(0, 0, 0, 0))
    assert found.reason is GateReason.LEASE_LOST
    assert found.reason.is_final
    assert not found.reason.passes


@pytest.mark.parametrize("phase", [Phase.QUIESCING, Phase.CAUGHT_UP, Phase.PROMOTED, Phase.COMPLETE])
def test_a_run_that_continues_past_the_gate_goes_on(reading: Any, phase: Phase) -> None:
    found = reading(state_of(phase), [])
    assert found.reason is GateReason.PAST
    assert found.reason.passes


def test_the_gate_over_all_stages_waits_for_catch_up_of_this_run_to_be_ready(reading: Any) -> None:
    gate = replace(GATE, ready_job="catch_up")
    near = progress(0, 0, 0, 0)
    assert reading(state_of(), near, gate).reason is GateReason.JOB_NOT_READY
    running = state_of(catch_up=result("catch_up", "running"))
    assert reading(running, near, gate).reason is GateReason.JOB_NOT_READY
    other = state_of(catch_up=result("catch_up", "ready", run="expand_x/run-0"))
    assert reading(other, near, gate).reason is GateReason.JOB_NOT_READY
    ready = state_of(catch_up=result("catch_up", "ready"))
    assert reading(ready, near, gate).reason is GateReason.OPEN
    assert reading(ready, progress(0, 0, 0, 11), gate).reason is GateReason.HOLDING


def reported(job: str, state: str, ago_ms: int) -> JobResult:
    """A job whose last two reports are so old."""
    lags = LagHistory()
    for at_ms in (now_ms() - ago_ms - 60_000, now_ms() - ago_ms):
        lags = lags.observed(progress(0, 0, 0, 0), at_ms, 10)
    return result(job, state).model_copy(update={"lags": lags})


def test_a_job_that_reports_no_more_is_not_ready_and_is_named(reading: Any) -> None:
    """Its driver has died and has left that it is ready. The cutover behind the gate would refuse it."""
    gate, near = replace(GATE, ready_job="catch_up"), progress(0, 0, 0, 0)
    assert reading(state_of(catch_up=reported("catch_up", "ready", 60_000)), near, gate).reason is GateReason.OPEN
    dead = state_of(catch_up=reported("catch_up", "ready", SILENT_MS + 1))
    assert str(reading(dead, near, gate)) == "job_not_ready catch_up is not at work; look at its task"
    copying = state_of(warm_up__1=reported("warm_up/1", "running", SILENT_MS + 1))
    found = reading(copying, progress(0, 0, 0, 11), replace(GATE, stage=1, warmed_by="warm_up/1"))
    assert (found.reason, found.detail) == (GateReason.HOLDING, "warm_up/1 is not at work; look at its task")


def test_the_last_stage_waits_for_a_bridge_that_is_up(reading: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bridge has its own run. Without a bridge in the plan, the gate waits for none."""
    gate, near = replace(GATE, stage=1, warmed_by="warm_up/1", ready_job="bridge"), progress(0, 0, 0, 0)
    assert reading(state_of(), near, gate).reason is GateReason.OPEN
    bridged = PLAN.model_copy(update={"stages": (PLAN.stages[0].model_copy(update={"bridges": (MOVE,)}),)})

    def found(lags: list[PartitionProgress], state: str = "", age_ms: int = 0) -> Reading:
        job = result("bridge", state, run="bridge_x/run-7").model_copy(update={"as_of_ms": now_ms() - age_ms})
        warmed = {"warm_up__1": result("warm_up/1", "done", (0, 0, 0, 0))}
        known = state_of(**warmed, **({"bridge": job} if state else {}))
        return reading(known.model_copy(update={"journal": Journal(plan=bridged)}), lags, gate)

    assert found(near).reason is GateReason.JOB_NOT_READY
    assert str(found(near)) == "job_not_ready bridge is not started; see that bridge_x is not paused"
    assert found(near, "running").reason is GateReason.JOB_NOT_READY
    assert found(near, "ready", age_ms=HEARTBEAT_MS).reason is GateReason.JOB_NOT_READY, "it may be dead"
    assert found(near, "ready").reason is GateReason.OPEN
    far = progress(500, 500, 500, 500)
    assert found(far).reason is GateReason.JOB_NOT_READY
    assert found(far, "ready").reason is GateReason.WARMED


def test_a_stage_that_warm_up_left_near_passes_although_its_source_moves_on(reading: Any) -> None:
    gate = replace(GATE, stage=1, warmed_by="warm_up/1")
    far = progress(500, 500, 500, 500)
    near = state_of(warm_up__1=result("warm_up/1", "done", (0, 0, 0, 10)))
    assert reading(near, far, gate).reason is GateReason.WARMED
    not_near = state_of(warm_up__1=result("warm_up/1", "done", (0, 0, 0, 11)))
    assert reading(not_near, far, gate).reason is GateReason.HOLDING
    incomplete = state_of(warm_up__1=result("warm_up/1", "done", (0, 0, 0)))
    assert reading(incomplete, far, gate).reason is GateReason.HOLDING


OPEN, HOLDING = Reading(GateReason.OPEN), Reading(GateReason.HOLDING)


def fire(monkeypatch: pytest.MonkeyPatch, answers: list[Reading | Exception]) -> tuple[dict[str, Any], int]:
    """Run a trigger over these readings, and return its event and the number of readings it took."""
    left: Iterator[Reading | Exception] = iter(answers)
    taken = []

    def next_reading(*_: object) -> Reading:
        answer = next(left)
        taken.append(answer)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def connection(_: object) -> None: ...

    monkeypatch.setattr(gate_module, "look", next_reading)
    monkeypatch.setattr(trigger_module.KafkaRescaleHook, "aconnection", connection)
    trigger = LagGateTrigger(kafka_config_id="k", gate=asdict(GATE), consecutive=3, poll_seconds=0)

    async def first() -> dict[str, Any]:
        return (await anext(aiter(trigger.run()))).payload

    return asyncio.run(first()), len(taken)


def test_several_readings_in_a_row_must_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    event, taken = fire(monkeypatch, [OPEN, OPEN, HOLDING, OPEN, OPEN, OPEN])
    assert (event["reason"], taken) == ("open", 6)


def test_an_outage_starts_the_count_again_and_does_not_end_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    outage = Outage("broker", found="silence", expected="an answer", remedy="wait")
    event, taken = fire(monkeypatch, [OPEN, OPEN, outage, OPEN, OPEN, OPEN])
    assert (event["reason"], taken) == ("open", 6)


def test_a_final_answer_is_not_waited_upon(monkeypatch: pytest.MonkeyPatch) -> None:
    event, taken = fire(monkeypatch, [OPEN, Reading(GateReason.LEASE_LOST, detail="rolled back")])
    assert (event["reason"], event["detail"], taken) == ("lease_lost", "rolled back", 2)


def test_what_waiting_cannot_mend_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    error = InvalidInput("connection", found="a wrong password", expected="another", remedy="mend it")
    event, _ = fire(monkeypatch, [error])
    assert event["reason"] == "refused"
    assert "a wrong password" in event["detail"]


def test_the_stored_trigger_is_rebuilt_from_its_arguments_and_holds_no_secret() -> None:
    words = {"kafka_config_id", "gate", "consecutive", "poll_seconds"}
    for more in ({"until": 1.5}, {"left_seconds": 2.5}):
        trigger = LagGateTrigger(kafka_config_id="k", gate=asdict(GATE), consecutive=2, poll_seconds=1, **more)
        path, arguments = trigger.serialize()
        assert path == "kafka_rescale.airflow.triggers.lag_gate.LagGateTrigger"
        assert LagGateTrigger(**arguments).serialize() == (path, arguments)
        assert set(arguments) == {*words, "until", "left_seconds"}
        assert arguments.items() >= more.items()


class FakeTask:
    """Receives what a task pushes."""

    def __init__(self) -> None:
        self.pushed: dict[str, Any] = {}

    def xcom_push(self, key: str, value: Any) -> None:
        self.pushed[key] = value


def sensor(**arguments: Any) -> LagGateSensor:
    return LagGateSensor(task_id="gate", application_id="x", kafka_config_id="k", acceptable_lag=10, **arguments)


def test_the_sensor_hands_the_numbers_on_for_the_approval() -> None:
    event = Reading(GateReason.OPEN, gate_module.decide(progress(3, 0), 10)).event()
    task = FakeTask()
    assert sensor().execute_complete({"ti": task}, event) == event  # type: ignore[typeddict-item]
    assert event["lags"] == [[MOVE.source, 0, 3], [MOVE.source, 1, 0]]


@pytest.mark.parametrize(
    ("lags", "told"),
    [
        ([0] * 60, "All 60 partitions are within 10 offsets of the end; the largest lag is 0."),
        ([0] * 59 + [7], "All 60 partitions are within 10 offsets of the end; the largest lag is 7."),
        ([11] * 2 + [0] * 998, "2 of 1000 partitions are not within 10 offsets of the end."),
    ],
)
def test_however_many_partitions_there_are_a_verdict_and_five_of_them_are_told(lags: list[int], told: str) -> None:
    event = Reading(GateReason.OPEN, gate_module.decide(progress(*lags), 10)).event()
    assert lag_verdict(event) == f"**{told}**"
    _, _, *rows = lag_table(event).partition("\n\n")[0].splitlines()
    assert len(rows) == 5
    worst = max(range(len(lags)), key=lambda partition: lags[partition])
    assert rows[0] == f"| {lags[worst]} | {MOVE.source}-{worst} |"
    assert f"other {len(lags) - 5}" in lag_table(event)


def test_the_sensor_fails_when_the_gate_will_never_open() -> None:
    event = Reading(GateReason.LEASE_LOST, detail="the expansion was rolled back").event()
    with pytest.raises(UnsafeState, match="rolled back"):
        sensor().execute_complete({"ti": FakeTask()}, event)  # type: ignore[typeddict-item]


RUN: Any = {"dag_run": SimpleNamespace(dag_id="expand_x", run_id="run-1"), "ti": FakeTask()}
JOB_NOT_READY = Reading(GateReason.JOB_NOT_READY)
OUTAGE = Outage("broker", found="silence", expected="an answer", remedy="wait")


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[Reading | Exception]:
    """The answers for a worker's looks. Each look takes one of them away."""
    answers: list[Reading | Exception] = []

    def look(*_: object) -> Reading:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(gate_module, "look", look)
    monkeypatch.setattr(sensor_module.KafkaRescaleHook, "connection", lambda _: None)
    monkeypatch.setattr(sensor_module, "SETTLING_SECONDS", 0)
    return answers


@pytest.mark.parametrize(
    "answers",
    [[OPEN] * 3, [Reading(GateReason.WARMED)], [Reading(GateReason.PAST)]],
    ids=["open and stays so", "warmed", "past"],
)
def test_a_gate_that_is_open_is_passed_without_the_triggerer(looks: list[Any], answers: list[Reading]) -> None:
    looks += answers
    found = sensor().execute(RUN)
    assert found is not None
    assert (found["reason"], looks) == (answers[0].reason.value, [])


def test_a_gate_of_a_stage_is_passed_after_one_look(looks: list[Any]) -> None:
    looks += [OPEN]
    assert sensor(consecutive=1).execute(RUN) is not None


def test_a_stage_with_nothing_to_copy_is_passed_without_a_look(looks: list[Any]) -> None:
    looks += [AssertionError("it has looked")]
    assert sensor(idle=True).execute(RUN) is None


def test_a_run_that_lost_its_expansion_fails_without_the_triggerer(looks: list[Any]) -> None:
    looks += [Reading(GateReason.LEASE_LOST, detail="the expansion was rolled back")]
    with pytest.raises(UnsafeState, match="rolled back"):
        sensor().execute(RUN)


@pytest.mark.parametrize(
    "answers",
    [[HOLDING], [JOB_NOT_READY], [OPEN, OPEN, HOLDING], [OUTAGE]],
    ids=["holds", "no job", "closes", "outage"],
)
def test_the_sensor_defers_a_gate_that_is_not_open_with_a_timeout_of_its_own(
    looks: list[Any], answers: list[Reading | Exception]
) -> None:
    looks += answers
    with pytest.raises(TaskDeferred) as deferred:
        sensor().execute(RUN)
    assert looks == []
    assert deferred.value.timeout is not None
    assert deferred.value.trigger.serialize()[1]["gate"]["owner"] == OWNER
