"""Missing committed offsets. A task that has worked before must never begin at its log start again.

Committed offsets expire (``offsets.retention.minutes``), or are deleted with their group or their topic. Then a
task with state finds in its changelog that it has worked before. For a task without state, only the record in the
control topic says so (``SourceTopic.begun``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from kafka_rescale.core.cluster import TopicPartition
from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.journal import PartitionOffsets
from kafka_rescale.core.control.processors import PipelineProcessors
from kafka_rescale.core.errors import Refused, UnsafeState


def positions_of(results: Iterable[JobResult]) -> dict[TopicPartition, tuple[int, int]]:
    """Return the latest reports of jobs on source partitions: wall clock in ms, and the next offset to read."""
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
    """Return the record with a note of every partition that has, or has had, a committed offset.

    :param names: by the pipeline's own name of a topic, its full name.
    :param committed: the source partitions that have an offset now.
    :param said: the reports of jobs (``positions_of``). A report that is older than the record of its topic does
        not count.
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
    """Refuse to begin if tasks would process records twice or skip records.

    :param record: the record that ``with_begun`` returns.
    :param names: by the pipeline's own name of a topic, its full name.
    :param committed: the source partitions that have an offset now.
    :param begins: log starts, by full names. A topic without log starts is not checked for lost records.
    :param said: the reports of jobs (``positions_of``).
    :raises UnsafeState: a partition was processed before and has no offset. Or a partition was added to a topic
        that was processed before, and the first records of the partition are gone.
    """
    present = set(committed)
    if lost := sorted(set(_begun(record, names)) - present):
        named = said.keys() & set(lost)
        ends = (f"{t}-{p}" + (f", processed up to {said[t, p][1]}" if (t, p) in said else "") for t, p in lost)
        raise UnsafeState(
            "committed offsets",
            found=f"none of {'; '.join(ends)}",
            expected="one of every partition that was processed before",
            remedy="They have expired (offsets.retention.minutes), or the group or the topic was deleted. Nothing "
            "was begun: records would be processed twice. Say where to go on: `set-offset FILE --topic TOPIC "
            f"--partition N --to OFFSET`,{' with the offset that is named here,' if named else ''} "
            f"{_anew(record)}",
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
    :param needed: by the full name of a changelog, the full names of the topics that its tasks read.
    :param existing: the changelogs that exist.
    :param committed: the source partitions that have an offset now.
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
            "anew, delete the other changelogs, the repartition topics and the consumer group as well; to go on "
            "without this state, create them empty.",
        )


def require_no_rest(begins: PartitionOffsets, ends: PartitionOffsets) -> None:
    """Refuse to begin anew beside records of before: the inputs are read again, and these would count as well.

    :param begins: log starts of the repartition topics that exist, by full names.
    :param ends: log ends of the same topics, with records of open transactions.
    :raises UnsafeState: a repartition topic is not empty.
    """
    left = [
        topic for topic, logs in sorted(ends.items()) if any(begins[topic][p] < end for p, end in logs.items())
    ]
    if left:
        raise UnsafeState(
            f"repartition topics {', '.join(left)}",
            found="records, but no changelogs and no committed offsets",
            expected="no records of before, as the pipeline begins anew",
            remedy="Nothing was begun: the inputs are processed from their log starts, and what these topics "
            "still have would count twice. Delete these topics, and run again: `assign` creates them.",
        )


def require_names(left: Collection[str]) -> None:
    """Refuse a pipeline that has lost internal topics: it would go on without their contents, with no error.

    :param left: the full names of topics that the run before had, that still exist, and that the pipeline no
        longer has.
    :raises Refused: there are such topics.
    """
    if left:
        topics = ", ".join(sorted(left))
        raise Refused(
            f"internal topics {topics}",
            found="in the run before, and on the cluster, but in the pipeline no more",
            expected="every store and repartition topic by the name that it has had",
            remedy="Adding or removing an operation changes generated names. Give each store and each repartition "
            "topic its former name by `store=` and `name=`. Or delete these topics, if they are not needed.",
        )


def _anew(record: PipelineProcessors) -> str:
    """Return how to begin anew. Beside state, an earlier offset would count the records in it once more."""
    if record.changelogs:
        return (
            "or delete all changelogs, all repartition topics and the consumer group to begin anew. The state has "
            "the earlier records already, and so has the state of the tasks behind a repartition topic: "
            "`--to earliest` would count them twice."
        )
    return "or `--to earliest` to process everything once more."


def _begun(record: PipelineProcessors, names: Mapping[str, str]) -> Iterator[TopicPartition]:
    for topic, known in record.topics.items():
        yield from ((names[topic], partition) for partition in known.begun if partition < known.partitions)


def _added(record: PipelineProcessors, names: Mapping[str, str]) -> Iterator[TopicPartition]:
    for topic, known in record.topics.items():
        if known.begun and known.first:
            yield from ((names[topic], partition) for partition in range(known.first, known.partitions))
