"""Whatever is killed during a cutover, the expansion ends verified.

A process that wakes up late can write nothing.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka_rescale.core.control.history import newest_first
from kafka_rescale.core.control.journal import Phase
from kafka_rescale.core.errors import Outage, UnsafeState
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.operations.cutover.cutover import run_cutover
from kafka_rescale.operations.expansion.rollback import roll_back
from kafka_rescale.operations.expansion.stages import expand_stage

from testbed.expansion import Expansion
from testbed.flights_stack import FlightsStack
from testbed.processes import wait_until
from tests.support.kills import kill_session, sessions_of
from tests.support.live_expansion import (
    World,
    cutover_in_its_stop,
    journal_of,
    live_application,
    operation_process,
)
from tests.support.vanishing_jobs import await_word, catch_up_vanishes, hide

pytestmark = pytest.mark.integration
CUTOVER = "cutover.cutover:run_cutover"


def phase(expansion: Expansion) -> Phase:
    """The phase of the expansion."""
    return journal_of(expansion).phase


def killed_and_rolled_back(stack: FlightsStack, expansion: Expansion) -> None:
    """Kill a cutover while it stops the old generation.

    A rollback leaves that generation running and untouched.
    """
    admin, journal = ClusterAdmin(expansion.connection), journal_of(expansion)
    topics = [m.source for m in journal.plan.moves] + ["flights", "planes"]
    before = admin.describe_topics(topics)
    expansion.prove_copies()
    catch_up = expansion.submit("catch_up")
    with cutover_in_its_stop(expansion) as process:
        kill_session(process.pid)
    said = roll_back(expansion.application, expansion.connection, owner=expansion.owner, reason="a test")
    assert "was started again" in said.told
    assert stack.run("status") == 0
    assert stack.run("status", "flights-g2") == 3
    assert admin.describe_topics(topics) == before
    kill_session(catch_up.pid)


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One live application with warm copies, for all tests of `make test`. Only the last test promotes."""
    with live_application(tmp_path_factory.mktemp("warm"), rate=8) as (stack, expansion):
        expansion.warm(expansion.begin())
        yield stack, expansion


def test_copies_without_a_proof_are_not_cut_over_and_blue_is_not_stopped(warm: World) -> None:
    stack, expansion = warm
    with pytest.raises(UnsafeState, match="no proof of the copies"):
        run_cutover(expansion.application, expansion.connection, owner=expansion.owner)
    journal = journal_of(expansion)
    assert (journal.phase, journal.pause_started_ms) == (Phase.ROLLED_BACK, 0)
    assert stack.run("status") == 0
    past = next(iter(newest_first(expansion.state().history.values())))
    assert (past.outcome, past.attempt, past.reason) == ("rolled_back", journal.attempt, journal.rollback_reason)
    assert (past.timings.get("total"), past.proven.passed) == (None, None)


