"""How to go on after a stream thread's ``spark-submit`` has failed, was killed, or has vanished."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kafka_rescale.core.application.pipeline import PipelineApplication
from kafka_rescale.core.assignment.stream_threads import Decision
from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.keys import Concern
from kafka_rescale.core.control.processing import Processing
from kafka_rescale.core.control.records import Change
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import Fenced, Outage
from kafka_rescale.core.processing.dead_threads import has_lost_its_spark, put_out, thread_died
from kafka_rescale.core.processing.exception_handler import exception_handler
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.kafka.control.lease import update_despite_races

SPARK_IS_GONE = "its Spark has begun no task in run {}, while that of other clients has: {}"
REASON_KEPT = 500


@dataclass(frozen=True)
class Attempt:
    """One attempt at a thread's part in a level of a run.

    :param run: ``<dag_id>/<run_id>``.
    :param job: the name of its result, ``process/<level>/<thread>``.
    :param thread: its name when the run began.
    :param number: number of the attempt, from 1.
    :param is_last: whether Airflow does not retry the task after this attempt.
    """

    run: str
    job: str
    thread: str
    number: int
    is_last: bool = False

    def own(self, result: JobResult | None) -> JobResult | None:
        """Return a result of the job if this attempt has left it; None if another attempt has."""
        is_own = result is not None and (result.run, result.attempt) == (self.run, self.number)
        return result if is_own else None


def handle_failure(
    application: PipelineApplication, connection: KafkaConnection, attempt: Attempt, error: Exception
) -> Processing | None:
    """Let the handler decide about the thread of an attempt that has just failed.

    :param error: the error that the submission has raised. It does not tell what the job itself has reported.
    :returns: the clients as they are now; None if another run's assignment is in force.
    """
    return _bury(application, connection, attempt, error, lambda result: True, may_put_out=attempt.is_last)


def take_over(
    application: PipelineApplication, connection: KafkaConnection, attempt: Attempt
) -> Processing | None:
    """Let the handler decide about the thread of an earlier attempt that never reported its end.

    :returns: the clients as they are now; None if another run's assignment is in force.
    """

    def vanished(result: JobResult | None) -> bool:
        mine = result is not None and result.run == attempt.run
        return mine and result is not None and result.state == "running" and result.attempt < attempt.number

    return _bury(application, connection, attempt, Exception("it has ended without a word"), vanished)


def _bury(
    application: PipelineApplication,
    connection: KafkaConnection,
    attempt: Attempt,
    error: Exception,
    is_dead: Callable[[JobResult | None], bool],
    *,
    may_put_out: bool = False,
) -> Processing | None:
    """Record a thread as dead with the handler's decision. The handler is asked only once."""

    def change(state: ControlState) -> Change:
        processing, result = state.processing, state.results.get(attempt.job)
        if processing is None or processing.run != attempt.run or not is_dead(result):
            return {}
        name = processing.thread_for(attempt.thread)
        after = thread_died(processing, name, decision)
        if decision is Decision.REPLACE_THREAD and may_put_out and _is_gone(attempt, state):
            after = put_out(processing, name, SPARK_IS_GONE.format(attempt.run, str(error)[:REASON_KEPT]))
        return {Concern.PROCESSING: after, **_closed(attempt, result, str(error))}

    control = ControlTopic(connection, application.application_id)
    found = control.read()
    if not is_dead(found.results.get(attempt.job)):
        # The usual case needs no transaction.
        return found.processing if found.processing and found.processing.run == attempt.run else None
    decision = exception_handler(application.uncaught_exception_handler)(
        _died_of(attempt, found.results.get(attempt.job), error)
    )
    # All threads of a run may die at once, and each has a task that reports it: these tasks race.
    processing = update_despite_races(control, change, lost=(Fenced,)).processing
    return processing if processing is not None and processing.run == attempt.run else None


def _is_gone(attempt: Attempt, state: ControlState) -> bool:
    last = attempt.own(state.results.get(attempt.job))
    return has_lost_its_spark(state.processing or Processing(), attempt.job, last, state.results)


def _died_of(attempt: Attempt, result: JobResult | None, error: Exception) -> Exception:
    """Return the error for the handler: the job's own, an outage, or an error that the job has said nothing."""
    if (own := attempt.own(result)) is not None and own.failure is not None:
        return own.failure.error
    if isinstance(error, Outage):
        return error
    return Outage(
        f"stream thread {attempt.thread}",
        found=str(error),
        expected="a job that says why it ends",
        remedy="See the logs of spark-submit and of the machine that it ran on.",
    )


def _closed(attempt: Attempt, result: JobResult | None, reason: str) -> Mapping[str, JobResult]:
    """Record in the name of the dead job that it has failed, unless the job has done so itself."""
    if result is not None and result.run == attempt.run and result.state != "running":
        return {}
    known = result if result is not None and result.run == attempt.run else None
    said = known or JobResult(job=attempt.job, run=attempt.run, attempt=attempt.number, state="failed")
    return {
        f"{Concern.RESULT}/{attempt.job}": said.model_copy(update={"state": "failed", "detail": reason[:2000]})
    }
