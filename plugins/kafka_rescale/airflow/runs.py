"""Who this run is, and whether another run has ended."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from kafka_rescale.core.autoscaling.decision import RunState

if TYPE_CHECKING:
    from airflow.sdk import Context

    from kafka_rescale.core.control.lease import Lease

log = logging.getLogger(__name__)

FINISHED_STATES = frozenset({"success", "failed"})
PREFLIGHT_TASK = "preflight"
PLAN_TASK = "plan"
PREWARM_TASK = "prewarm"
GATE_TASK = "gate_all"
REHEARSE_TASK = "rehearse"
PLAN_TABLE_KEY = "table"
PLAN_BRIEF_KEY = "brief"
ID_VARIABLE = "kafka_rescale_airflow_id"


def owner_of(context: Context | Mapping[str, Any]) -> str:
    """Return this run's name as the owner of a lease, ``<dag_id>/<run_id>``; never anything with a date in it."""
    dag_run = context["dag_run"]
    return f"{dag_run.dag_id}/{dag_run.run_id}"


def airflow_id() -> str:
    """Return what tells this Airflow from others, a Variable made when first asked for; empty without an answer.

    A database that is made anew is another Airflow.
    """
    from airflow.sdk import Variable

    try:
        known = Variable.get(ID_VARIABLE, default=None)
        if known is None:
            known = uuid4().hex
            Variable.set(
                ID_VARIABLE, known, description="Kafka Rescale: tells this Airflow's leases from others'."
            )
        return str(known)
    except Exception as error:
        log.warning("the identity of this Airflow is unknown: %s", error)
        return ""


def owner_is_finished(held: Lease) -> bool | None:
    """Whether the run that holds a lease has ended, as far as Airflow can tell.

    A run that isn't there was deleted, if it was this Airflow's: another one may share the brokers.

    :returns: None without a clear answer (another kind of owner, another Airflow's run, an API that does not
        answer): then the lease is kept until it expires.
    """
    if held.owner.startswith("shell/"):
        return None
    state = run_state(held.owner)
    if state is RunState.ABSENT:
        return True if held.airflow and held.airflow == airflow_id() else None
    return None if state is RunState.UNKNOWN else state is not RunState.RUNNING


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
    ended = getattr(state, "value", state)  # an Enum here, not a StrEnum
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
