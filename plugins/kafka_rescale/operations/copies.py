"""What a cutover has to know of the jobs beside it: whether they are ready, and have copied the rest."""

from __future__ import annotations

from kafka_rescale.core.control_records import JobResult
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.journal import Journal
from kafka_rescale.core.plan import Plan
from kafka_rescale.kafka.waiting import wait_until
from kafka_rescale.operations.gate import assert_nothing_committed
from kafka_rescale.operations.promotion import assert_unused
from kafka_rescale.operations.rescale import Rescale, green

READY_SECONDS = 600.0
ALIVE_SECONDS = 20.0
"""A sign of life is given every 2 s and, within the pause, when it is asked for."""


def await_copies(rescale: Rescale, plan: Plan) -> None:
    """Wait until the running ``catch_up`` job, and a bridge if there is one, say that they are ready.

    In place it is the ``move`` job: a driver that only started after the stop would be most of the pause.

    :raises UnsafeState: somebody uses already what green is going to have.
    :raises Outage: a job doesn't say so in time.
    """
    if plan.is_in_place:
        if plan.growing:
            _await_ready(rescale, "move", "be up", "Look at the log of the move task.")
        return
    _assert_green_is_cold(rescale, plan)
    assert_unused(rescale, plan)
    _await_ready(rescale, "catch_up", "say that it is near the ends", "Look at the log of the catch_up task.")
    if plan.bridges:
        remedy = f"Unpause bridge_{plan.application}, and look at the log of its bridge task."
        _await_ready(rescale, "bridge", "be up", remedy)


def results_of(rescale: Rescale, job: str) -> dict[str, JobResult]:
    """Return what a job has left so far, ``<job>/<stage>`` for its parts."""
    results = rescale.control.read().results
    return {key: result for key, result in results.items() if key.partition("/")[0] == job}


def is_copied(result: JobResult | None, journal: Journal) -> bool:
    """Return whether a job has copied all that this attempt at the cutover has captured."""
    return result is not None and (result.state, result.detail) == ("done", f"attempt {journal.attempt}")


def last_sign_of_life(rescale: Rescale, job: str) -> int:
    """Return when a job was last heard of, by its own clock in ms; 0 if never."""
    result = results_of(rescale, job).get(job)
    return 0 if result is None else result.as_of_ms


def await_mover(rescale: Rescale, plan: Plan, heard: int) -> None:
    """Wait for another sign of life of the ``move`` job, if the application is about to depend on it.

    :param heard: the last one before; clocks of two machines are never compared.
    :raises Outage: there is none.
    """
    if plan.growing:
        wait_until(
            lambda: _beats(rescale, "move", heard, {"ready", "running"}),
            seconds=ALIVE_SECONDS,
            what="another sign of life of the move job",
            remedy="It has died since it said that it was ready: look at the log of the move task. Nothing has "
            "been grown; trigger the expansion again.",
        )


def _assert_green_is_cold(rescale: Rescale, plan: Plan) -> None:
    if rescale.is_alive(green(plan)):
        raise UnsafeState(
            f"application {plan.green}",
            found="a running instance",
            expected="none before the promotion, behind the warm-up gate or not",
            remedy=f"Stop it; it would process what {plan.blue} still owns, or never process anything.",
        )
    assert_nothing_committed(rescale, plan)


def _await_ready(rescale: Rescale, job: str, what: str, remedy: str) -> None:
    first = last_sign_of_life(rescale, job)
    wait_until(
        lambda: _beats(rescale, job, first, {"ready"}),
        seconds=READY_SECONDS,
        what=f"the {job} job to {what}",
        remedy=remedy,
    )


def _beats(rescale: Rescale, job: str, since: int, states: set[str]) -> bool:
    """Whether a job's heartbeat has moved: a record left by one that has died says ``ready`` for ever."""
    result = results_of(rescale, job).get(job)
    return result is not None and result.state in states and result.as_of_ms not in {0, since}
