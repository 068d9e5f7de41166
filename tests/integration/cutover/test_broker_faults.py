"""One broker of three dies, freezes or restarts during an expansion of a live application. The result is verified.

Input arrives all the time, and two of three brokers are alive all the time. The test compares the result with an
independent computation from the input.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen

import psutil
import pytest
from kafka_rescale.core.control.journal import Phase
from kafka_rescale.operations.expansion.stages import expand_stage

from testbed.cluster_roles import ClusterRoles
from tests.support.broker_faults import ROLES, Harm, harmed_at
from tests.support.expansion.faulty import (
    assert_ends_verified,
    await_result,
    live_cluster,
    restore_stages,
    start_catch_up,
    verify,
)

pytestmark = pytest.mark.integration
AT_LEAST_ONCE, EXACTLY_ONCE = "at_least_once", "exactly_once_v2"
LEADER, CONTROL, CONTROLLER = "leader of a changelog", "leader of the control topic", "controller"
GROUP, TRANSACTIONS = "coordinator of the copy's group", "coordinator of the journal's transactions"
ROLLING = "rolling restart"
MEASURED_SECONDS = 60.0
PAUSE = (Phase.QUIESCING, Phase.QUIESCED, Phase.CAUGHT_UP, Phase.PROMOTED)


@dataclass(frozen=True)
class Case:
    """What is done to which broker in each step. Between two steps, the broker comes back.

    :param catch_up: a harm, or ``ROLLING``, while the job follows the running generation.
    :param phases: phases of the pause. The harm ``pause`` is done when the journal reaches each of them.
    """

    guarantee: str
    phases: tuple[Phase, ...]
    pause: Harm
    restore: Harm | None = None
    catch_up: Harm | str | None = None
    verify: Harm | None = None

    @property
    def name(self) -> str:
        """The id of the case in pytest."""
        how, role = self.pause
        at = self.phases[0].value if len(self.phases) == 1 else "every-phase"
        return f"{how}-{at}-{role}-{self.guarantee}".replace(" ", "-")


def harmed_throughout(guarantee: str, how: str, role: str, *phases: Phase) -> Case:
    """Return the case that harms the broker of one role in every job, and in some phases of the pause."""
    harm = (how, role)
    return Case(guarantee, phases, harm, restore=harm, catch_up=harm, verify=harm)


@pytest.mark.parametrize(
    "case",
    [
        Case(
            EXACTLY_ONCE,
            (Phase.QUIESCED,),
            ("kill", TRANSACTIONS),
            restore=("kill", LEADER),
            catch_up=ROLLING,
        ),
        # In `make test`, test_broker_away.py freezes the only broker within the pause.
        pytest.param(Case(AT_LEAST_ONCE, (Phase.QUIESCED,), ("freeze", CONTROL)), marks=pytest.mark.slow),
    ],
    ids=lambda case: case.name,
)
def test_an_expansion_survives_one_broker(case: Case, tmp_path: Path) -> None:
    run(case, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    [
        harmed_throughout(guarantee, how, LEADER, phase)
        for guarantee in (EXACTLY_ONCE, AT_LEAST_ONCE)
        for how in ("kill", "freeze")
        for phase in PAUSE
    ],
    ids=lambda case: case.name,
)
def test_an_expansion_survives_one_broker_in_every_step(case: Case, tmp_path: Path) -> None:
    run(case, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    [
        harmed_throughout(guarantee, how, role, *PAUSE)
        for role in (GROUP, TRANSACTIONS, CONTROLLER)
        for how in ("kill", "freeze")
        for guarantee in (EXACTLY_ONCE, AT_LEAST_ONCE)
    ],
    ids=lambda case: case.name,
)
def test_an_expansion_survives_a_coordinator_and_the_controller(case: Case, tmp_path: Path) -> None:
    run(case, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("guarantee", [EXACTLY_ONCE, AT_LEAST_ONCE])
def test_an_expansion_survives_the_death_of_the_only_controller(guarantee: str, tmp_path: Path) -> None:
    # No other controller takes over. Until it is back, no topic is made or grown, and no leader is elected.
    run(harmed_throughout(guarantee, "kill", CONTROLLER, *PAUSE), tmp_path, lone_controller=True)


@pytest.mark.slow
@pytest.mark.parametrize("guarantee", [EXACTLY_ONCE, AT_LEAST_ONCE])
def test_an_expansion_survives_rolling_restarts_all_the_time(guarantee: str, tmp_path: Path) -> None:
    with live_cluster(tmp_path, guarantee) as (stack, expansion, faults):
        with faults.restarting():
            restore_stages(expansion, faults, None)
            expansion.cut_over_beside(start_catch_up(expansion))
            report = verify(expansion, faults, None)
        assert_ends_verified(stack, expansion, faults, report)
        assert faults.rounds >= 2, "each broker is to be restarted twice"


@pytest.mark.slow
def test_a_restore_that_begins_while_a_broker_dies_goes_on(tmp_path: Path) -> None:
    with live_cluster(tmp_path, EXACTLY_ONCE) as (_, expansion, faults):
        plan = expansion.begin()
        for stage in plan.stages:
            expand_stage(expansion.application, expansion.connection, owner=expansion.owner, stage=stage.index)
        stage = next(stage.index for stage in plan.stages if stage.changelogs)
        # At one of these moments, the job sends its first requests. A later job asks again for what is restored.
        for seconds in (1, 3, 5, 7):
            job = expansion.submit("restore", stage)
            time.sleep(seconds)
            faults.harm("kill", CONTROL, moment=f"restore, {seconds} s after its start")
            assert job.wait(400) == 0, expansion.log_of("restore", stage)
        print(f"RESULT restored; {'; '.join(faults.done)}", flush=True)


@pytest.mark.slow
def test_a_job_needs_no_more_processor_time_while_a_broker_is_down(tmp_path: Path) -> None:
    with live_cluster(tmp_path, EXACTLY_ONCE) as (_, expansion, faults):
        restore_stages(expansion, faults, None)
        job = start_catch_up(expansion)
        before = processor_seconds(job)
        leader = ROLES[LEADER](ClusterRoles(expansion.connection), expansion)
        faults.cluster.brokers[leader].kill()
        down = processor_seconds(job)
        faults.cluster.brokers[leader].start()
        faults.cluster.await_healthy()
        after = processor_seconds(job)
        assert job.poll() is None, expansion.log_of("catch_up")
        # It has followed to the end, so the job has not saved its time by doing nothing.
        await_result(expansion, "catch_up", "ready")
        print(
            f"RESULT processor time of a job in {MEASURED_SECONDS:.0f} s: {before:.1f} s while all brokers run, "
            f"{down:.1f} s while one is down, {after:.1f} s after it; ratio {2 * down / (before + after):.2f}"
        )
        assert down <= 1.25 * max(before, after)


def processor_seconds(job: Popen[bytes]) -> float:
    """Return the processor time that a job and its processes use within ``MEASURED_SECONDS``, in seconds."""

    def used() -> dict[int, float]:
        family = [psutil.Process(job.pid), *psutil.Process(job.pid).children(recursive=True)]
        times = {}
        for process in family:
            with suppress(psutil.NoSuchProcess):
                spent = process.cpu_times()
                times[process.pid] = spent.user + spent.system
        return times

    before = used()
    time.sleep(MEASURED_SECONDS)
    return sum(spent - before.get(pid, 0.0) for pid, spent in used().items())


def run(case: Case, directory: Path, lone_controller: bool = False) -> None:
    """Expand a live application on three brokers with the harm of a case, and print its row of the table."""
    with live_cluster(directory, case.guarantee, lone_controller) as (stack, expansion, faults):
        restore_stages(expansion, faults, case.restore)
        job = start_catch_up(expansion)
        if case.catch_up == ROLLING:
            faults.restart_each()
        elif isinstance(case.catch_up, tuple):
            faults.harm(*case.catch_up, moment="catch_up")
        faults.await_returned()
        with harmed_at(faults, dict.fromkeys(case.phases, case.pause)) as seen:
            expansion.cut_over_beside(job)
        assert "promoted" in seen, seen
        faults.await_returned()
        assert_ends_verified(stack, expansion, faults, verify(expansion, faults, case.verify))
