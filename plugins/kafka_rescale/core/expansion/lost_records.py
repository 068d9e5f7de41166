"""The control topic was deleted, or made anew, while an attempt was at work: a person has to act."""

from __future__ import annotations

from kafka_rescale.core.control.journal import Journal
from kafka_rescale.core.control.keys import CONTROL_TOPIC
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.expansion.pause_alert import is_stopped


def lost_records(attempt: Journal) -> UnsafeState:
    """Return the error that says who is down. Nobody starts it without records.

    They would tell whether the next generation was promoted meanwhile, by another try or another run. Then both
    generations would process the same inputs.

    :param attempt: the journal as this process has seen it last.
    """
    return UnsafeState(
        f"expansion of {attempt.plan.application}",
        found="no journal",
        expected=f"attempt {attempt.attempt}, which this process has seen in phase {attempt.phase}",
        remedy=f"THE CONTROL TOPIC HAS LOST ITS RECORDS. {_by_hand(attempt)} Then look what became of the topic "
        f"{CONTROL_TOPIC}, before another expansion begins.",
    )


def no_journal(application: str) -> UnsafeState:
    """Return the error of a process that has never seen a journal.

    :param application: base name of the application.
    """
    return UnsafeState(
        f"expansion of {application}",
        found="no journal",
        expected="an expansion that has begun",
        remedy=f"Trigger the expansion; its plan task begins it. But {lost_perhaps(application)}.",
    )


def lost_perhaps(application: str) -> str:
    """Return what to look for where there is no journal, and nothing tells whether there was one.

    :param application: base name of the application.
    """
    return (
        f"if one had begun, the topic {CONTROL_TOPIC} has lost its records: then see that {application} or its "
        "next generation runs"
    )


def _by_hand(attempt: Journal) -> str:
    plan = attempt.plan
    held = " Producers may be held: release them." if attempt.pause_started_ms else ""
    if not is_stopped(attempt):
        running = plan.green if attempt.is_promoted else plan.blue
        return f"{running} was not stopped by this expansion: see that it runs.{held}"
    if attempt.is_promoted:
        return (
            f"{plan.green} owns the inputs since its promotion: NOBODY PROCESSES ITS INPUTS unless it was started "
            "since. The log of the task cutover says what was done: growth, start offsets, start. Do the rest by "
            f"hand, and never start the generation before it.{held}"
        )
    other = "" if plan.is_in_place else f"See that {plan.green} does not run, and "
    return (
        f"{plan.blue} was stopped, and NOBODY PROCESSES ITS INPUTS. {other}START {plan.blue} BY HAND NOW, "
        f"as it was, for {plan.partitions_before} partitions.{held}"
    )
