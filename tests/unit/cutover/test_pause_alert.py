"""The deadline of a pause: when the pause is over or late. Neither a hanging task nor an outage silences it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from threading import Event
from typing import Any

import pytest
from kafka_rescale.airflow.hooks.rescale import ConnectionMissing
from kafka_rescale.airflow.sensors.pause_alert import PauseAlertSensor
from kafka_rescale.airflow.triggers import pause_alert as trigger_module
from kafka_rescale.airflow.triggers.pause_alert import PauseAlertTrigger
from kafka_rescale.core.cluster import GroupDescription
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.lease import Lease
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import InvalidInput, Outage, Refused, RescaleError
from kafka_rescale.core.expansion.downtime import downtime
from kafka_rescale.core.expansion.pause_alert import PauseReading, PauseState, read_pause
from kafka_rescale.core.page.health import State, health_of

from tests.support.plans import plan_for

OWNER, NOW, LIMIT = "expand_x/r", 1_000_000_000, 60.0

Look = ControlState | Exception | Callable[[], ControlState]


def state_of(phase: Phase, began_ago: float = 0.0, *, owner: str = OWNER, **changes: Any) -> ControlState:
    """The expansion of a run. Its pause began so many seconds ago (0: no pause)."""
    started = NOW - round(began_ago * 1000) if began_ago else 0
    lease = Lease(owner=owner, epoch=1, target=8, expires_at_ms=0)
    journal = Journal(plan=plan_for("x"), phase=phase, pause_started_ms=started, **changes)
    return ControlState(lease=lease, journal=journal)


def read(state: ControlState) -> PauseState:
    return read_pause(state, OWNER, LIMIT, NOW).state


PAUSED = [Phase.QUIESCING, Phase.QUIESCED, Phase.CAUGHT_UP, Phase.PROMOTED]


@pytest.mark.parametrize("phase", PAUSED)
def test_it_is_late_once_the_pause_is_longer_than_declared_in_whatever_phase(phase: Phase) -> None:
    assert read(state_of(phase, 60.0)) is PauseState.PAUSED
    assert read(state_of(phase, 60.1)) is PauseState.LATE
    assert read_pause(state_of(phase, 75.0), OWNER, LIMIT, NOW).seconds == 75.0


def test_copying_is_no_pause_however_long_it_takes() -> None:
    assert read(state_of(Phase.WARMING)) is PauseState.WAITING


@pytest.mark.parametrize("phase", [Phase.STARTED, Phase.VERIFIED, Phase.COMPLETE, Phase.ROLLED_BACK])
def test_it_is_over_when_somebody_runs_again(phase: Phase) -> None:
    assert read(state_of(phase, 3600.0)) is PauseState.OVER


def test_it_is_over_when_green_works_although_the_cutover_looks_on() -> None:
    measured = state_of(Phase.PROMOTED, 3600.0, timings={"start": 1.0, "total": 7.0})
    assert read(measured) is PauseState.OVER
    assert downtime(measured.journal).since_ms is None
    assert downtime(state_of(Phase.PROMOTED, 3600.0, timings={"start": 1.0}).journal).since_ms is not None
    group = GroupDescription("x-g2", "Stable", ("instance-1",))
    assert health_of(measured, group).state is State.RESCALING


def test_a_rollback_is_part_of_the_pause_if_anything_was_stopped() -> None:
    assert read(state_of(Phase.ROLLING_BACK, 61.0, stop_asked=True)) is PauseState.LATE
    assert read(state_of(Phase.ROLLING_BACK, 61.0)) is PauseState.WAITING


def test_another_run_that_takes_over_is_watched_by_itself_unless_nobody_runs() -> None:
    assert read(state_of(Phase.WARMING, owner="expand_x/other")) is PauseState.LOST
    assert read(state_of(Phase.QUIESCED, 61.0, owner="rollback_x/other")) is PauseState.LATE
    assert read(ControlState()) is PauseState.LOST


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run the trigger over these states of the control topic, one for each reading. An exception is no answer."""
    monkeypatch.setattr(trigger_module, "ANSWER_SECONDS", 60.0)

    def run(looks: list[Look]) -> tuple[dict[str, Any], list[float]]:
        answers: Iterator[Look] = iter(looks)
        reported: list[float] = []

        def answer(*_: object) -> ControlState:
            found = next(answers)
            if isinstance(found, Exception):
                raise found
            return found() if callable(found) else found

        async def connected(_: object) -> None:
            return None

        monkeypatch.setattr(trigger_module, "_read", answer)
        monkeypatch.setattr(trigger_module.KafkaRescaleHook, "aconnection", connected)
        monkeypatch.setattr(trigger_module, "report_pause_so_far", lambda _, seconds: reported.append(seconds))
        monkeypatch.setattr("kafka_rescale.kafka.client.waiting.now_ms", lambda: NOW)
        trigger = PauseAlertTrigger(
            kafka_config_id="k", application_id="x", owner=OWNER, limit_seconds=LIMIT, poll_seconds=0
        )

        async def first() -> dict[str, Any]:
            async for event in trigger.run():
                return dict(event.payload)
            raise AssertionError("no event")

        return asyncio.run(first()), reported

    return run


