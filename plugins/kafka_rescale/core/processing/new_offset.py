"""The offset from which a user lets a pipeline go on, and the metadata that is committed with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kafka_rescale.core.assignment.tasks import TaskId
from kafka_rescale.core.cluster import LogRange, TopicPartition
from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.processors import PipelineProcessors
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.pipeline.task import SubTopology
from kafka_rescale.core.processing.task_state import TaskMark

EARLIEST, LATEST = "earliest", "latest"


def task_of(
    source: TopicPartition,
    parts: Iterable[SubTopology],
    processors: PipelineProcessors,
    names: Mapping[str, str],
) -> tuple[TaskId, list[TopicPartition]]:
    """Return the task that reads a partition, and all partitions that this task reads.

    :param names: by the pipeline's own name of a topic, its full name.
    :raises InvalidInput: no task reads the partition, or the pipeline has not run yet.
    """
    for part in parts:
        counts = processors.sub_topologies.get(part.id)
        for number in range(counts.count) if counts is not None else ():
            assert counts is not None
            reads = [
                (names[topic], p)
                for topic in part.sources
                for p in counts.of(number, processors.topics[topic].partitions)
            ]
            if source in reads:
                return TaskId(part.id, number), reads
    raise InvalidInput(
        f"topic {source[0]!r} partition {source[1]}",
        found="no task that reads it",
        expected="a source of the pipeline, by its full name, that a run knows already",
        remedy="Correct the name or the number. Before the first run there is no offset to set.",
    )


def offset_of(source: TopicPartition, to: str, log: LogRange) -> int:
    """Return the offset that a user means.

    :param to: a number, ``earliest`` or ``latest``.
    :param log: the begin and the end of the partition's log.
    :raises InvalidInput: ``to`` is none of these, or the number is not within the log.
    """
    named = {EARLIEST: log.begin, LATEST: log.end}
    offset = named.get(to, int(to) if to.isdecimal() else -1)
    if not log.begin <= offset <= log.end:
        raise InvalidInput(
            f"offset for {source[0]}-{source[1]}",
            found=to,
            expected=f"{EARLIEST}, {LATEST}, or a number from {log.begin} to {log.end}",
            remedy="Name the offset of the first record that shall be processed.",
        )
    return offset


def kept_mark(task: TaskId, committed: Iterable[str | None], results: Iterable[JobResult]) -> TaskMark:
    """Return the newest mark of a task. It has to be committed again with the new offset.

    :param committed: the metadata of the task's committed offsets.
    :param results: the results of jobs. They give the last mark if the task has no committed offset any more.
    """
    marks = [TaskMark.of(text) for text in committed]
    if not marks:
        marks = [TaskMark.of(result.marks.get(str(task))) for result in results]
    return max(marks, key=lambda mark: mark.at_ms, default=TaskMark())
