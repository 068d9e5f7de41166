"""The report that the command line shows: that of this job, or that with which an expansion ended."""

from __future__ import annotations

import subprocess
from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.cli import spark as command
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import Outage, Refused
from kafka_rescale.core.verify.report import Report

from tests.support.situations import situation
from tests.support.small_application import application

PLAN, BEGAN_MS = situation().plan, 1_000


def answered(monkeypatch: pytest.MonkeyPatch, phase: Phase, report: dict[str, object], code: int = 0) -> Report:
    """Run the command with an ended job and the control topic at that time."""
    state = ControlState(journal=Journal(plan=PLAN, phase=phase), report=report)
    monkeypatch.setattr(command, "ControlTopic", lambda *_: SimpleNamespace(read=lambda: state))
    monkeypatch.setattr(command, "now_ms", lambda: BEGAN_MS)
    monkeypatch.setattr(command, "_command", lambda *_: ["spark-submit"])
    done = subprocess.CompletedProcess([], code, "", "verify could not run")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)
    connection: Any = SimpleNamespace(config={})
    return command.run_verify(application("shop"), connection, "local[1]")


def report_of(as_of_ms: int, promotion: str = Journal(plan=PLAN).promotion) -> dict[str, object]:
    return Report(
        application="shop",
        blue=PLAN.blue,
        green=PLAN.green,
        generation=2,
        plan=PLAN.fingerprint,
        promotion=promotion,
        passed=True,
        as_of_ms=as_of_ms,
        seconds=1.0,
        start_offsets=(),
        stores=(),
    ).model_dump(mode="json")


@pytest.mark.parametrize(
    ("phase", "as_of_ms"), [(Phase.STARTED, BEGAN_MS), (Phase.VERIFIED, 1), (Phase.COMPLETE, 1)]
)
def test_it_is_an_answer(phase: Phase, as_of_ms: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert answered(monkeypatch, phase, report_of(as_of_ms)).as_of_ms == as_of_ms


@pytest.mark.parametrize(
    ("phase", "report", "code"),
    [
        (Phase.STARTED, report_of(BEGAN_MS - 1), 1),
        (Phase.COMPLETE, report_of(BEGAN_MS, "another promotion's"), 0),
        (Phase.STARTED, {}, 0),
        (Phase.COMPLETE, report_of(BEGAN_MS), 2),
    ],
    ids=["one of before", "of another promotion", "none", "the job has failed"],
)
def test_it_is_none(phase: Phase, report: dict[str, object], code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Outage, match=f"found exit code {code}: verify could not run"):
        answered(monkeypatch, phase, report, code)


@pytest.mark.parametrize("phase", [p for p in Phase if p not in {Phase.STARTED, Phase.VERIFIED, Phase.COMPLETE}])
def test_before_the_cutover_has_started_green_there_is_nothing_to_verify(
    phase: Phase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in ``promoted``: green's start may have failed, and then nothing has processed the inputs since."""
    with pytest.raises(Refused, match=f"phase {phase}; expected an expansion whose cutover has started"):
        answered(monkeypatch, phase, report_of(BEGAN_MS))
