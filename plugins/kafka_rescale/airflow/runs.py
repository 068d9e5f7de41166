"""Who this run is, and whether another run has ended."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kafka_rescale.core.autoscaling import RunState

if TYPE_CHECKING:
    from airflow.sdk import Context

log = logging.getLogger(__name__)

FINISHED_STATES = frozenset({"success", "failed"})
PREFLIGHT_TASK = "preflight"
PLAN_TASK = "plan"
PLAN_TABLE_KEY = "table"


def owner_of(context: Context | Mapping[str, Any]) -> str:
    """Return this run's name as the owner of a lease, ``<dag_id>/<run_id>``; never anything with a date in it."""
    dag_run = context["dag_run"]
    return f"{dag_run.dag_id}/{dag_run.run_id}"


def owner_is_finished(owner: str) -> bool | None:
    """Whether the run that is named so has ended, as far as Airflow can tell.

    :returns: None without a clear answer (another kind of owner, a deleted run, an API that does not answer): then
        the lease is kept until it expires.
    """
    from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

    dag_id, _, run_id = owner.partition("/")
    if not run_id or dag_id == "shell":
        return None
    try:
        state = RuntimeTaskInstance.get_dagrun_state(dag_id=dag_id, run_id=run_id)
    except Exception as error:
        log.warning("the state of run %s is unknown: %s", owner, error)
        return None
    return getattr(state, "value", state) in FINISHED_STATES  # an Enum here, not a StrEnum


def run_state(run: str) -> RunState:
    """Return what Airflow knows of a run.

    :param run: ``<dag_id>/<run_id>``.
    :returns: ``unknown`` where the API doesn't answer: nothing is concluded from that.
    """
    from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

    dag_id, _, run_id = run.partition("/")
    try:
        if not RuntimeTaskInstance.get_dr_count(dag_id=dag_id, run_ids=[run_id]):
            return RunState.ABSENT
        state = RuntimeTaskInstance.get_dagrun_state(dag_id=dag_id, run_id=run_id)
    except Exception as error:
        log.warning("the state of run %s is unknown: %s", run, error)
        return RunState.UNKNOWN
    ended = getattr(state, "value", state)
    return RunState(ended) if ended in FINISHED_STATES else RunState.RUNNING


def failed_tasks(run: str) -> list[str]:
    """Return the tasks of a run that have failed, sorted; none if the API doesn't answer.

    :param run: ``<dag_id>/<run_id>``.
    """
    from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

    dag_id, _, run_id = run.partition("/")
    try:
        states = RuntimeTaskInstance.get_task_states(dag_id=dag_id, run_ids=[run_id])
    except Exception as error:
        log.warning("the tasks of run %s are unknown: %s", run, error)
        return []
    found = states.get(run_id, {})
    return sorted(task for task, state in found.items() if getattr(state, "value", state) == "failed")
