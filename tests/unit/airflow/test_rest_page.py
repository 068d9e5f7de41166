"""Every command of ``docs/rest.md`` is run by the system tests, as it stands there."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from kafka_rescale.airflow.dags.params import approval_params
from kafka_rescale.airflow.operators.approval import CutoverApprovalOperator
from kafka_rescale.core.control.switch import Order
from kafka_rescale.core.expansion.switch_words import approved

from tests.support.airflow import rest_page
from tests.support.small_application import application

SYSTEM_TEST = Path(__file__).resolve().parents[2] / "system" / "test_airflow_standalone.py"


def test_a_system_test_runs_the_commands_of_every_heading() -> None:
    used = set(re.findall(r'_as_on_the_page\("([^"]+)"', SYSTEM_TEST.read_text()))
    used |= set(re.findall(r'run_as_on_the_page\("([^"]+)"', Path(rest_page.__file__).read_text()))
    assert {heading for heading, commands in rest_page.rest_commands().items() if commands} == {"Log in", *used}


def test_commands_that_fail_show_what_they_print(monkeypatch: pytest.MonkeyPatch) -> None:
    commands = {
        "Log in": "api() { echo answered; false; }\n",
        "Trigger": "api expand_order-totals\necho not reached\n",
    }
    monkeypatch.setattr(rest_page, "rest_commands", lambda: commands)
    with pytest.raises(AssertionError, match="answered") as failed:
        rest_page.run_as_on_the_page("Trigger", "http://localhost:1", "expand_shop")
    assert "not reached" not in str(failed.value)


def test_commands_get_the_names_of_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    commands = {"Log in": "", "Watch": "echo http://localhost:8080/expand_order-totals/$RUN"}
    monkeypatch.setattr(rest_page, "rest_commands", lambda: commands)
    printed = rest_page.run_as_on_the_page("Watch", "http://localhost:1", "gate_probe_x", "manual__1+00:00")
    assert printed == "http://localhost:1/gate_probe_x/manual__1+00:00\n"


def test_a_database_that_is_locked_is_asked_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    locked = "curl: (22) The requested URL returned error: 500"
    once = f"if mkdir {tmp_path}/asked; then echo '{locked}' >&2; exit 22; fi\necho manual__1\n"
    monkeypatch.setattr(rest_page, "rest_commands", lambda: {"Log in": "", "Trigger": once})
    assert rest_page.run_as_on_the_page("Trigger", "http://localhost:1", "expand_shop").strip() == "manual__1"


ANSWERS = re.findall(r"^\| `(\{.*?\})` \| (.*?) \| (.*?) \|$", rest_page.PAGE.read_text(), re.MULTILINE)
WINDOWS = {"windows": ["sat 02:00-05:00"]}


def asked(files: str) -> Any:
    """The approval of an application whose file has windows, or none, as a cell of the page says."""
    declared = application("shop", **({} if files.startswith("without") else {"cutover_windows": WINDOWS}))
    arguments: Any = {"task_id": "t", "enabled_by": "approve_cutover", "subject": "?", "application_file": "f"}
    return CutoverApprovalOperator(**arguments, params=approval_params(declared)), declared.cutover_windows


@pytest.mark.parametrize(("answer", "files", "begins"), ANSWERS)
def test_airflow_takes_every_answer_of_the_page(answer: str, files: str, begins: str) -> None:
    operator, windows = asked(files)
    operator.validate_params_input(json.loads(answer))
    order, not_before_ms, remark = approved(json.loads(answer), windows)
    assert (order is Order.WINDOW, not_before_ms > 0) == ("next window" in begins, "at that time" in begins)
    assert remark == ""


def test_airflow_takes_no_part_of_an_answer() -> None:
    assert len(ANSWERS) == 4
    operator, _ = asked("with windows")
    with pytest.raises(ValueError, match="does not match params"):
        operator.validate_params_input({"when": "now"})


def run_with_answers(heading: str, trigger: str) -> subprocess.CompletedProcess[str]:
    """Run the commands under a heading as a plain script, with a ``curl`` that logs in and then fails."""
    curl = f"""curl() {{
      case "$*" in */auth/token*) echo '{{"access_token": "t"}}';; *) echo '{trigger}'; return 22;; esac
    }}\n"""
    commands = rest_page.rest_commands()
    script = f"{curl}{commands['Log in']}{commands[heading]}echo went on\n"
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("answer", ['{"detail": "not found"}', '["not found"]', "<html>not found</html>"])
def test_a_script_ends_with_the_reason_if_no_run_begins(answer: str) -> None:
    ended = run_with_answers("Trigger", answer)
    assert (ended.returncode != 0, ended.stdout) == (True, "")
    assert answer in ended.stderr
    assert "no run has begun" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_script_without_an_answer_says_so() -> None:
    assert "no answer" in run_with_answers("Trigger", "").stderr


def test_a_script_ends_if_it_can_not_log_in() -> None:
    log_in = rest_page.rest_commands()["Log in"]
    script = f'curl() {{ echo \'{{"detail": "Invalid credentials"}}\'; return 22; }}\n{log_in}echo went on\n'
    ended = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode != 0, ended.stdout) == (True, "")
    assert "Invalid credentials" in ended.stderr
