"""A gate records its readings now and then, and at each change of its answer.

A failed record never fails the gate.
"""

from __future__ import annotations

from typing import Any

import pytest
from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.progress import PartitionProgress
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import Fenced, Outage, RescaleError
from kafka_rescale.kafka.control import lag_gate_record as gate_record
from kafka_rescale.kafka.control.lag_gate_record import WRITE_MS, GateRecord

RUN = "expand_x/run-1"


class Control:
    """Keeps results. If it is ``broken``, every call fails."""

    broken = False
    error: RescaleError = Outage("broker", found="silence", expected="an answer", remedy="wait")

    def __init__(self, *_: object) -> None:
        self.state = ControlState()
        self.written: list[JobResult] = []

    def read(self) -> ControlState:
        self._fail()
        return self.state

    def put_result(self, result: JobResult) -> None:
        self._fail()
        self.written.append(result)

    def _fail(self) -> None:
        if self.broken:
            raise self.error


@pytest.fixture
def control(monkeypatch: pytest.MonkeyPatch) -> Control:
    made = Control()
    monkeypatch.setattr(gate_record, "ControlTopic", lambda *_: made)
    return made


def record(times_ms: list[int], run: str = RUN) -> GateRecord:
    left = iter(times_ms)
    return GateRecord(None, "x", "gate_all", run, clock=lambda: next(left))  # type: ignore[arg-type]


def lags(*found: int) -> list[PartitionProgress]:
    return [PartitionProgress(topic="t", partition=p, position=100 - lag, end=100) for p, lag in enumerate(found)]


def test_readings_are_written_now_and_then_and_none_of_them_is_lost(control: Control) -> None:
    gate = record([WRITE_MS * i // 2 for i in range(2, 7)])
    for lag in (9, 8, 7, 6, 5):
        gate.add(lags(lag, 0), 3, "holding")
    assert [len(r.lags.samples) for r in control.written] == [1, 3, 5]
    assert [s.worst for s in control.written[-1].lags.samples] == [(9, 0), (8, 0), (7, 0), (6, 0), (5, 0)]
    assert (control.written[-1].job, control.written[-1].lags.threshold) == ("gate_all", 3)


def test_another_answer_is_written_at_once(control: Control) -> None:
    gate = record([10_000, 10_001])
    gate.add(lags(9), 3, "holding")
    gate.add(lags(1), 3, "open")
    assert [r.state for r in control.written] == ["holding", "open"]


def test_a_gate_that_is_watched_by_another_triggerer_goes_on_with_its_history(control: Control) -> None:
    record([10_000]).add(lags(9), 3, "holding")
    control.state = ControlState(results={"gate_all": control.written[-1]})
    record([20_000]).add(lags(5), 3, "holding")
    assert len(control.written[-1].lags.samples) == 2
    record([30_000], run="expand_x/run-2").add(lags(5), 3, "holding")
    assert len(control.written[-1].lags.samples) == 1


def test_an_outage_costs_one_record_and_harms_nobody(control: Control, caplog: Any) -> None:
    gate = record([10_000, 11_000, 12_000, 13_000, 14_000])
    gate.add(lags(9), 3, "holding")
    control.broken = True
    gate.add(lags(1), 3, "open")
    control.broken = False
    gate.add(lags(1), 3, "open")
    gate.add(lags(0), 3, "open")
    assert [r.state for r in control.written] == ["holding", "open"], "or the page would show it as holding"
    assert [s.worst for s in control.written[-1].lags.samples] == [(9,), (1,), (1,)]
    assert "silence" in caplog.text


def test_an_outage_at_its_first_reading_does_so_too(control: Control) -> None:
    gate = record([10_000, 20_000])
    control.broken = True
    gate.add(lags(9), 3, "holding")
    control.broken = False
    gate.add(lags(9), 3, "holding")
    assert [r.state for r in control.written] == ["holding"]


def test_a_record_that_waiting_cannot_mend_is_given_up_and_harms_nobody(control: Control, caplog: Any) -> None:
    gate = record([10_000, 20_000])
    control.broken, control.error = True, Fenced("job", found="a newer attempt", expected="none", remedy="none")
    gate.add(lags(9), 3, "holding")
    control.broken = False
    gate.add(lags(9), 3, "holding")
    assert control.written == []
    assert "not recorded any more" in caplog.text
