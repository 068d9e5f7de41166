"""One static ``expand_<application>`` DAG per application file.

Its tasks and their order are those of ``core/expansion/run.py``. The stages come from the file and its topology
alone, never from the cluster: mapped tasks would give no order, and a DAG that follows a cluster would get a new
version with every change of it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from airflow.sdk import DAG, TaskGroup

from kafka_rescale.airflow.dags.expansion_tasks import ExpansionTasks
from kafka_rescale.airflow.dags.factory import START
from kafka_rescale.airflow.dags.params import expansion_params
from kafka_rescale.airflow.retries import DEFAULT_ARGS
from kafka_rescale.core.application.streams import Application, Mode
from kafka_rescale.core.expansion.run import Task
from kafka_rescale.core.plan.planning import stage_name
from kafka_rescale.core.topology.topology import Topology

if TYPE_CHECKING:
    from airflow.sdk.definitions._internal.node import DAGNode

BLUE_GREEN_DOC = """
Re-partitions the state of `{application_id}` while it keeps running, then cuts over.

`preflight` and `plan` change nothing; a dry run ends there. Each stage copies one sub-topology's state, the
most downstream first. `prewarm` lets the new generation restore its stores behind the warm-up gate, if the
application file says how, and stops it again. `catch_up` keeps every copy near while `gate_all` waits for all of
them to be within the acceptable lag at the same time. `cutover` stops the running generation for a moment and
starts the new one; `verify` compares the two over the whole state. If anything fails before the promotion,
`roll_back` starts the old generation as it was and the run ends as failed; trigger again to continue where the
copies are.
"""

IN_PLACE_DOC = """
Re-partitions the state of `{application_id}` in its own topics, while it is stopped: only keys that move are
copied, and tasks keep their local state.

`preflight` and `plan` change nothing; a dry run ends there. Each stage grows its outputs, the most downstream
first. `rehearse` reads the whole state beside the running application and finds what could not be moved.
`cutover` waits until the `move` job beside it is up; then it stops the application, and promotes: from there on
only forward, because a topic that has grown can't shrink. Its topics grow, `move` moves what moves of all stages,
the inputs grow, and the application is started. If anything fails before the promotion, `roll_back` starts the
application as it was. `verify` compares what was in its changelogs with what is. After a failure, clear the
failed task or trigger again: it goes on where it is.
"""

DOCS = {Mode.BLUE_GREEN: BLUE_GREEN_DOC, Mode.IN_PLACE: IN_PLACE_DOC}


def expansion_dag(application: Application, file: Path) -> DAG:
    """Return the expansion DAG of one application."""
    from kafka_rescale.operations.application.load import topology_of

    name = application.application_id
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
        doc_md=DOCS[application.mode].format(application_id=name),
        tags=["kafka-rescale", "expand", *application.tags],
    ) as dag:
        topology = topology_of(application)
        build_run(ExpansionTasks(application, str(file), topology), topology)
    return dag


def build_run(make: ExpansionTasks, topology: Topology) -> None:
    """Put the tasks of a run into the open DAG, and those of each stage into a group of their own."""
    groups = make_groups(topology, make.application.mode)
    made: dict[str, tuple[Task, DAGNode]] = {}
    for task in make.tasks():
        node = make.operator(task, groups.get(task.stage))
        if node is None:
            continue
        made[task.task_id] = task, node
        for earlier, before in (made[task_id] for task_id in task.waits_for):
            # Between two stages, and behind the last one, it is the whole group that is waited for.
            is_within = earlier.stage == task.stage
            first = before if is_within else groups.get(earlier.stage, before)
            then = node if is_within else groups.get(task.stage, node)
            first >> then


def make_groups(topology: Topology, mode: Mode) -> dict[int | None, TaskGroup]:
    """Return a group per stage, by its number; Airflow shows what its stage moves."""
    moves = "state of" if mode is Mode.BLUE_GREEN else "grows"
    return {
        index: TaskGroup(
            stage_name(index, subtopology),
            tooltip=f"{moves} {', '.join(subtopology.stores)}" if subtopology.stores else "no state of its own",
        )
        for index, subtopology in enumerate(topology.downstream_first(), start=1)
    }