# In `make test`, U/test_held.py::test_an_application_that_can_not_start_is_found, and test_hold_gate.py has
# processes that end by themselves behind the gate
@pytest.mark.slow
def test_an_application_that_can_not_start_is_found_before_the_pause(
    warm: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack, expansion = warm
    if phase(expansion) is Phase.ROLLED_BACK:
        expansion.begin()
    config = tmp_path / "properties"
    config.write_text("num.stream.threads=many\n")
    monkeypatch.setenv("FLIGHTS_CONFIG", str(config))
    expansion.prove_copies()
    catch_up = expansion.submit("catch_up")
    with pytest.raises(Outage, match="held start of flights-g2: found an application that has ended by itself"):
        run_cutover(expansion.application, expansion.connection, owner=expansion.owner)
    journal = journal_of(expansion)
    assert (journal.phase, journal.pause_started_ms, journal.held) == (Phase.ROLLED_BACK, 0, 0)
    assert [stack.run("status", name) for name in ("flights", "flights-g2")] == [0, 3]
    assert ClusterAdmin(expansion.connection).committed("flights-g2") == {}
    kill_session(catch_up.pid)


def test_a_job_that_hangs_within_the_pause_ends_it_and_blue_runs_again(warm: World) -> None:
    stack, expansion = warm
    if phase(expansion) is Phase.ROLLED_BACK:
        expansion.begin()
    catch_up_vanishes(stack, expansion, hide)


def test_a_killed_cutover_is_rolled_back_and_the_next_one_goes_on_and_is_verified(warm: World) -> None:
    stack, expansion = warm
    if phase(expansion) is Phase.ROLLED_BACK:
        expansion.begin()
    killed_until_verified(stack, expansion, [Phase.QUIESCED, Phase.PROMOTED])


@pytest.mark.slow
def test_a_cutover_that_is_killed_in_every_phase_is_verified(tmp_path: Path) -> None:
    with live_application(tmp_path, rate=8) as (stack, expansion):
        expansion.warm(expansion.begin())
        order = [Phase.QUIESCING, Phase.QUIESCED, Phase.CAUGHT_UP, Phase.PROMOTED, Phase.STARTED]
        killed_until_verified(stack, expansion, order)


def killed_until_verified(stack: FlightsStack, expansion: Expansion, order: list[Phase]) -> None:
    """Kill a cutover and roll back. Then kill the next cutover in some phases, and let it end."""
    killed_and_rolled_back(stack, expansion)
    expansion.begin()
    expansion.prove_copies()
    catch_up = expansion.submit("catch_up")
    await_word(expansion, "catch_up")
    for number, wanted in enumerate(order):
        process = operation_process(expansion, CUTOVER)
        wait_until(
            lambda wanted=order[number:], process=process: phase(expansion) in wanted or process.poll() == 0,
            timeout=240,
            what=f"phase {wanted}",
        )
        kill_session(process.pid)
    assert operation_process(expansion, CUTOVER).wait(240) == 0
    assert catch_up.wait(60) == 0, expansion.log_of("catch_up")
    assert phase(expansion) is Phase.STARTED
    report = expansion.verify()
    assert report["passed"], report
    history: Any = expansion.finish()["history"]
    assert (history["outcome"], history["proven"].endswith("; verified")) == ("complete", True)
    stack.finish_replay()
    stack.await_equal("flights-g2")


@pytest.mark.slow
def test_drivers_killed_on_the_way_change_nothing_in_the_result(tmp_path: Path) -> None:
    with live_application(tmp_path, rate=8) as (stack, expansion):
        plan = expansion.begin()
        for stage in plan.stages:
            expand_stage(expansion.application, expansion.connection, owner=expansion.owner, stage=stage.index)
            if not stage.changelogs:
                continue
            for job in ("restore", "warm_up"):
                killed = expansion.submit(job, stage.index)
                wait_until(
                    lambda name=f"{job}/{stage.index}": name in expansion.state().results,
                    timeout=120,
                    what=f"{job} to be at work",
                )
                kill_session(killed.pid)
                expansion.job(job, stage.index)
        expansion.cut_over()
        report = expansion.verify()
        assert report["passed"], report
        expansion.finish()
        stack.finish_replay()
        stack.await_equal("flights-g2")


@pytest.mark.slow
def test_a_driver_that_wakes_up_after_the_cutover_writes_nothing(tmp_path: Path) -> None:
    with live_application(tmp_path, rate=8) as (stack, expansion):
        plan = expansion.begin()
        expansion.warm(plan)
        zombie = expansion.submit("catch_up")
        await_word(expansion, "catch_up")
        asleep = sessions_of(zombie.pid)
        for pid in asleep:
            os.kill(pid, signal.SIGSTOP)
        expansion.cut_over()
        stack.finish_replay()
        stack.await_equal("flights-g2")
        admin = ClusterAdmin(expansion.connection)
        topics = [m.target for m in plan.moves]
        ends = admin.end_offsets(topics, read_committed=False)
        for pid in asleep:
            os.kill(pid, signal.SIGCONT)
        assert zombie.wait(120) is not None
        assert admin.end_offsets(topics, read_committed=False) == ends
        assert stack.compare("flights-g2").equal
