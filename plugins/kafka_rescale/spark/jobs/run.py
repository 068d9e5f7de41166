"""The program of a job: from its arguments to its exit code."""

from __future__ import annotations

import logging
import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence

from kafka_rescale.core.control.job_failure import JobFailure
from kafka_rescale.core.errors import Fenced, Outage, RescaleError
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.spark.jobs.arguments import parse
from kafka_rescale.spark.jobs.begin import begin_process
from kafka_rescale.spark.jobs.exit_codes import DONE, FAILED, SUPERSEDED
from kafka_rescale.spark.jobs.job import Job, say

log = logging.getLogger("kafka_rescale.job")

RECORD_SECONDS = 120.0
RECORD_PAUSE_SECONDS = 1.0


def run(name: str, body: Callable[[Job], None], *options: str, arguments: Sequence[str] | None = None) -> int:
    """Run a job and return its exit code. A job that fails leaves its error as a result, unless it is fenced.

    :param options: the optional arguments that this job has.
    :param arguments: command line without the program's name.
    """
    begin_process()
    parsed = parse(name, options, arguments)
    job: Job | None = None
    try:
        job = Job(name, parsed, KafkaConnection.from_environment())
        body(job)
    except Fenced as fenced:
        say(f"superseded: {fenced}")
        return SUPERSEDED
    except Exception as error:
        if not isinstance(error, RescaleError):
            traceback.print_exc()
        say(f"failed: {type(error).__name__}: {error}")
        _leave_failure(job, error)
        return FAILED
    return DONE


def end(code: int) -> None:
    """End the process. Tasks that are still running end with the JVM; this does not wait for them."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _leave_failure(job: Job | None, error: Exception) -> None:
    """Record why a job has failed: a cutover that waits for the job then ends its pause."""
    if job is None:
        return
    deadline = time.monotonic() + RECORD_SECONDS
    while True:
        try:
            job.put("failed", detail=f"{type(error).__name__}: {error}"[:2000], failure=JobFailure.of(error))
            return
        except Outage as outage:
            if time.monotonic() >= deadline:
                log.warning("the failure could not be recorded for %.0f s: %s", RECORD_SECONDS, outage)
                return
            log.warning("the failure is not recorded yet, and the job tries again: %s", outage)
        except RescaleError as another:
            log.warning("the failure could not be recorded: %s", another)
            return
        time.sleep(RECORD_PAUSE_SECONDS)
        # The previous writer may be in the middle of a transaction; a new writer ends that.
        job.control = ControlTopic(job.connection, job.arguments.application)
