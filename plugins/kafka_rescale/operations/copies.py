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
    first = results_of(rescale, job).get(job)
    first_beat = 0 if first is None else first.as_of_ms

    def beats() -> bool:
        # A heartbeat must have moved: a record left by a job that has died says `ready` for ever.
        result = results_of(rescale, job).get(job)
        return result is not None and result.state == "ready" and result.as_of_ms not in {0, first_beat}

    wait_until(beats, seconds=READY_SECONDS, what=f"the {job} job to {what}", remedy=remedy)
