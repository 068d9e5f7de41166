"""Committed offsets that are missing: a task that has worked before never begins at its log start again.

Committed offsets expire (``offsets.retention.minutes``), or are deleted with their group or their topic. A task
with state sees by its changelog that it has worked before. A task without state sees it only by this record.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from kafka_rescale.core.cluster import TopicPartition
from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.journal import PartitionOffsets
from kafka_rescale.core.control.processors import PipelineProcessors
from kafka_rescale.core.errors import Refused, UnsafeState


def positions_of(results: Iterable[JobResult]) -> dict[TopicPartition, tuple[int, int]]:
    """Return what jobs have reported of source partitions: the wall clock in ms, and the next offset to read."""
    found: dict[TopicPartition, tuple[int, int]] = {}
    for result in results:
        for at in result.partitions if result.job.startswith("process/") else ():
            source, said = (at.topic, at.partition), (result.as_of_ms, at.position)
            if at.position > 0 or result.state == "done":
                found[source] = max(said, found.get(source, said))
    return found


def with_begun(
    record: PipelineProcessors,
    names: Mapping[str, str],
    committed: Iterable[TopicPartition],
    said: Mapping[TopicPartition, tuple[int, int]],
) -> PipelineProcessors:
    """Return the record with a note of every partition for which an offset has been committed.

    :param names: full names of topics, by the pipeline's own.
    :param committed: source partitions that have an offset now.
    :param said: reports of jobs, see ``positions_of``; a report older than the record of a topic is ignored.
    """
    present = set(committed)
    for topic, known in record.topics.items():
        full = names[topic]
        told = {p for (t, p), (at_ms, _) in said.items() if t == full and at_ms > known.since_ms}
        begun = sorted({*known.begun, *told, *(p for t, p in present if t == full)})
        if tuple(begun) != known.begun:
            record = record.with_begun(topic, begun)
    return record


def require_offsets(
    record: PipelineProcessors,
    names: Mapping[str, str],
    committed: Iterable[TopicPartition],
    begins: PartitionOffsets,
    said: Mapping[TopicPartition, tuple[int, int]],
) -> None:
    """Refuse to begin if records would be processed twice, or be passed over.

    :param record: see ``with_begun``.
    :param names: full names of topics, by the pipeline's own.
    :param committed: source partitions that have an offset now.
    :param begins: log starts, by full names; a topic that is not among them is not checked for lost records.
    :param said: reports of jobs, see ``positions_of``.
    :raises UnsafeState: a partition was processed before and has no offset; or it was added to a topic that was
        processed before, and its first records are gone.
    """
    present = set(committed)
    if lost := sorted(set(_begun(record, names)) - present):
        ends = (f"{t}-{p}" + (f", processed up to {said[t, p][1]}" if (t, p) in said else "") for t, p in lost)
        raise UnsafeState(
            "committed offsets",
            found=f"none of {'; '.join(ends)}",
            expected="one of every partition that was processed before",
            remedy="They have expired (offsets.retention.minutes), or the group or the topic was deleted. Nothing "
            "was begun: records would be processed twice. Say where to go on: `set-offset FILE --topic TOPIC "
            "--partition N --to OFFSET`, or `--to earliest` to begin anew.",
        )
    for topic, partition in _added(record, names):
        begin = begins.get(topic, {}).get(partition, 0)
        if begin > 0 and (topic, partition) not in present:
            raise UnsafeState(
                f"topic {topic!r} partition {partition}, which was added since the first run",
                found=f"records from {begin} on",
                expected="every record, from offset 0 on",
                remedy="They were deleted before they were processed: raise the topic's retention, and run more "
                "often. To go on without them: `set-offset FILE --topic TOPIC --partition N --to earliest`.",
            )


def require_changelogs(
    known: PipelineProcessors,
    needed: Mapping[str, Collection[str]],
    existing: Collection[str],
    committed: Iterable[TopicPartition],
) -> None:
    """Refuse to go on if state is gone: aggregates would begin again in the middle of their input.

    :param known: the record of the run before.
    :param needed: the full names of the topics that a changelog's tasks read, by its own full name.
    :param existing: changelogs that are there.
    :param committed: source partitions that have an offset now.
    :raises UnsafeState: a changelog that existed before is gone, although its tasks have offsets.
    """
    processed = {topic for topic, _ in committed}
    gone = [
        name
        for name, sources in sorted(needed.items())
        if name in known.changelogs and name not in existing and processed & set(sources)
    ]
    if gone:
        raise UnsafeState(
            f"changelogs {', '.join(gone)}",
            found="no such topics, and committed offsets of what they were made from",
            expected="the state that the offsets stand for",
            remedy="They were deleted. Nothing was begun: the pipeline would go on without its state. To begin "
            "anew, delete the other changelogs and the consumer group as well; to go on without this state, "
            "create them empty.",
        )


def require_names(left: Collection[str]) -> None:
    """Refuse to leave internal topics behind: their contents would be missing without an error.

    :param left: full names of topics that the run before had, that exist, and that the pipeline doesn't name any
        more.
    :raises Refused: there are such topics.
    """
    if left:
        topics = ", ".join(sorted(left))
        raise Refused(
            f"internal topics {topics}",
            found="in the run before, and on the cluster, but in the pipeline no more",
            expected="every store and repartition topic by the name that it has had",
            remedy="An operation that is put in or taken out changes generated names: give what keeps state or "
            "repartitions its former name by `store=` and `name=`. Or delete these topics, if they are "
            "not needed.",
        )


def _begun(record: PipelineProcessors, names: Mapping[str, str]) -> Iterator[TopicPartition]:
    for topic, known in record.topics.items():
        yield from ((names[topic], partition) for partition in known.begun if partition < known.partitions)


def _added(record: PipelineProcessors, names: Mapping[str, str]) -> Iterator[TopicPartition]:
    for topic, known in record.topics.items():
        if known.begun and known.first:
            yield from ((names[topic], partition) for partition in range(known.first, known.partitions))
