"""The tasks of an expansion in place, in their order: the application is stopped for all of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk import TaskGroup, chain

from kafka_rescale.airflow.expansion_tasks import ExpansionTasks
from kafka_rescale.core.planning import stage_name
from kafka_rescale.core.topology import SubTopology, Topology

if TYPE_CHECKING:
    from airflow.sdk.definitions._internal.node import DAGNode

DOC = """
Re-partitions the state of `{application_id}` in its own topics, while it is stopped: only keys that move are
copied, and tasks keep their local state.

`preflight` and `plan` change nothing; a dry run ends there. `rehearse` reads the whole state beside the running
application and finds what could not be moved. `stop` stops it, and promotes: from there on only forward, because a
topic that has grown can't shrink. If anything fails before, `roll_back` starts the application as it was. Each
stage grows its topics, and one `move` job moves what moves of all stages; `start` grows the inputs and starts the
application. `verify` compares what was in its changelogs with what is. After a failure, clear the failed task or
trigger again: it goes on where it is.
"""


def build_in_place(make: ExpansionTasks, topology: Topology) -> None:
    """Put the tasks of an expansion in place into the open DAG."""
    approved, rehearse = make.approve_plan(), make.spark("rehearse")
    consent, stop = make.approve_stop(), make.stop()
    chain(make.preflight(), make.plan(), approved, rehearse, consent, [stop, *make.pause_alert()])
    last: DAGNode = stop
    for index, subtopology in enumerate(topology.downstream_first(), start=1):
        with TaskGroup(stage_name(index, subtopology), tooltip=_tooltip(subtopology)) as group:
            make.expand(index)
        last >> group
        last = group
    # One job for all stages: the application is down, and starting a driver costs more than most moves.
    move = make.spark("move", idle=not (topology.stores or topology.repartitions))
    chain(last, move, make.start(), make.spark("verify"), make.callback())
    # callback is a leaf too: where roll_back runs, callback is upstream_failed, and with it the whole run failed.
    [rehearse, consent, stop] >> make.roll_back()


def _tooltip(subtopology: SubTopology) -> str:
    return f"grows {', '.join(subtopology.stores)}" if subtopology.stores else "no state of its own"
