"""The DAGs that a person starts beside an expansion: roll it back, accept findings, retire what it has left."""

from __future__ import annotations

from pathlib import Path

from airflow.sdk import DAG, Param

from kafka_rescale.airflow.dags.params import accept_params, retire_params, roll_back_params
from kafka_rescale.airflow.operators.closing import AcceptOperator, RetireOperator, RollBackOperator
from kafka_rescale.airflow.retries import DEFAULT_ARGS, UNTIL_SOMEBODY_RUNS
from kafka_rescale.core.application.streams import Application

ROLL_BACK_DOC = """
Starts the running generation of `{application_id}` again as it was, and ends the expansion in progress.

An expansion that fails rolls back by itself; this is for one that shall not go on, or whose run is gone. It takes
the lease from whoever holds it: a run that still goes on finds that out and fails. It is possible until the
promotion; afterwards it changes nothing, and fails with the way that is left.
"""

ACCEPT_DOC = """
Accepts findings of `verify` for `{application_id}` that nobody can mend any more, so that the expansion can end:
misrouted records stay in their input, and what was copied is compared as it was at the promotion.

A finding names exactly what was seen: a range of offsets of one partition, or the outcome of one store's
comparison. `verify` reports it as accepted, by whom and why; anything else still fails. Afterwards clear the task
that failed.
"""

RETIRE_DOC = """
Deletes the internal topics and groups of all generations of `{application_id}` before the running one, for good.

Possible when the running one was verified and its expansion finished, and none has begun since but one that was
rolled back: the copies of that stay for the next attempt. A dry run names what would go; it needs no confirmation.
"""


def roll_back_dag(application: Application, file: Path) -> DAG:
    """Return the manual rollback of one application."""
    with _manual_dag("rollback", application, roll_back_params(), ROLL_BACK_DOC) as dag:
        RollBackOperator(
            task_id="roll_back",
            application_file=str(file),
            reason="{{ params.reason }}",
            take_over=True,
            **UNTIL_SOMEBODY_RUNS,
        )
    return dag


def accept_dag(application: Application, file: Path) -> DAG:
    """Return the acceptance of verify's findings of one application."""
    with _manual_dag("accept", application, accept_params(), ACCEPT_DOC) as dag:
        AcceptOperator(
            task_id="accept",
            application_file=str(file),
            findings="{{ params.findings | join(' ') }}",
            reason="{{ params.reason }}",
        )
    return dag


def retire_dag(application: Application, file: Path) -> DAG:
    """Return the retirement of one application's earlier generations."""
    with _manual_dag("retire", application, retire_params(application), RETIRE_DOC) as dag:
        RetireOperator(task_id="retire", application_file=str(file))
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
