"""A job that is killed, fails or hangs within the pause: the pause ends within seconds, and blue runs again."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from subprocess import Popen

import pytest
from kafka_rescale.core.control.journal import Journal, Phase

from testbed.broker import EmbeddedBroker
from testbed.expansion import ROOT, Expansion
from testbed.processes import wait_until
from tests.support.kills import kill_session, processes_with, sessions_of
from tests.support.live_expansion import FILE, live_application, operation_process
from tests.support.ordered import NAME, Ordered
from tests.support.ordered_in_place import OrderedInPlace

pytestmark = pytest.mark.integration
Process = Popen[bytes]


def kill(job: Process) -> None:
    """As the end of its machine does; it leaves no word."""
    kill_session(job.pid)


def fail(job: Process) -> None:
    """Kill the Spark tasks of a driver that lives, and says so."""
    for pid in set(processes_with("pyspark")) & set(sessions_of(job.pid)) - {job.pid}:
        if b"daemon" in Path(f"/proc/{pid}/cmdline").read_bytes():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def hide(job: Process) -> None:
    """Stop all its processes: it is there, and does nothing."""
    for pid in sessions_of(job.pid):
        os.kill(pid, signal.SIGSTOP)


HARMS = (kill, fail, hide)


def journal_of(expansion: Expansion) -> Journal:
    journal = expansion.state().journal
    assert journal is not None
    return journal


def await_word(expansion: Expansion, job: str, state: str = "ready") -> None:
    """Wait until the newest attempt at a job says so."""

    def said() -> bool:
        result = expansion.state().results.get(job)
        return result is not None and (result.attempt, result.state) == (expansion.attempt, state)

    wait_until(said, timeout=240, what=f"{job} to be {state}")


def vanishes(
    expansion: Expansion, file: Path, job: str, process: Process, harm: Callable[[Process], None]
) -> Journal:
    """Harm a job as soon as the application is asked to stop, and print how long nothing processed then."""
    cutover = operation_process(expansion, "cutover.cutover:run_cutover", file)
    wait_until(lambda: journal_of(expansion).stop_asked, timeout=240, what="the stop")
    harm(process)
    wait_until(lambda: journal_of(expansion).captured is not None, timeout=120, what="the proof that blue is gone")
    began = time.monotonic()
    wait_until(
        lambda: journal_of(expansion).phase is Phase.ROLLED_BACK or cutover.poll() is not None,
        timeout=expansion.application.max_pause_seconds,
        what="the end of the pause",
    )
    print(f"{job}, {harm.__name__}: blue runs again {time.monotonic() - began:.1f} s after its stop", flush=True)
    assert cutover.wait(60) != 0
    kill_session(process.pid)
    journal = journal_of(expansion)
    assert journal.phase is Phase.ROLLED_BACK, journal.told
    assert f"{job} job of {expansion.application.application_id}" in journal.rollback_reason
    # Far from the limit of the pause, which was waited for before.
    assert time.monotonic() - began < expansion.application.max_pause_seconds / 5
    return journal


def test_catch_up(tmp_path: Path) -> None:
    with live_application(tmp_path, rate=8) as (stack, expansion):
        expansion.warm(expansion.begin())
        for harm in HARMS:
            if journal_of(expansion).phase is Phase.ROLLED_BACK:
                expansion.begin()
            catch_up = expansion.submit("catch_up")
            await_word(expansion, "catch_up")
            journal = vanishes(expansion, FILE, "catch_up", catch_up, harm)
            assert ("no sign of life" in journal.rollback_reason) == (harm is not fail), journal.rollback_reason
            assert stack.run("status") == 0
            assert stack.run("status", "flights-g2") != 0
        stack.finish_replay()
        stack.await_equal("flights")


@pytest.mark.slow
def test_move(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with EmbeddedBroker(tmp_path / "broker", heap="512m") as broker:
        ordered = OrderedInPlace(tmp_path / "ordered", broker.bootstrap_servers)
        ordered.prepare()
        monkeypatch.setenv("LINKS", str(ordered.directory))
        monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{ROOT / 'plugins'}")
        expansion = Expansion.of_file(ordered.file, broker.bootstrap_servers, tmp_path / "run")
        try:
            with ordered.at_work():
                assert ordered.run("start", NAME) == 0
                wait_until(lambda: len(ordered.seen) == len(ordered.sent) > 300, timeout=120, what="every key")
                # Of tasks that only breathe, Spark begins another one.
                for harm in (kill, hide):
                    expansion.follow(expansion.begin(), before="move")
                    move = expansion.submit("move")
                    await_word(expansion, "move")
                    vanishes(expansion, ordered.file, "move", move, harm)
                    assert ordered.run("status", NAME) == 0
                ordered.stop_sending()
                wait_until(lambda: ordered.is_all_seen, timeout=120, what="the last output")
        finally:
            ordered.run("stop", NAME)
            for process in expansion.processes:
                kill_session(process.pid)


@pytest.mark.slow
def test_bridge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with EmbeddedBroker(tmp_path / "broker", heap="512m") as broker:
        ordered = Ordered(tmp_path / "ordered", broker.bootstrap_servers)
        ordered.prepare()
        monkeypatch.setenv("LINKS", str(ordered.directory))
        expansion = Expansion.of_file(ordered.file, broker.bootstrap_servers, tmp_path / "run")
        try:
            with ordered.at_work():
                assert ordered.run("start", NAME) == 0
                wait_until(lambda: ordered.seen, timeout=120, what="the first output")
                for harm in HARMS:
                    plan = expansion.begin()
                    if harm is HARMS[0]:
                        expansion.warm(plan)
                    catch_up = expansion.submit("catch_up")
                    await_word(expansion, "catch_up")
                    bridge = expansion.submit("bridge")
                    await_word(expansion, "bridge")
                    vanishes(expansion, ordered.file, "bridge", bridge, harm)
                    assert ordered.run("status", NAME) == 0
                    kill_session(catch_up.pid)
                ordered.stop_sending()
                wait_until(lambda: ordered.is_all_seen, timeout=120, what="the last output")
        finally:
            for application_id in (NAME, f"{NAME}-g2"):
                ordered.run("stop", application_id)
            for process in expansion.processes:
                kill_session(process.pid)
