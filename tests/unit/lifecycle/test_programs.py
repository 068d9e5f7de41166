"""Programs that an application file names: obstacles are reported beforehand, and are no crash afterwards."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from kafka_rescale.core.errors import Outage
from kafka_rescale.kafka.client.settings_files import CONFIG_VARIABLE
from kafka_rescale.lifecycle import programs, status
from kafka_rescale.lifecycle.factory import lifecycle_of
from kafka_rescale.lifecycle.instance import Instance
from kafka_rescale.lifecycle.programs import NO_END, NO_SUCH_PROGRAM, NOT_EXECUTABLE, hindrance, run

from testbed.processes import wait_until
from tests.support.small_application import application, declared


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KAFKA_RESCALE_HOME", str(tmp_path))
    return tmp_path


def script(home: Path, text: str, mode: int = 0o755) -> Path:
    file = home / "run.sh"
    file.write_text(text)
    file.chmod(mode)
    return file


def is_at_work(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_what_can_be_run_is_not_hindered(home: Path) -> None:
    script(home, "#!/bin/sh\nexit 7\n")
    for command in (["./run.sh"], [str(home / "run.sh")], ["sh", "-c", "exit 7"], ["env", "A=b", "./run.sh"]):
        assert hindrance(command) == ""
        assert run(command, 10) == (7, "")
    assert hindrance([sys.executable]) == ""
    assert hindrance(["env", "-i", "anything"]) == ""


def test_what_is_started_inherits_no_secret_of_airflow(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AIRFLOW_CONN_KAFKA", "AIRFLOW__CORE__FERNET_KEY", "AIRFLOW_VAR_TOKEN", CONFIG_VARIABLE):
        monkeypatch.setenv(name, "canary")
    monkeypatch.setenv("AIRFLOW_CTX_DAG_ID", "expand_shop")
    monkeypatch.setenv("KUBECONFIG", "/etc/kube")
    assert run(["sh", "-c", "env | grep -c canary; echo $AIRFLOW_CTX_DAG_ID $KUBECONFIG"], 10) == (
        0,
        "0\nexpand_shop /etc/kube",
    )


@pytest.mark.parametrize(
    ("text", "mode", "said", "code"),
    [
        ("#!/bin/sh\n", 0o644, "no permission to execute", NOT_EXECUTABLE),
        ("echo hello\n", 0o755, "a script that doesn't begin with #!", NOT_EXECUTABLE),
        ("#!/bin/sh\r\n", 0o755, r"a script for '/bin/sh\r', which can't be executed", NO_SUCH_PROGRAM),
        ("#!/usr/bin/env no-such-shell\n", 0o755, "a script for 'no-such-shell', which isn't there", 127),
    ],
    ids=["not executable", "no interpreter named", "line ends of Windows", "no such interpreter"],
)
def test_a_script_that_can_not_be_run(home: Path, text: str, mode: int, said: str, code: int) -> None:
    file = script(home, text, mode)
    assert str(file) in hindrance(["./run.sh"])
    assert said in hindrance(["./run.sh"])
    assert run(["./run.sh"], 10)[0] == code


@pytest.mark.parametrize(
    "command", [["./absent.sh"], ["no-such-program"], ["env", "A=b", "no-such-program"], ["."]]
)
def test_no_such_program(command: list[str]) -> None:
    assert hindrance(command).startswith("no program ")
    assert run(command, 10)[0] in {NO_SUCH_PROGRAM, NOT_EXECUTABLE}


def test_no_directory_to_run_it_in(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_RESCALE_HOME", str(home / "absent"))
    assert hindrance(["true"]) == f"no directory {home / 'absent'} to run it in"
    assert run(["true"], 10)[0] == NO_SUCH_PROGRAM


def test_a_command_that_does_not_end_is_ended() -> None:
    assert run(["sleep", "60"], 1) == (NO_END, "the command did not end within 1 s")


def test_what_a_command_said_before_it_was_ended_is_told() -> None:
    code, said = run(["sh", "-c", "echo waiting for pod-3; exec sleep 60"], 1)
    assert (code, said) == (NO_END, "the command did not end within 1 s; it had said: waiting for pod-3")


GOES_ON = "(trap '' HUP; echo working; while [ ! -e end ]; do sleep 0.1; done; touch ended) & echo $!; wait"


def test_what_a_start_has_begun_outlives_its_end_and_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    code, said = run(["sh", "-c", GOES_ON], 1)
    child = re.findall(r"\d+", said.partition("it had said")[2])[0]
    assert code == NO_END
    assert re.search(rf"did not end within 1 s, and process(es)? [\d, ]*\b{child}\b[\d, ]* of it go", said)
    (warning,) = caplog.messages
    assert "was ended after 1 s, and process" in warning
    assert "redirect" not in warning
    (tmp_path / "end").touch()
    wait_until((tmp_path / "ended").exists, timeout=30, what="the process to go on")
    Path(warning.partition("its output to ")[2].partition(" on this machine")[0]).unlink()


@pytest.mark.parametrize("through", ["sh -c", "timeout 60 sh -c"], ids=["", "in a group of its own"])
def test_of_a_stop_no_process_goes_on(caplog: pytest.LogCaptureFixture, through: str) -> None:
    """Otherwise it could stop what a rollback has started meanwhile."""
    code, said = run(["sh", "-c", f"{through} '{GOES_ON.replace(chr(39), chr(34))}'; true"], 1, may_outlive=False)
    child = int(re.findall(r"\d+", said.partition("it had said")[2])[0])
    assert (code, "of it go" in said) == (NO_END, False)
    assert not caplog.messages
    assert not is_at_work(child)


def test_of_a_stop_that_is_interrupted_no_process_goes_on(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    wait, child, waits = subprocess.Popen.wait, home / "child", list[float]()

    def interrupted(process: subprocess.Popen[bytes], seconds: float) -> int:
        waits.append(seconds)
        if len(waits) == 1:
            wait_until(lambda: child.exists() and child.read_text() != "", timeout=30, what="the child")
            raise KeyboardInterrupt
        return wait(process, seconds)

    monkeypatch.setattr(subprocess.Popen, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(["sh", "-c", f"sleep 600 & echo $! >{child}; wait"], 60, may_outlive=False)
    assert not is_at_work(int(child.read_text()))


@pytest.mark.parametrize("action", ["stop", "is_running"])
def test_a_lifecycle_leaves_nothing_of_a_stop_and_of_a_status(
    action: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status, "STATUS_SECONDS", 0.1)
    lifecycle = {"type": "shell", "timeout_seconds": 1, "start": "true {application_id}"}
    hangs = "sh -c 'sleep 600 & echo {application_id} $!; wait'"
    made = lifecycle_of(
        application("shop", lifecycle={**lifecycle, "stop": hangs, "status": hangs}), lambda _: False
    )
    with pytest.raises(Outage, match="it had said: shop ") as told:
        getattr(made, action)(Instance("shop", 1, 4))
    child = int(re.findall(r"shop (\d+)", told.value.found)[0])
    assert not is_at_work(child)


def test_a_lifecycle_command_that_can_not_be_executed_is_an_outage(home: Path) -> None:
    script(home, "#!/bin/sh\n", 0o644)
    lifecycle = {**declared("shop")["lifecycle"], "start": "./run.sh {application_id}"}
    made = lifecycle_of(application("shop", lifecycle=lifecycle), lambda _: False)
    with pytest.raises(Outage, match=r"exit code 126 \(.*Permission denied.*Run the command by hand on the"):
        made.start(Instance("shop", 1, 4))


def test_the_end_of_what_a_command_says_is_kept() -> None:
    code, said = run(["sh", "-c", "head -c 9000 /dev/zero | tr '\\0' x; echo the end >&2"], 10)
    assert (code, len(said), said[-8:]) == (0, programs._OUTPUT_SHOWN, "xthe end")


def test_a_process_left_behind_is_not_waited_for_and_its_output_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """With a pipe, the call would wait until the timeout, and closing the pipe would end the application."""
    left = "echo started; (while [ ! -e end ]; do sleep 0.05; done; echo goes on) & echo $!"
    code, said = run(["sh", "-c", left], 60)
    started, child = said.split()
    assert (code, started) == (0, "started")
    (warning,) = caplog.messages
    # Look only for this process: a `sleep` of it may run at the same moment.
    assert f"process {child}" in warning
    output = Path(warning.partition("its output to ")[2].partition(" on this machine")[0])
    (tmp_path / "end").touch()
    wait_until(lambda: "goes on" in output.read_text(), timeout=30, what="the process to write")
    output.unlink()


def test_nothing_is_left_of_a_command_that_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left = "(exec >/dev/null 2>&1; touch redirected; sleep 1) & while [ ! -e redirected ]; do sleep 0.01; done"
    assert run(["sh", "-c", left], 30)[0] == 0
    assert not list(tmp_path.glob("kafka-rescale-*"))
    assert not caplog.messages
