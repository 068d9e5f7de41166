"""What people were told of a DAG that runs every few minutes, for as long as its runs fail."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from kafka_rescale.core.expansion.notices import failure_kind

if TYPE_CHECKING:
    from airflow.sdk import Context

log = logging.getLogger(__name__)

LONG = timedelta(hours=1)
"""A run that fails so long behind the failure before has worked meanwhile, so its failure is news, whatever it is:
a bridge works for weeks before it succeeds."""
TOLD_KEY = "told"
"""The XCom of a failed task: the kinds of failure of which people were told since a run that did not fail."""


def note_failure(context: Context) -> bool:
    """Note a failure, and return whether it is news: no run has failed alike since the last that did not fail.

    What was told goes along from run to run, so failures that take turns are each told once. If Airflow does not
    answer, people are told: a notice too many is better than one too few.
    """
    kind = failure_kind(context["task"].task_id, context.get("exception"))
    try:
        known = _known(context)
        _note(context, sorted(known | {kind}))
    except Exception as error:
        log.warning("Whether people know of this failure is unknown: %s", error)
        return True
    if kind in known:
        log.info("No notice: people were told of this failure, and no run has succeeded since.")
    return kind not in known


def _known(context: Context) -> set[str]:
    ti: Any = context["ti"]
    previous = ti.get_previous_dagrun()
    state = getattr(previous, "state", None)
    if previous is None or getattr(state, "value", state) != "failed":  # an Enum here, not a StrEnum
        return set()
    if previous.end_date is not None and datetime.now(UTC) - previous.end_date > LONG:
        return set()
    tasks: Any = context["dag"].task_ids
    notes = ti.xcom_pull(task_ids=tasks, key=TOLD_KEY, run_id=previous.run_id) or ()
    found = {kind for note in notes for kind in note or ()}
    # After a worker was killed, the DAG processor tells it, and can't store anything.
    return found or {failure_kind(task, None) for task in tasks}


def _note(context: Context, kinds: list[str]) -> None:
    if context.get("exception") is not None:
        context["ti"].xcom_push(key=TOLD_KEY, value=kinds)
