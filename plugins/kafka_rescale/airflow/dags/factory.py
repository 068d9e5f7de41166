"""One static ``expand_<application>`` DAG per application file.

The chain comes from the file and its topology alone, never from the cluster: mapped tasks would give no order, and
a DAG that follows a cluster would get a new version with every change of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG, TaskGroup, chain

from kafka_rescale.airflow.dags.expansion_tasks import AFTER_PREWARM, ExpansionTasks
from kafka_rescale.airflow.dags.in_place import DOC as IN_PLACE_DOC
from kafka_rescale.airflow.dags.in_place import build_in_place
from kafka_rescale.airflow.dags.params import expansion_params
from kafka_rescale.airflow.notifications import attach
from kafka_rescale.airflow.operators.invalid import InvalidApplicationOperator
from kafka_rescale.airflow.retries import DEFAULT_ARGS, FIRST_IN_LINE, THROUGH_AN_OUTAGE
from kafka_rescale.core.application.runtimes import SPARK
from kafka_rescale.core.application.streams import Application, Mode
from kafka_rescale.core.plan.planning import stage_name
from kafka_rescale.core.topology.topology import Topology

if TYPE_CHECKING:
    from airflow.sdk.definitions._internal.node import DAGNode

DAG_ID_LENGTH = 250
START = datetime(2025, 1, 1, tzinfo=UTC)
"""Only a scheduled DAG looks at it; a fixed one, so that parsing gives the same DAG each time."""

DOC = """
Re-partitions the state of `{application_id}` while it keeps running, then cuts over.

`preflight` and `plan` change nothing; a dry run ends there. Each stage copies one sub-topology's state, the
most downstream first. `prewarm` lets the new generation restore its stores behind the warm-up gate, if the
application file says how, and stops it again. `catch_up` keeps every copy near while `gate_all` waits for all of
them to be within the acceptable lag at the same time. `cutover` stops the running generation for a moment and
starts the new one; `verify` compares the two over the whole state. If anything fails before the promotion,
`roll_back` starts the old generation as it was and the run ends as failed; trigger again to continue where the
copies are.
"""


def expansion_dag(application: Application, file: Path) -> DAG:
    """Return the expansion DAG of one application."""
    from kafka_rescale.operations.application.load import topology_of

    name, in_place = application.application_id, application.mode is Mode.IN_PLACE
    build, doc = (build_in_place, IN_PLACE_DOC) if in_place else (build_expansion, DOC)
    with DAG(
        dag_id=f"expand_{name}",
        auto_register=False,
        schedule=application.schedule,
        start_date=START,
        catchup=False,
        # A second run is refused by the lease at once. Held back by Airflow it would begin when the first has
        # ended, hours later and perhaps to another target.
        max_active_runs=2,
        params=expansion_params(application),
        default_args=DEFAULT_ARGS,
        doc_md=doc.format(application_id=name),
        tags=["kafka-rescale", "expand", *application.tags],
    ) as dag:
        build(ExpansionTasks(application, str(file)), topology_of(application))
    return dag


def build_expansion(make: ExpansionTasks, topology: Topology) -> None:
    """Put the tasks of an expansion into the open DAG."""
    approved = make.approve_plan()
    make.preflight() >> make.plan() >> approved
    warmed = chain_stages(make, topology, approved)
    prewarm = make.prewarm()
    # The cutover waits for catch_up: started anew within the pause, it must not wait for a slot.
    catch_up = make.spark("catch_up", trigger_rule=AFTER_PREWARM, **FIRST_IN_LINE)
    gate_all = make.gate_all()
    consent, cutover = make.approve_cutover(), make.cutover()
    # The gate comes after the pre-warming, in which nothing is copied.
    warmed >> [prewarm, catch_up, gate_all]
    prewarm >> [catch_up, gate_all]
    chain(gate_all, consent, [cutover, *make.pause_alert()])
    verify = make.spark("verify", **THROUGH_AN_OUTAGE)
    [catch_up, cutover] >> verify >> make.callback()
    # callback is a leaf too: where roll_back runs, callback is upstream_failed, and with it the whole run failed.
    [catch_up, gate_all, consent, cutover] >> make.roll_back()


def chain_stages(make: ExpansionTasks, topology: Topology, first: DAGNode) -> DAGNode:
    """Chain one TaskGroup per stage behind ``first``, the most downstream first, and return the last of them."""
    last = first
    for index, subtopology in enumerate(topology.downstream_first(), start=1):
        with TaskGroup(stage_name(index, subtopology), tooltip=stage_tooltip(subtopology.stores)) as group:
            chain(
                make.expand(index),
                make.restore(index, idle=not subtopology.stores),
                make.spark("warm_up", index, idle=not subtopology.stores),
                make.lag_gate(index),
            )
        last >> group
        last = group
    return last


def stage_tooltip(stores: tuple[str, ...]) -> str:
    """Return what a stage moves, in a few words."""
    return f"state of {', '.join(stores)}" if stores else "no state of its own"


def build_dags(
    build: Callable[[Any, Path], DAG | None], kind: str, runtime: str = "kafka-streams"
) -> dict[str, DAG]:
    """Return the DAGs of all application files by id.

    Every task parses this file again, so one file that can't be used must not break the others' runs: it has a
    DAG that says what is wrong with it, see ``invalid_dag``. DAGs that were begun before the mistake was found are
    never seen: none registers itself.

    :param build: makes one application's DAG, or None if it needs none of this kind.
    :param kind: first part of the DAG ids.
    :param runtime: of the applications that have such a DAG.
    """
    from kafka_rescale.operations.application import load

    load_file = load.load_pipeline_application if runtime == SPARK else load.load_application
    dags: dict[str, DAG] = {}
    dag: DAG | None
    files = load.application_files(runtime)
    by_name = load.files_by_name(files)
    for file in files:
        try:
            application = load_file(file)
            load.refuse_namesakes(application.application_id, by_name.get(application.application_id, ()))
            dag = build(application, file)
            if dag is not None:
                if isinstance(application, Application):
                    attach(dag, application)
                dag.validate()  # Airflow does so for a whole file of DAGs, and takes all of them away for one.
        except Exception as error:
            dag = invalid_dag(f"{kind}_{file.stem}", file, str(error))
        if dag is not None:
            dags[dag.dag_id] = dag
    return dags


def invalid_dag(stands_for: str, file: Path, error: str) -> DAG:
    """Return a DAG that shows why an application file can't be used.

    Its id is never that of the DAG that the file had before: a run at work would be given its one task for all of
    its own, which Airflow then takes for removed and kills, a cutover among them. A DAG that is only missing for a
    while is waited for.
    """
    doc = f"`{file}` can't be used, so that there is no `{stands_for}`:\n\n{error}"
    dag_id = re.sub(r"[^\w.-]", "_", f"invalid_{stands_for}", flags=re.ASCII)[:DAG_ID_LENGTH]
    with DAG(dag_id=dag_id, auto_register=False, schedule=None, doc_md=doc) as dag:
        dag.tags = {"kafka-rescale", "invalid"}
        InvalidApplicationOperator(task_id="invalid", application_file=str(file), error=error)
    return dag