def test_a_cutover_that_hangs_is_told_of(watched: Any) -> None:
    """The control topic does not change any more. Only the clock makes the pause late."""
    stopped = state_of(Phase.QUIESCING, 61.0)
    event, reported = watched([state_of(Phase.WARMING), state_of(Phase.QUIESCING, 59.0), stopped])
    assert event == {"late": True, "seconds": 61.0, "phase": "quiescing"}
    assert reported == [0, 59.0, 61.0]


def test_a_pause_that_ends_in_time_is_not(watched: Any) -> None:
    event, _ = watched([state_of(Phase.QUIESCING, 5.0), state_of(Phase.STARTED, 9.0)])
    assert event == {"late": False, "seconds": 0.0, "phase": "started"}


def test_brokers_that_do_not_answer_make_no_pause_shorter(watched: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    outage = Outage("broker", found="no answer", expected="one", remedy="Wait.")
    clock = iter([NOW, NOW + 2_000])

    def run() -> dict[str, Any]:
        event, _ = watched([state_of(Phase.QUIESCED, 59.0), outage])
        return dict(event)

    monkeypatch.setattr(trigger_module, "read_pause", lambda s, o, m, _: read_pause(s, o, m, next(clock)))
    assert run() == {"late": True, "seconds": 61.0, "phase": "quiesced"}


def test_the_clock_judges_also_while_a_reading_has_no_answer(
    watched: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reading gives up after half a minute if brokers are away."""
    asked, told = Event(), Event()

    def no_answer() -> ControlState:
        asked.set()
        told.wait(20)
        return state_of(Phase.STARTED, 61.0)

    def by_the_clock(state: ControlState, owner: str, limit: float, _: int) -> PauseReading:
        return read_pause(state, owner, limit, NOW + 2_000 * asked.is_set())

    monkeypatch.setattr(trigger_module, "ANSWER_SECONDS", 0.01)
    monkeypatch.setattr(trigger_module, "read_pause", by_the_clock)
    event, _ = watched([state_of(Phase.QUIESCED, 59.0), no_answer])
    told.set()
    assert event == {"late": True, "seconds": 61.0, "phase": "quiesced"}


def test_an_answer_that_comes_late_counts_and_is_asked_for_once(
    watched: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged, judged_often, asked = [], Event(), []

    def late_answer() -> ControlState:
        asked.append("once")
        assert judged_often.wait(20)
        return state_of(Phase.STARTED, 9.0)

    def asked_again() -> ControlState:
        asked.append("again")
        return state_of(Phase.STARTED, 9.0)

    def counted(state: ControlState, owner: str, limit: float, now_ms: int) -> PauseReading:
        judged.append(state)
        if len(judged) > 5:
            judged_often.set()
        return read_pause(state, owner, limit, now_ms)

    monkeypatch.setattr(trigger_module, "ANSWER_SECONDS", 0.01)
    monkeypatch.setattr(trigger_module, "read_pause", counted)
    event, _ = watched([state_of(Phase.QUIESCING, 5.0), late_answer, asked_again])
    assert event == {"late": False, "seconds": 0.0, "phase": "started"}
    assert asked == ["once"]


def test_an_outage_before_the_first_answer_is_waited_out(watched: Any) -> None:
    event, _ = watched([OSError("no route"), state_of(Phase.COMPLETE, 9.0)])
    assert event["late"] is False


@pytest.mark.parametrize("kind", [ConnectionMissing, InvalidInput, Refused])
@pytest.mark.parametrize("before", [[], [state_of(Phase.WARMING)]], ids=["never read", "no pause yet"])
def test_what_waiting_cannot_mend_ends_the_watch(
    watched: Any, kind: type[RescaleError], before: list[Look]
) -> None:
    """Otherwise the watch would keep its run from ending, because it has no timeout."""
    gone = kind("connection", found="no such connection", expected="one", remedy="Add it.")
    event, _ = watched([*before, *[gone] * trigger_module.LOOKS_IN_VAIN])
    assert event == {"late": False, "seconds": 0.0, "phase": ""}


@pytest.mark.parametrize("between", [OSError("no route"), state_of(Phase.WARMING)], ids=["an outage", "an answer"])
def test_a_connection_that_is_gone_for_a_moment_does_not(watched: Any, between: object) -> None:
    """Airflow also says so while its API server restarts."""
    gone = InvalidInput("connection", found="no such connection", expected="one", remedy="Add it.")
    almost = [gone] * (trigger_module.LOOKS_IN_VAIN - 1)
    event, _ = watched([*almost, between, *almost, state_of(Phase.QUIESCING, 61.0)])
    assert event == {"late": True, "seconds": 61.0, "phase": "quiescing"}


def test_a_connection_that_goes_within_the_pause_keeps_nobody_from_being_told(
    watched: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = InvalidInput("connection", found="no such connection", expected="one", remedy="Add it.")
    clock = iter([NOW, NOW, NOW + 2_000])
    monkeypatch.setattr(trigger_module, "read_pause", lambda s, o, m, _: read_pause(s, o, m, next(clock)))
    event, _ = watched([state_of(Phase.QUIESCED, 59.0), gone, gone])
    assert event == {"late": True, "seconds": 61.0, "phase": "quiesced"}


def test_records_that_are_lost_within_the_pause_keep_nobody_from_being_told(
    watched: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The application stays stopped, and its cutover can't go on: the control topic is gone, or was made anew."""
    clock = iter([NOW, NOW, NOW + 2_000])
    monkeypatch.setattr(trigger_module, "read_pause", lambda s, o, m, _: read_pause(s, o, m, next(clock)))
    event, _ = watched([state_of(Phase.QUIESCED, 59.0), ControlState(), ControlState()])
    assert event == {"late": True, "seconds": 61.0, "phase": "quiesced"}


def test_records_that_are_lost_before_the_pause_or_replaced_end_the_watch(watched: Any) -> None:
    event, _ = watched([state_of(Phase.WARMING), ControlState()])
    assert event == {"late": False, "seconds": 0.0, "phase": ""}
    event, _ = watched([state_of(Phase.QUIESCED, 5.0), ControlState(), state_of(Phase.WARMING, owner="another")])
    assert event == {"late": False, "seconds": 0.0, "phase": "warming"}


def test_the_trigger_is_made_again_from_what_is_stored_of_it() -> None:
    trigger = PauseAlertTrigger(kafka_config_id="k", application_id="x", owner=OWNER, limit_seconds=60)
    path, arguments = trigger.serialize()
    assert path == "kafka_rescale.airflow.triggers.pause_alert.PauseAlertTrigger"
    assert PauseAlertTrigger(**arguments).serialize() == (path, arguments)


@pytest.mark.parametrize("late", [True, False])
def test_the_task_succeeds_either_way(late: bool) -> None:
    """The task is a leaf of the run, and must not decide the run's success."""
    task = PauseAlertSensor(task_id="t", application_id="x", kafka_config_id="k", limit_seconds=60)
    event = {"late": late, "seconds": 61.0, "phase": "quiescing"}
    assert task.execute_complete({}, event) == event  # type: ignore[typeddict-item]
