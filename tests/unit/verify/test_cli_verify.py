"""The report that the command line shows: that of this job, or that with which an expansion ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.cli import spark as command
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import Outage, Refused
from kafka_rescale.core.verify.report import Report

from testbed.processes import wait_until
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


SECRET = "s3cret-of-verify"
SETTINGS = {"bootstrap.servers": "a:9092", "sasl.username": "verify", "sasl.password": SECRET}
ROOT = Path(__file__).resolve().parents[3]
SPARK_SUBMIT = """#!/bin/bash
printf '%s' "$KAFKA_RESCALE_KAFKA_CONFIG" > {directory}/settings
printf '%s' "$KAFKA_RESCALE_KAFKA_CONFIG_FILE" > {directory}/file
echo $$ > {directory}/new && mv {directory}/new {directory}/pid
exec -a "$*" sleep 60
"""
# A process that was started by nohup ignores SIGHUP, and so do its children.
COMMAND = """
import signal
import sys
from types import SimpleNamespace
from kafka_rescale.cli import spark
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.kafka.client.connection import KafkaConnection
from tests.support.situations import situation
from tests.support.small_application import application

state = ControlState(journal=Journal(plan=situation().plan, phase=Phase.STARTED))
spark.ControlTopic = lambda *_: SimpleNamespace(read=lambda: state)
sys.executable = {python!r}
signal.signal(signal.SIGHUP, signal.SIG_DFL)
spark.run_verify(application("shop"), KafkaConnection({settings!r}), "local[1]")
"""


@pytest.mark.parametrize("ended", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_no_settings_behind(tmp_path: Path, ended: signal.Signals) -> None:
    written, program = tmp_path / "tmp", tmp_path / "spark-submit"
    written.mkdir()
    program.write_text(SPARK_SUBMIT.format(directory=tmp_path))
    program.chmod(0o755)
    script = COMMAND.format(python=str(tmp_path / "python"), settings=SETTINGS)
    process = subprocess.Popen(
        [sys.executable, "-"],
        stdin=subprocess.PIPE,
        env={
            **os.environ,
            "PYTHONPATH": f"{ROOT / 'plugins'}{os.pathsep}{ROOT}",
            "TMPDIR": str(written),
            "KAFKA_RESCALE_KAFKA_CONFIG_FILE": "/inherited.json",
        },
        text=True,
    )
    assert process.stdin is not None
    process.stdin.write(script)
    process.stdin.close()
    wait_until((tmp_path / "pid").exists, timeout=120, what="spark-submit")
    driver = int((tmp_path / "pid").read_text())
    try:
        for each in (process.pid, driver):
            assert SECRET not in Path(f"/proc/{each}/cmdline").read_text()
        process.send_signal(ended)
        assert process.wait(60) == -ended
    finally:
        os.kill(driver, signal.SIGKILL)
    assert (json.loads((tmp_path / "settings").read_text() or "{}"), (tmp_path / "file").read_text()) == (
        SETTINGS,
        "",
    )
    files = [file for file in written.rglob("*") if file.is_file()]
    assert [file for file in files if SECRET.encode() in file.read_bytes() or file.name == "kafka.json"] == []
