"""An expansion of a live application on three brokers, step by step. Each step can harm one of the brokers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen
from typing import Any

from kafka_rescale.operations.expansion.stages import expand_stage

from testbed.cluster import EmbeddedCluster
from testbed.expansion import Expansion
from testbed.flights_stack import FlightsStack
from testbed.processes import wait_until
from tests.support.broker_faults import Faults, Harm
from tests.support.left_behind import print_left_behind
from tests.support.live_expansion import PROMPT, live_application

RATE = 8.0
SETTINGS = {"FLIGHTS_OPTIONS": f"{PROMPT['FLIGHTS_OPTIONS']} --on-exception REPLACE_THREAD"}
"""A frozen broker may end threads of Kafka Streams. Its default handler does not start them again.

With exactly-once, its default of ten commits a second is most of the load of three brokers.
"""


@contextmanager
def live_cluster(
    directory: Path, guarantee: str, lone_controller: bool = False
) -> Iterator[tuple[FlightsStack, Expansion, Faults]]:
    """The flights application at work on three brokers."""
    with (
        EmbeddedCluster(directory / "cluster", lone_controller=lone_controller) as cluster,
        live_application(directory, rate=RATE, guarantee=guarantee, cluster=cluster, settings=SETTINGS) as (
            stack,
            expansion,
        ),
    ):
        faults = Faults(cluster, expansion)
        try:
            yield stack, expansion, faults
        finally:
            faults.join()


def restore_stages(
    expansion: Expansion, faults: Faults, harm: Harm | None, *, target: int | None = None, tries: int = 1
) -> None:
    """Expand and restore every stage. A broker is harmed when the first job begins.

    :param tries: how often a failing job is submitted at most.
    """
    plan, calm = expansion.begin(target), harm is None
    for stage in plan.stages:
        expand_stage(expansion.application, expansion.connection, owner=expansion.owner, stage=stage.index)
        if not stage.changelogs:
            continue
        if calm:
            expansion.job("restore", stage.index)
            continue
        job = expansion.submit("restore", stage.index)
        if harm is not None:
            await_result(expansion, f"restore/{stage.index}")
            faults.harm(*harm, moment="restore")
            harm = None
        await_success(expansion, faults, job, "restore", stage.index, tries=tries)
    faults.await_returned()


def start_catch_up(expansion: Expansion) -> Popen[bytes]:
    """Prove the copies, start catch_up, and return the job when it is close to the ends."""
    expansion.prove_copies()
    job = expansion.submit("catch_up")
    await_result(expansion, "catch_up", "ready")
    return job


def await_success(
    expansion: Expansion, faults: Faults, job: Popen[bytes], name: str, stage: int | None = None, *, tries: int
) -> None:
    """Wait for the success of a submitted job. If it fails, submit it again as long as tries are left."""
    for left in reversed(range(tries)):
        if job.wait(400) == 0:
            return
        assert left, expansion.log_of(name, stage)
        faults.done.append(f"{name} tried again")
        job = expansion.submit(name, stage)


def verify(expansion: Expansion, faults: Faults, harm: Harm | None, *, tries: int = 1) -> dict[str, Any]:
    """Return the report of a verification. A broker is harmed while it runs.

    :param tries: how often a failing job is submitted at most.
    """
    if harm is None:
        return expansion.verify()
    job = expansion.submit("verify")
    wait_until(
        lambda: bool(expansion.state().report) or job.poll() is not None,
        timeout=240,
        what="verify to say how far it is",
    )
    faults.harm(*harm, moment="verify")
    await_success(expansion, faults, job, "verify", tries=tries)
    return dict(expansion.state().report)


def assert_ends_verified(
    stack: FlightsStack, expansion: Expansion, faults: Faults, report: dict[str, Any]
) -> None:
    """Finish, and compare the final results."""
    assert report.get("passed"), (report, expansion.log_of("verify"))
    faults.await_returned()
    expansion.finish()
    stack.finish_replay()
    try:
        stack.await_equal("flights-g2")
    except TimeoutError:
        print_left_behind(expansion.connection, "flights-g2")
        raise
    journal = expansion.state().journal
    assert journal is not None
    parts = ", ".join(f"{part} {seconds:.1f}" for part, seconds in journal.timings.items())
    print(f"RESULT verified, equal; pause in s: {parts}; {'; '.join(faults.done)}", flush=True)


def await_result(expansion: Expansion, job: str, *states: str) -> None:
    """Wait until a job has left a result in one of the given states."""

    def left() -> bool:
        result = expansion.state().results.get(job)
        return result is not None and (not states or result.state in states)

    wait_until(left, timeout=240, what=f"a result of {job}")
