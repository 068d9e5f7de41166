"""Records that a run drops, and pipelines in which they may be late only because of the order of the tasks.

A run processes a task up to its ends before a core begins the next task. So a repartition topic has all that one
task has read, and behind it what another task has read of the same hours. Whatever keeps windows behind that topic
has seen the end of these hours by then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kafka_rescale.core.pipeline.task import SubTopology
from kafka_rescale.core.processing.internal_topics import levels
from kafka_rescale.core.topology.topology import Topology

PAGE = "see docs/pipelines.md, Late records behind a repartition topic"


def late_hints(
    topology: Topology, parts: Iterable[SubTopology], tasks: Mapping[int, int] | None = None
) -> list[str]:
    """Return a hint for each sub-topology whose windows or stream joins may drop records that are in order.

    :param tasks: by sub-topology, the number of its tasks; None if it is not known.
    """
    by_id, written = {part.id: part for part in parts}, _writers(topology, tasks)
    jumbled: set[str] = set()
    hints = []
    for part in (by_id[number] for level in levels(topology) for number in level):
        behind = sorted(jumbled.intersection(part.sources))
        timed = [store.name for store in part.stores if store.retention_ms is not None]
        if behind and timed:
            hints.append(_hint(part.id, timed, behind, is_known=tasks is not None))
        own = topology.repartitions.intersection(part.sinks)
        jumbled |= {topic for topic in own if behind or written[topic] != 1}
    return hints


def told_dropped(records: int) -> str:
    """Return what to say about records that a run has dropped; empty if there are none.

    :param records: how many the last attempt has dropped. It says nothing of what earlier attempts have committed.
    """
    if not records:
        return ""
    return (
        f"records dropped: {records:,}. They came too late for their windows, or lacked a key or a value that an "
        f"operation needs. Attempts before the last one may have dropped more; {PAGE}"
    )


def _writers(topology: Topology, tasks: Mapping[int, int] | None) -> dict[str, int]:
    """Return how many tasks write each repartition topic; 0 if that is not known."""
    return {
        topic: sum((tasks or {}).get(part.id, 0) for part in topology.subtopologies if topic in part.sinks)
        for topic in topology.repartitions
    }


def _hint(part: int, timed: Iterable[str], behind: Iterable[str], *, is_known: bool) -> str:
    several = "which several tasks write" + ("" if is_known else " if the inputs have several partitions")
    return (
        f"sub-topology {part} keeps windows ({', '.join(timed)}) behind {', '.join(behind)}, {several}. If a run "
        f"reads more than the grace period covers, records in order may count as late and be dropped; {PAGE}"
    )
