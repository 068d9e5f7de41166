"""One static ``expand_<application>`` DAG per application file.

Its tasks and their order are those of ``core/expansion/run.py``. The stages come only from the file and its
topology, never from the cluster. Mapped tasks could read them from the cluster, but they have no order. A DAG that
is built from the cluster's state would get a new version with every change of that state.
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
from kafka_rescale.core.plan.not_copied import NOT_COPIED
from kafka_rescale.core.plan.planning import stage_name
from kafka_rescale.core.topology.topology import SubTopology, Topology

if TYPE_CHECKING:
    from airflow.sdk.definitions._internal.node import DAGNode

BLUE_GREEN_DOC = """
Re-partitions the state of `{application_id}` while it keeps running, then cuts over.

`preflight` and `plan` change nothing; a dry run ends after them. Each stage copies the state of one sub-topology,
the most downstream first. If the application file says how, `prewarm` starts the new generation behind the warm-up
gate, lets it restore its stores, and stops it again. `catch_up` keeps every copy close behind while `gate_all`
waits until all copies are within the acceptable lag at the same time. `prove` compares the whole state of the two
generations while the old one works, and `catch_up` compares what is written since. `await_window` waits for the
moment that the approval, the application file or a person has named (`switch_{application_id}`). `cutover` stops
the running generation, waits until the rest is compared as well, and starts the new one seconds later. Nothing is
promoted that is not proven. `verify` checks the offsets that the new generation started from, and the records that
have come into the inputs since.

If anything fails before the promotion, `roll_back` starts the old generation as it was, and the run ends as
failed. Trigger the DAG again: the new run continues with the copies that are there.
"""

IN_PLACE_DOC = """
Re-partitions the state of `{application_id}` in its own topics, while it is stopped. It copies only the keys whose
partition changes, and the tasks keep their local state.

`preflight` and `plan` change nothing; a dry run ends after them. Each stage grows its outputs, the most downstream
first. `rehearse` reads the whole state while the application runs, and finds records that could not be moved.
`await_window` waits for the moment that the approval, the application file or a person has named
(`switch_{application_id}`). `cutover` waits until the `move` job is up. Then it stops the application, and
promotes. From there on the run can only go forward, because a topic that has grown can't shrink: the internal
topics grow, `move` moves the keys of all stages, the inputs grow, and the application starts. `verify` compares
the content of the changelogs before and after.

If anything fails before the promotion, `roll_back` starts the application as it was, and the run ends as failed.
Trigger the DAG again then. After a failure behind the promotion, clear the failed task or trigger the DAG again:
the run continues where it stopped.
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
        # The lease refuses a second run at once. If Airflow held it back instead, that run would begin when the
        # first has ended: hours later, and perhaps with another target.
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
    """Add the tasks of a run to the open DAG. The tasks of each stage form a group."""
    groups = make_groups(topology, make.application.mode)
    made: dict[str, tuple[Task, DAGNode]] = {}
    for task in make.tasks():
        node = make.operator(task, groups.get(task.stage))
        if node is None:
            continue
        made[task.task_id] = task, node
        for earlier, before in (made[task_id] for task_id in task.waits_for):
            # Within a stage, a task waits for a task. Between stages, it waits for the whole group of the earlier
            # stage.
            is_within = earlier.stage == task.stage
            first = before if is_within else groups.get(earlier.stage, before)
            then = node if is_within else groups.get(task.stage, node)
            first >> then


def make_groups(topology: Topology, mode: Mode) -> dict[int | None, TaskGroup]:
    """Return a task group for each stage, by the stage's number. Its tooltip names the stores of the stage."""
    return {
        index: TaskGroup(stage_name(index, subtopology), tooltip=_tooltip(subtopology, mode))
        for index, subtopology in enumerate(topology.downstream_first(), start=1)
    }


def _tooltip(subtopology: SubTopology, mode: Mode) -> str:
    moves = "state of" if mode is Mode.BLUE_GREEN else "grows"
    told = [f"{moves} {', '.join(subtopology.stores)}"] if subtopology.stores else []
    told += [f"{', '.join(subtopology.unlogged)} {NOT_COPIED}"] if subtopology.unlogged else []
    return "; ".join(told) or "no state of its own"
