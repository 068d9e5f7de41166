"""Jobs that vanish within the pause: they are killed, fail or hang. Then the pause has to end early."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from subprocess import Popen

from kafka_rescale.core.control.journal import Journal, Phase

from testbed.expansion import Expansion
from testbed.flights_stack import FlightsStack
from testbed.processes import wait_until
from tests.support.kills import kill_session, processes_with, sessions_of
from tests.support.live_expansion import FILE, cutover_in_its_stop, journal_of

Process = Popen[bytes]


def kill(job: Process) -> None:
    """Kill the job, as when its machine fails. It leaves no result."""
    kill_session(job.pid)


def fail(job: Process) -> None:
    """Kill the job's Spark tasks. The driver lives and reports the failure."""
    for pid in set(processes_with("pyspark")) & set(sessions_of(job.pid)) - {job.pid}:
        if b"daemon" in Path(f"/proc/{pid}/cmdline").read_bytes():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def hide(job: Process) -> None:
    """Stop all processes of the job. They still exist, but do nothing."""
    for pid in sessions_of(job.pid):
        os.kill(pid, signal.SIGSTOP)


HARMS = (kill, fail, hide)


def await_word(expansion: Expansion, job: str, state: str = "ready") -> None:
    """Wait until the newest attempt at a job reports a state."""

    def said() -> bool:
        result = expansion.state().results.get(job)
        return result is not None and (result.attempt, result.state) == (expansion.attempt, state)

    wait_until(said, timeout=240, what=f"{job} to be {state}")


def vanishes(
    expansion: Expansion, file: Path, job: str, process: Process, harm: Callable[[Process], None]
) -> Journal:
    """Harm a job as soon as the application is asked to stop, and print how long the application stood still."""
    with cutover_in_its_stop(expansion, file) as cutover:
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
    # Much less than the limit of the pause. An earlier version waited for that limit.
    assert time.monotonic() - began < expansion.application.max_pause_seconds / 5
    return journal


def catch_up_vanishes(stack: FlightsStack, expansion: Expansion, harm: Callable[[Process], None]) -> None:
    """Harm ``catch_up`` of a warm expansion, and see the old generation go on."""
    expansion.prove_copies()
    catch_up = expansion.submit("catch_up")
    await_word(expansion, "catch_up")
    journal = vanishes(expansion, FILE, "catch_up", catch_up, harm)
    assert ("no sign of life" in journal.rollback_reason) == (harm is not fail), journal.rollback_reason
    assert stack.run("status") == 0
    assert stack.run("status", "flights-g2") != 0
