"""The result of a Spark job from the control topic, small enough for XCom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka_rescale.core.errors import Fenced, InvalidInput, Refused, RescaleError, UnsafeState
from kafka_rescale.core.verify.report import is_about, remedy_beside_copies

if TYPE_CHECKING:
    from kafka_rescale.core.control.state import ControlState
    from kafka_rescale.kafka.client.connection import KafkaConnection

REPORT = "verify"


def result_of(connection: KafkaConnection, application_id: str, key: str) -> dict[str, Any]:
    """Return a job's result without its per-partition part; for ``verify``, the plain fields of the report."""
    from kafka_rescale.kafka.control.control_topic import ControlTopic

    state = ControlTopic(connection, application_id).read()
    if key == REPORT:
        return {k: v for k, v in state.report.items() if isinstance(v, str | int | float | bool)}
    result = state.results.get(key)
    return result.model_dump(mode="json", exclude={"partitions", "lags"}) if result else {}


def report_as_of(connection: KafkaConnection, application_id: str, key: str) -> int:
    """Return when the last job ``verify`` began, in epoch milliseconds; 0 without a report, and for other jobs."""
    from kafka_rescale.kafka.control.control_topic import ControlTopic

    if key != REPORT:
        return 0
    return _as_of_ms(ControlTopic(connection, application_id).read())


def failure_of(
    connection: KafkaConnection, application_id: str, key: str, run: str, attempt: int, *, before_ms: int
) -> RescaleError | None:
    """Return the error of a job that left a reason, if a retry can't help; None otherwise.

    ``spark-submit`` answers only with an exit code. Without this function, Airflow would retry ``verify`` after
    each finding.

    :param run: The run that holds the lease.
    :param attempt: The task's try number.
    :param before_ms: What ``report_as_of`` returned before the job was submitted. A report names no attempt. If
        the job has ended without a report, the control topic still has that of an earlier job, whose findings a
        person may have accepted since.
    """
    from kafka_rescale.kafka.control.control_topic import ControlTopic

    state = ControlTopic(connection, application_id).read()
    if key == REPORT:
        return _findings(application_id, state) if _as_of_ms(state) != before_ms else None
    result = state.results.get(key)
    if result is None or (result.run, result.attempt, result.state) != (run, attempt, "failed"):
        return None
    kind, _, message = result.detail.partition(": ")
    final = {error.__name__: error for error in (Fenced, InvalidInput, Refused, UnsafeState)}.get(kind)
    if final is None:
        return None
    return final(f"job {key}", found=message, expected="no such error", remedy="See the task's log.")


def _as_of_ms(state: ControlState) -> int:
    as_of_ms = state.report.get("as_of_ms")
    return as_of_ms if isinstance(as_of_ms, int) else 0


def _findings(application_id: str, state: ControlState) -> RescaleError | None:
    journal = state.journal
    if journal is None or state.report.get("passed") is not False:
        return None
    if not is_about(state.report, journal):
        return None
    if remedy := remedy_beside_copies(state.report):
        return UnsafeState(
            f"verification of {application_id}",
            found="findings, but none about the copies: see the report in this log",
            expected="records in the partitions of their keys, and nothing lost in aborted transactions",
            remedy=f"Let {journal.plan.green} run: its copies are whole. {remedy} Then clear this task.",
        )
    return UnsafeState(
        f"verification of {application_id}",
        found="findings, see the report in this log",
        expected="two equal generations",
        remedy=f"Stop {journal.plan.green}, and look at the findings before anything else. Everything that it had "
        "written before the promotion is still in its changelogs."
        if journal.plan.is_in_place
        else f"{journal.plan.blue} is whole, and stays untouched until `retire`. Stop {journal.plan.green}, "
        "and look at the findings before anything else.",
    )
