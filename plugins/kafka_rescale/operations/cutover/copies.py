"""What a cutover asks about its jobs: are they ready, and have they copied the rest?"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable

from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.journal import Journal
from kafka_rescale.core.errors import Fenced, InvalidInput, Outage, Refused, UnsafeState
from kafka_rescale.kafka.client.waiting import wait_until
from kafka_rescale.operations.cutover.jobs_beside import JobsBeside

log = logging.getLogger(__name__)

READY_SECONDS = 600.0
AGAIN_SECONDS = 90.0
"""Airflow tries a failed job again after ten seconds, and its driver needs time to come up."""
FINAL = frozenset(error.__name__ for error in (Fenced, InvalidInput, Refused, UnsafeState))
"""The errors after which Airflow does not try a job again, as the job's result names them."""
POLL_SECONDS = 0.05


def is_copied(result: JobResult | None, journal: Journal) -> bool:
    """Return whether a job has copied all that this attempt at the cutover has captured."""
    return result is not None and (result.state, result.detail) == ("done", f"attempt {journal.attempt}")


def await_copied(jobs: JobsBeside, journal: Journal, seconds: float) -> None:
    """Wait until ``catch_up`` has copied all that was captured. If there is a bridge, it has to go on meanwhile.

    :param seconds: how long at most.
    :raises Outage: ``catch_up`` has not copied it in time, or one of the two jobs has failed or gone silent.
    """

    def is_done() -> bool:
        if is_copied(jobs.result("catch_up"), journal):
            return True
        jobs.assert_at_work("catch_up", _remedy("catch_up"))
        if journal.plan.bridges:
            jobs.assert_at_work("bridge", _remedy("bridge"))
        return False

    wait_until(
        is_done,
        seconds=seconds,
        what="the catch_up job to copy the last delta",
        remedy="Look at the log of the catch_up task; blue has been started again.",
        longest_pause=POLL_SECONDS,
    )


def signs_of(jobs: JobsBeside, needed: Iterable[str]) -> dict[str, int]:
    """Return how many signs of life have been seen of each job, for ``await_signs``."""
    return {job: jobs.signs(job) for job in needed}


def await_signs(jobs: JobsBeside, seen: dict[str, int], seconds: float) -> None:
    """Wait for another sign of life of each job that the application is about to depend on.

    :param seen: by job, the number of signs that had been seen when the application had been stopped.
    :param seconds: how long at most.
    :raises Outage: a job gives no further sign, or says that it has failed.
    """

    def are_alive() -> bool:
        for job in seen:
            jobs.assert_at_work(job, _remedy(job))
        return all(jobs.signs(job) > before for job, before in seen.items())

    wait_until(
        are_alive,
        seconds=seconds,
        what=f"another sign of life of the job {', '.join(seen)}",
        remedy="Look at the log of its task; blue has been started again.",
        longest_pause=POLL_SECONDS,
    )


def _remedy(job: str) -> str:
    return (
        "Nothing has been promoted, and the application is started again as it was. Look at the log of the "
        f"{job} task; then trigger the expansion again."
    )


def await_ready(jobs: JobsBeside, job: str, what: str, remedy: str) -> None:
    """Wait until a job says that it is ready. A record from before this call doesn't count: its job may have died.

    A job that has failed gets some time, because Airflow tries it again after most errors.

    :raises Outage: the job isn't ready in time, or has failed and Airflow does not try it again.
    """
    first, failures = jobs.signs(job), dict[int, float]()

    def is_ready() -> bool:
        result, signs = jobs.result(job), jobs.signs(job)
        if result is None or signs == first:
            return False
        if result.state == "failed":
            if signs not in failures:
                log.error("the %s job has failed; waiting for Airflow to try it again: %s", job, result.detail)
            since = failures.setdefault(signs, time.monotonic())
            if result.detail.partition(":")[0] in FINAL or time.monotonic() - since > AGAIN_SECONDS:
                raise Outage(
                    f"{job} job", found=f"failed: {result.detail}", expected=f"the job to {what}", remedy=remedy
                )
        return result.state == "ready"

    wait_until(is_ready, seconds=READY_SECONDS, what=f"the {job} job to {what}", remedy=remedy)
