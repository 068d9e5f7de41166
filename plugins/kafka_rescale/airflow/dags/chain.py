"""``expand_chain_<name>``: expands several applications with one trigger, the most downstream first."""

from __future__ import annotations

from pathlib import Path

from airflow.sdk import DAG, TaskGroup, chain

from kafka_rescale.airflow.dags.params import chain_params, whole_number
from kafka_rescale.airflow.fields import require_known_fields
from kafka_rescale.airflow.operators.admin import PreflightOperator
from kafka_rescale.airflow.operators.chain import MemberExpansionOperator, UnpausedDagsOperator
from kafka_rescale.airflow.retries import DEFAULT_ARGS
from kafka_rescale.airflow.runs import CHAINED
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.plan.chain import expansion_order, may_belong
from kafka_rescale.core.plan.shared_inputs import refuse_shared_growth, refuse_shared_successors

DOC = """
Expands the applications {applications}, one after the other, each by its own DAG.

First the run checks all applications. If a check refuses, the run ends before anything is touched. Then it expands
and verifies the most downstream application before it begins the next. If one expansion fails, its own run rolls
it back, and the applications upstream of it go on unchanged. To continue with the chain, clear the failed task.
If the failed expansion has asked for the approval of its cutover, trigger the chain again instead: Airflow shows a
run's first question only, so a cleared run fails instead of asking with an old proof.
"""
POLL_SECONDS = 5
Member = tuple[Application, Path]


def chain_dags() -> dict[str, DAG]:
    """Return the DAG of every chain that application files name, by DAG id.

    A chain that lacks a member would expand the applications upstream of that member too early. So a chain has no
    DAG while a member's file can't be used, or while an unusable file may belong to a member.
    """
    from kafka_rescale.airflow.dags.factory import invalid_dag

    found, unusable = _read()
    dags: list[DAG] = []
    for name, members in found.items():
        stands_for = f"expand_chain_{name}"
        broken = next((file for file, text in unusable.items() if may_belong(text, name)), None)
        if broken is not None:
            dags.append(invalid_dag(stands_for, broken, "It is, or may be, a member of the chain."))
            continue
        try:
            dags.append(_dag(stands_for, name, members))
        except InvalidInput as error:
            dags.append(invalid_dag(stands_for, members[0][1].parent, str(error)))
    return {dag.dag_id: dag for dag in dags}


def _read() -> tuple[dict[str, list[Member]], dict[Path, str]]:
    """Return the members of each chain, and the text of each file that can't be used."""
    from kafka_rescale.operations.application.load import application_files, load_application
    from kafka_rescale.operations.application.texts import text_if_readable

    found: dict[str, list[Member]] = {}
    unusable: dict[Path, str] = {}
    for file in application_files():
        try:
            application = load_application(file)
        except Exception:
            unusable[file] = text_if_readable(file)  # An empty text may belong to any chain.
            continue
        if application.chain is not None:
            found.setdefault(application.chain, []).append((application, file))
    return found, unusable


def _dag(dag_id: str, name: str, members: list[Member]) -> DAG:
    from kafka_rescale.operations.application.load import topology_of

    ordered = expansion_order(name, [application for application, _ in members])
    refuse_shared_successors(name, ordered)
    refuse_shared_growth(name, [(application, topology_of(application)) for application in ordered])
    files = {application.application_id: file for application, file in members}
    with DAG(
        dag_id=dag_id,
        auto_register=False,
        schedule=None,
        max_active_runs=1,
        params=chain_params(),
        default_args=DEFAULT_ARGS,
        render_template_as_native_obj=True,
        doc_md=DOC.format(applications=", ".join(f"`{a.application_id}`" for a in ordered)),
        tags=["kafka-rescale", "expand", "chain"],
    ) as dag:
        with TaskGroup("preflight", tooltip="checks every application before anything is touched") as checked:
            for application in ordered:
                PreflightOperator(
                    task_id=application.application_id,
                    application_file=str(files[application.application_id]),
                    target=whole_number("target"),
                    after_readers=True,
                    pre_execute=require_known_fields,
                )
            dag_ids = [f"expand_{application.application_id}" for application in ordered]
            UnpausedDagsOperator(task_id="unpaused_dags", dag_ids=dag_ids, retries=0)
        chain(checked, *map(_expansion, ordered))
    return dag


def _expansion(application: Application) -> MemberExpansionOperator:
    name = application.application_id
    chosen = ("target", "dry_run", "approve_cutover")
    return MemberExpansionOperator(
        task_id=name,
        trigger_dag_id=f"expand_{name}",
        # Every attempt uses the same run id, so that a later attempt continues the run that an earlier one began.
        trigger_run_id=f"{{{{ run_id }}}}{CHAINED}",
        reset_dag_run=True,
        conf={param: f"{{{{ params.{param} }}}}" for param in chosen},
        wait_for_completion=True,
        deferrable=True,
        poke_interval=POLL_SECONDS,
        fail_when_dag_is_paused=True,
        retries=0,
    )
