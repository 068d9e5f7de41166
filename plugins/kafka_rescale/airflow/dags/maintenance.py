"""The DAGs that a person starts beside an expansion: its pace and switch, rollback, acceptance, retirement."""

from __future__ import annotations

from pathlib import Path

from airflow.sdk import DAG, Param

from kafka_rescale.airflow.dags.params import (
    accept_params,
    pace_params,
    retire_params,
    roll_back_params,
    switch_params,
    whole_number,
)
from kafka_rescale.airflow.fields import require_known_fields
from kafka_rescale.airflow.operators.closing import (
    AcceptOperator,
    PaceOperator,
    RetireOperator,
    RollBackOperator,
    SwitchOperator,
)
from kafka_rescale.airflow.retries import DEFAULT_ARGS, UNTIL_A_GENERATION_RUNS
from kafka_rescale.core.application.streams import Application

ROLL_BACK_DOC = """
Starts the running generation of `{application_id}` again as it was, and ends the expansion in progress.

An expansion that fails rolls back by itself. Use this DAG for an expansion that shall not go on, or whose run no
longer exists. The DAG takes the lease from the run that holds it. If that run is still at work, it notices the
loss and fails. A rollback is possible until the promotion. After the promotion this DAG changes nothing: it fails,
and says which way is left.

If autoscaling is on, `watch_{application_id}` asks again within 2 minutes, and then waits for approval: pause it
first to stop that.
"""

ACCEPT_DOC = """
Accepts findings of `prove` and `verify` for `{application_id}` that can't be mended any more, so that the
expansion can go on or end.
Misrouted records stay in their input, and `verify` always compares the copies as they were at the promotion. So no
later repair makes these findings disappear.

A finding names exactly what was seen: a range of offsets of one partition, or the outcome of the comparison of one
store. `verify` reports it as accepted, with the person and the reason. Any other finding still fails the task.
After this run, clear `verify` or `callback` if one of them has failed. If `prove` has failed, its attempt is
rolled back, so trigger the expansion again.
"""

SWITCH_DOC = """
Says when the expansion in progress of `{application_id}` switches: `postpone`, `cut over now`, or `cancel`.

While the expansion waits in `await_window`, it obeys within seconds. Before that, your choice is kept, and counts
once it waits there. Your choice doesn't replace the approval: while `approve_cutover` asks, answer there. If that
answer names no time, a postponement stays, but `cut over now` does not pass over the windows. When the cutover has
been let through, this DAG changes nothing: it fails. Then, until the promotion, `rollback_{application_id}` starts
the application as it was.

After `cancel`, the run ends as failed. If autoscaling is on, `watch_{application_id}` asks again within 2 minutes,
and then waits for approval: pause it first to stop that.
"""

PACE_DOC = """
Limits the copy and the proof of the expansion in progress of `{application_id}`, pauses them, or lets them go on.

The jobs at work hear of it within seconds. A pause rolls nothing back: the copies keep their positions, and the
gates and the switch wait until `resume`. While the application is stopped for its cutover, only speed matters. So
there is no limit then, and a pause is refused.
"""

RETIRE_DOC = """
Deletes the internal topics and groups of all generations of `{application_id}` before the running one, for good.

This is possible when the running generation was verified and its expansion has finished. No later expansion may be
in progress. If a later expansion was rolled back, its copies stay for the next attempt. A dry run lists what would
be deleted; it needs no confirmation.
"""


def roll_back_dag(application: Application, file: Path) -> DAG:
    """Return the DAG that rolls back one application."""
    with _manual_dag("rollback", application, roll_back_params(), ROLL_BACK_DOC) as dag:
        RollBackOperator(
            task_id="roll_back",
            application_file=str(file),
            reason="{{ params.reason }}",
            take_over=True,
            **UNTIL_A_GENERATION_RUNS,
        )
    return dag


def accept_dag(application: Application, file: Path) -> DAG:
    """Return the DAG that accepts findings about one application."""
    with _manual_dag("accept", application, accept_params(), ACCEPT_DOC) as dag:
        AcceptOperator(
            task_id="accept",
            application_file=str(file),
            findings="{{ params.findings | join(' ') }}",
            reason="{{ params.reason }}",
            pre_execute=require_known_fields,
        )
    return dag


def switch_dag(application: Application, file: Path) -> DAG:
    """Return the DAG that says when one application switches."""
    with _manual_dag("switch", application, switch_params(), SWITCH_DOC) as dag:
        SwitchOperator(
            task_id="switch",
            application_file=str(file),
            action="{{ params.action }}",
            until="{{ params.until or '' }}",
            reason="{{ params.reason }}",
            pre_execute=require_known_fields,
        )
    return dag


def pace_dag(application: Application, file: Path) -> DAG:
    """Return the DAG that limits, pauses and resumes the copy of one application."""
    with _manual_dag("pace", application, pace_params(), PACE_DOC) as dag:
        PaceOperator(
            task_id="pace",
            application_file=str(file),
            action="{{ params.action }}",
            bytes_per_second=whole_number("bytes_per_second"),
            reason="{{ params.reason }}",
            pre_execute=require_known_fields,
        )
    return dag


def retire_dag(application: Application, file: Path) -> DAG:
    """Return the DAG that deletes the earlier generations of one application."""
    with _manual_dag("retire", application, retire_params(application), RETIRE_DOC) as dag:
        RetireOperator(task_id="retire", application_file=str(file), pre_execute=require_known_fields)
    return dag


def _manual_dag(kind: str, application: Application, params: dict[str, Param], doc: str) -> DAG:
    name = application.application_id
    return DAG(
        dag_id=f"{kind}_{name}",
        auto_register=False,
        schedule=None,
        max_active_runs=1,
        params=params,
        default_args=DEFAULT_ARGS,
        doc_md=doc.format(application_id=name),
        tags=["kafka-rescale", kind, *application.tags],
    )
