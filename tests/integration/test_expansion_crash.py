"""Whatever is killed during a cutover, it ends verified; and what wakes up late can write nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kafka_rescale.core.journal import Phase
from kafka_rescale.embedded.broker import EmbeddedBroker
from kafka_rescale.embedded.expansion import ROOT, Expansion
from kafka_rescale.embedded.flights_stack import FlightsStack, environment_of
from kafka_rescale.embedded.processes import wait_until
from kafka_rescale.kafka.admin import ClusterAdmin
from kafka_rescale.operations.rollback import roll_back
from kafka_rescale.operations.stages import expand_stage

from tests.support.kills import kill_session, sessions_of

pytestmark = pytest.mark.integration
FILE = ROOT / "applications" / "flights.yaml"
FLIGHTS = 9_000
World = tuple[FlightsStack, Expansion]


@contextmanager
def live_application(directory: Path, *, rate: float) -> Iterator[World]:
    """A live application on a broker of its own, and an expansion of it to 8 partitions."""
    with EmbeddedBroker(directory / "broker", heap="512m") as broker:
        stack = FlightsStack(
            directory / "flights", broker.bootstrap_servers, preload=FLIGHTS // 2, rate=rate, limit=FLIGHTS
        )
        with environment_of(stack):
            try:
                stack.start_replay()
                stack.await_sent(FLIGHTS // 2)
                assert stack.run("start") == 0
                expansion = Expansion.of_file(FILE, broker.bootstrap_servers, directory / "run")
                admin = ClusterAdmin(expansion.connection)
                wait_until(
                    lambda: sum(admin.end_offsets(["aircraft-totals-output"])["aircraft-totals-output"].values()),
                    timeout=120,
                    what="the first output",
                )
                yield stack, expansion
            finally:
                stack.stop("flights", "flights-g2")
                for process in expansion.processes:
                    kill_session(process.pid)


def cutover_process(expansion: Expansion) -> subprocess.Popen[bytes]:
    """The cutover in a process of its own, as an Airflow task has it."""
    script = (
        "import sys; from kafka_rescale.operations.cutover import run_cutover;"
        "from kafka_rescale.operations.load import load_application;"
        "from kafka_rescale.kafka.connection import KafkaConnection;"
        "run_cutover(load_application(sys.argv[1]), KafkaConnection({'bootstrap.servers': sys.argv[2]}),"
        " owner=sys.argv[3])"
    )
    command = [sys.executable, "-c", script, str(FILE), expansion.connection.config["bootstrap.servers"]]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "plugins")}
    process = subprocess.Popen([*command, expansion.owner], env=environment, start_new_session=True)
    expansion.processes.append(process)
    return process


def is_ready(expansion: Expansion) -> bool:
    """Whether catch_up says that it is near the ends."""
    result = expansion.state().results.get("catch_up")
    return result is not None and result.state == "ready"


def phase(expansion: Expansion) -> Phase:
    """Where the expansion is."""
    journal = expansion.state().journal
    assert journal is not None
    return journal.phase


def test_a_cutover_killed_in_every_phase_goes_on_and_is_verified(tmp_path: Path) -> None:
    order = [Phase.QUIESCING, Phase.QUIESCED, Phase.CAUGHT_UP, Phase.PROMOTED, Phase.STARTED]
    with live_application(tmp_path, rate=8) as (stack, expansion):
        plan = expansion.begin()
        expansion.warm(plan)
        catch_up = expansion.submit("catch_up")
        for number, wanted in enumerate(order):
            process = cutover_process(expansion)
            wait_until(
                lambda wanted=order[number:], process=process: phase(expansion) in wanted or process.poll() == 0,
                timeout=240,
                what=f"phase {wanted}",
            )
            kill_session(process.pid)
        assert cutover_process(expansion).wait(240) == 0
        assert catch_up.wait(60) == 0, expansion.log_of("catch_up")
        assert phase(expansion) is Phase.STARTED
        report = expansion.verify()
        assert report["passed"], report
        expansion.finish()
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


def test_a_rollback_leaves_the_old_generation_running_and_untouched(tmp_path: Path) -> None:
    with live_application(tmp_path, rate=8) as (stack, expansion):
        admin = ClusterAdmin(expansion.connection)
        plan = expansion.begin()
        expansion.warm(plan)
        before = admin.describe_topics([m.source for m in plan.moves] + ["flights", "planes"])
        expansion.submit("catch_up")
        process = cutover_process(expansion)
        wait_until(lambda: phase(expansion) is not Phase.WARMING, timeout=240, what="the cutover to begin")
        kill_session(process.pid)
        if phase(expansion) in {Phase.PROMOTED, Phase.STARTED}:
            pytest.fail("the kill came too late to test a rollback")
        said = roll_back(expansion.application, expansion.connection, owner=expansion.owner, reason="a test")
        assert "was started again" in said
        assert stack.run("status") == 0
        assert stack.run("status", "flights-g2") == 3
        assert admin.describe_topics([m.source for m in plan.moves] + ["flights", "planes"]) == before
        stack.finish_replay()
        stack.await_equal("flights")


def test_a_driver_that_wakes_up_after_the_cutover_writes_nothing(tmp_path: Path) -> None:
    with live_application(tmp_path, rate=8) as (stack, expansion):
        plan = expansion.begin()
        expansion.warm(plan)
        zombie = expansion.submit("catch_up")
        wait_until(
            lambda: (
                "catch_up" in expansion.state().results and expansion.state().results["catch_up"].state == "ready"
            ),
            timeout=120,
            what="the first driver to be ready",
        )
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
