"""Sub-topologies whose numbers have changed, because the program was edited.

A sub-topology's number is its place in the program: a stream that is added in front of others moves all of them by
one. The processors belong to the topics that they read, so their record follows these topics to the new number.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafka_rescale.core.assignment.tasks import TaskId
from kafka_rescale.core.control.processors import PipelineProcessors, ProcessorCounts
from kafka_rescale.core.errors import Refused
from kafka_rescale.core.pipeline.task import SubTopology


def renumbered(known: PipelineProcessors, parts: Iterable[SubTopology]) -> PipelineProcessors:
    """Return the record of the last run with the numbers that the sub-topologies have now.

    A sub-topology that reads none of the recorded topics has no record, and begins anew. There is one exception:
    the topics that its number stands for are read no more, so that a topic may be replaced by another one.

    :raises Refused: a sub-topology that has another number now is getting more processors. Or it reads topics that
        were read by different numbers of processors. Or an earlier version kept the record without the topics, and
        the numbers do not fit.
    """
    parts = tuple(parts)
    _require_known_numbers(known, parts)
    owners = {topic: number for number, of in known.sub_topologies.items() for topic in of.sources}
    if not owners:
        return known
    read = {topic for part in parts for topic in part.sources}
    found: dict[int, ProcessorCounts] = {}
    for part in parts:
        numbers = sorted({owners[topic] for topic in part.sources if topic in owners})
        here = known.sub_topologies.get(part.id)
        if not numbers and here is not None and not read.intersection(here.sources):
            numbers = [part.id]
        if numbers:
            found[part.id] = _followed(part, {number: known.sub_topologies[number] for number in numbers})
    return known.model_copy(update={"sub_topologies": found})


def require_as_run(known: PipelineProcessors, parts: Iterable[SubTopology]) -> None:
    """Check that the record's numbers are those of the program: a request by number must mean what it says.

    :raises Refused: the program was edited since the last run.
    """
    parts = tuple(parts)
    is_new = any(part.id not in known.sub_topologies for part in parts)
    if known.sub_topologies and (is_new or renumbered(known, parts) != known):
        raise Refused(
            "the program",
            found="other sub-topologies than in the last run",
            expected="the program as it was run",
            remedy="Let it run once, then ask again: the first run after an edit tells the new numbers.",
        )


def left_tasks(known: PipelineProcessors, parts: Iterable[SubTopology]) -> list[TaskId]:
    """Return the tasks of the last run whose topics other tasks read now, because the numbers have changed.

    Tasks of one id fence each other by it. These have to be fenced by the old id.
    """
    now = {topic: part.id for part in parts for topic in part.sources}
    return [
        TaskId(number, partition)
        for number, counts in known.sub_topologies.items()
        if any(now.get(topic, number) != number for topic in counts.sources)
        for partition in range(counts.largest)
    ]


def _followed(part: SubTopology, before: dict[int, ProcessorCounts]) -> ProcessorCounts:
    """Return the record of the sub-topology, or of several, that have become this one.

    Without a store, a key belongs to no processor, so that their counts may differ.
    """
    if part.stores and len({(each.initial, each.count, each.expanding_to) for each in before.values()}) > 1:
        had = "; ".join(f"{', '.join(each.sources)}: {each.count}" for each in before.values())
        raise Refused(
            f"sub-topology {part.id}",
            found=f"topics that were read by different numbers of processors ({had})",
            expected="topics that had equally many",
            remedy="Keys would be separated from their state. Call repartition() on one of the streams.",
        )
    moved = [number for number, of in before.items() if number != part.id and (of.expanding_to or of.growing_to)]
    if moved:
        raise Refused(
            f"sub-topology {part.id}, which reads {', '.join(part.sources)}",
            found=f"the number {moved[0]} in the last run, and processors that are being added to it",
            expected="the same number until they have been added",
            remedy="What they have copied of the state belongs to that number. Run the program as it was before "
            "this edit until `status` shows no more than the new processors; or put what was added behind the "
            "other operations of the program, which keeps their numbers.",
        )
    return max(before.values(), key=lambda each: each.count)


def _require_known_numbers(known: PipelineProcessors, parts: tuple[SubTopology, ...]) -> None:
    """Check a record that an earlier version wrote: it has topics, but not which sub-topology reads them."""
    if not known.sub_topologies or any(of.sources for of in known.sub_topologies.values()):
        return
    here = {part.id for part in parts}
    unread = {part.id for part in parts if known.topics.keys().isdisjoint(part.sources)}
    new, gone = here - known.sub_topologies.keys(), known.sub_topologies.keys() - here
    # A program that only got more at its end, or reads one other topic in place of one, has the numbers it had.
    if not gone and (unread == new or (not new and len(unread) == 1)):
        return
    raise Refused(
        "the program",
        found="other sub-topologies than in the last run",
        expected="the numbers of the last run, because an earlier version has not recorded the topics",
        remedy="Run the program once as it was before its last edit; after that its operations may change their "
        "places. Or put what was added behind the other operations of the program.",
    )
