"""The tasks of an expansion in place, in their order; the application is stopped within one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk import TaskGroup, chain

from kafka_rescale.airflow.dags.expansion_tasks import ExpansionTasks
from kafka_rescale.airflow.retries import THROUGH_AN_OUTAGE, UNTIL_SOMEBODY_RUNS
from kafka_rescale.core.plan.planning import stage_name
from kafka_rescale.core.topology.topology import SubTopology, Topology

if TYPE_CHECKING:
    from airflow.sdk.definitions._internal.node import DAGNode

DOC = """
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


def build_in_place(make: ExpansionTasks, topology: Topology) -> None:
    """Put the tasks of an expansion in place into the open DAG."""
    last: DAGNode = make.approve_plan()
    make.preflight() >> make.plan() >> last
    for index, subtopology in enumerate(topology.downstream_first(), start=1):
        with TaskGroup(stage_name(index, subtopology), tooltip=_tooltip(subtopology)) as group:
            make.expand(index)
        last >> group
        last = group
    rehearse, consent, cutover = make.spark("rehearse"), make.approve_stop(), make.cutover()
    # One job for all stages, up before the stop: starting a driver costs more than most moves.
    move = make.spark("move", idle=not (topology.stores or topology.repartitions), **UNTIL_SOMEBODY_RUNS)
    chain(last, rehearse, consent, [cutover, move, *make.pause_alert()])
    [move, cutover] >> make.spark("verify", **THROUGH_AN_OUTAGE) >> make.callback()
    # callback is a leaf too: where roll_back runs, callback is upstream_failed, and with it the whole run failed.
    [rehearse, consent, cutover, move] >> make.roll_back()


def _tooltip(subtopology: SubTopology) -> str:
    return f"grows {', '.join(subtopology.stores)}" if subtopology.stores else "no state of its own"
