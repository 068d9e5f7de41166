"""The identity of this run, and the state of other runs."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from kafka_rescale.core.autoscaling.decision import RunState, has_ended

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator, Context

    from kafka_rescale.core.control.lease import Lease

log = logging.getLogger(__name__)

FINISHED_STATES = frozenset({"success", "failed"})
PREFLIGHT_TASK = "preflight"
PLAN_TASK = "plan"
PREWARM_TASK = "prewarm"
GATE_TASK = "gate_all"
REHEARSE_TASK = "rehearse"
PROVE_TASK = "prove"
APPROVAL_TASKS = frozenset({"approve_plan", "approve_cutover"})
CALLBACK_TASK = "callback"
PLAN_TABLE_KEY = "table"
PLAN_BRIEF_KEY = "brief"
PLAN_STEPS_KEY = "steps"
AIRFLOW_KEY = "airflow"
LATE_TOLD_KEY = "late_told_at"
ID_VARIABLE = "kafka_rescale_airflow_id"
SCHEDULED = "scheduled"
CHAINED = "__chained"
"""The end of the id of a run that a chain has triggered."""


def owner_of(context: Context | Mapping[str, Any]) -> str:
    """Return the name that this run has as the owner of a lease: ``<dag_id>/<run_id>``.

    The name never depends on a date of the run.
    """
    dag_run = context["dag_run"]
    return f"{dag_run.dag_id}/{dag_run.run_id}"


def task_of(context: Context | Mapping[str, Any]) -> str:
    """Return the name that all tries of this task have: ``<dag_id>/<run_id>/<task_id>/<map index>``."""
    ti = context["ti"]
    return f"{owner_of(context)}/{ti.task_id}/{ti.map_index}"


def triggered_by(context: Context) -> str:
    """Return the person who has triggered this run, with the run."""
    who = getattr(context["dag_run"], "triggering_user_name", None)
    return f"{who or 'somebody'} ({owner_of(context)})"


def asked_ms(task: BaseOperator, context: Context) -> int | None:
    """Return when this run was asked for, in ms since the epoch. A retry, or a run of a paused DAG, begins later.

    :returns: None for a task behind others. There the DAG decides when it is said, and not a person.
    """
    return None if task.upstream_task_ids else int(context["dag_run"].run_after.timestamp() * 1000)


def is_begun_by_schedule(context: Context) -> bool:
    """Return whether nobody but the schedule has begun this run; False once a person has cleared it.

    A retry by Airflow is no person's decision: its worker may have been away for hours.
    """
    run = context["dag_run"]
    return run.run_type == SCHEDULED and not run.clear_number


def noted_before(context: Context, key: str = "return_value") -> list[Any]:
    """Return what this task has noted in earlier runs, in no order; nothing if Airflow doesn't answer.

    To be called before the task notes anything itself.

    :param key: The key of the XCom.
    """
    try:
        found = context["ti"].xcom_pull(task_ids=context["task"].task_id, key=key, include_prior_dates=True)
    except Exception as error:
        log.warning("What earlier runs have noted is unknown: %s", error)
        return []
    # Airflow returns a single value by itself. Several are those of all earlier runs; it does not sort them, and
    # databases place runs without a date first or last.
    return found if isinstance(found, list) else [] if found is None else [found]


def airflow_id() -> str:
    """Return the id of this Airflow, which tells it from others; empty if Airflow doesn't answer.

    The id is an Airflow Variable, which the first call makes. So an Airflow with a new database is another
    Airflow.
    """
    from airflow.sdk import Variable

    try:
        known = Variable.get(ID_VARIABLE, default=None)
        # ``get`` answers the same while the API server fails, and ``keys`` raises then. Another id would take
        # every lease away from the run that holds it.
        if known is None and ID_VARIABLE not in Variable.keys(prefix=ID_VARIABLE):
            Variable.set(
                ID_VARIABLE, uuid4().hex, description="Kafka Rescale: tells this Airflow's leases from others'."
            )
            known = Variable.get(ID_VARIABLE, default=None)
        return str(known or "")
    except Exception as error:
        log.warning("The id of this Airflow is unknown: %s", error)
        return ""


def airflow_of(context: Mapping[str, Any]) -> str:
    """Return the id with which this run has begun its expansion; before that, the id of this Airflow.

    A run keeps its id, whatever happens to the Variable meanwhile. Otherwise its own tasks could not start the
    application again.
    """
    try:
        begun = context["ti"].xcom_pull(task_ids=PLAN_TASK, key=AIRFLOW_KEY)
    except Exception as error:
        log.warning("The id with which this run has begun is unknown: %s", error)
        begun = None
    return str(begun or airflow_id())


def owner_is_finished(lease: Lease) -> bool | None:
    """Return whether the run that holds a lease has ended, as far as Airflow can tell: see ``has_ended``.

    :returns: None if there is no clear answer: the owner is not a run, the run belongs to another Airflow, or the
        API doesn't answer. Then the lease is kept until it expires.
    """
    if lease.owner.startswith("shell/"):
        return None
    ours = airflow_id()
    if lease.is_of_another(ours):
        # This Airflow may have a run of the same name, which says nothing about that run.
        return None
    return has_ended(lease, run_state(lease.owner), ours)


def run_state(run: str) -> RunState:
    """Return what Airflow knows about a run.

    :param run: The run as ``<dag_id>/<run_id>``.
    :returns: ``unknown`` if the API doesn't answer. A caller must conclude nothing from that.
    """
    from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

    dag_id, _, run_id = run.partition("/")
    try:
        if not RuntimeTaskInstance.get_dr_count(dag_id=dag_id, run_ids=[run_id]):
            return RunState.ABSENT
        state = RuntimeTaskInstance.get_dagrun_state(dag_id=dag_id, run_id=run_id)
    except Exception as error:
        log.warning("The state of run %s is unknown: %s", run, error)
        return RunState.UNKNOWN
    ended = getattr(state, "value", state)  # an Enum here, not a StrEnum
    return RunState(ended) if ended in FINISHED_STATES else RunState.RUNNING


def is_queued(run: str) -> bool:
    """Return whether a run waits to begin, because another run of its DAG works or the DAG is paused.

    :param run: The run as ``<dag_id>/<run_id>``.
    :raises Exception: The API doesn't answer.
    """
    from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

    dag_id, _, run_id = run.partition("/")
    return bool(RuntimeTaskInstance.get_dr_count(dag_id=dag_id, run_ids=[run_id], states=["queued"]))


def was_marked(run: str) -> bool:
    """Return whether a person has marked a run as failed or as success before its last task began.

    Of a run that has taken the lease, Airflow skips the last task in no other case.

    :param run: The run as ``<dag_id>/<run_id>``.
    :raises Exception: The API doesn't answer.
    """
    from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

    dag_id, _, run_id = run.partition("/")
    found = RuntimeTaskInstance.get_task_states(dag_id=dag_id, run_ids=[run_id], task_ids=[CALLBACK_TASK])
    state = found.get(run_id, {}).get(CALLBACK_TASK)
    return bool(getattr(state, "value", state) == "skipped")


def failed_tasks(run: str) -> list[str]:
    """Return the failed tasks of a run, sorted. The list is empty if the API doesn't answer.

    :param run: The run as ``<dag_id>/<run_id>``.
    """
    from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

    dag_id, _, run_id = run.partition("/")
    try:
        states = RuntimeTaskInstance.get_task_states(dag_id=dag_id, run_ids=[run_id])
    except Exception as error:
        log.warning("The tasks of run %s are unknown: %s", run, error)
        return []
    found = states.get(run_id, {})
    return sorted(task for task, state in found.items() if getattr(state, "value", state) == "failed")
