"""The offsets from which a task goes on reading, or the reason why it must not go on."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from kafka_rescale.core.cluster import LogRange, TopicPartition
from kafka_rescale.core.errors import UnsafeState


def task_start(
    task: str,
    committed: Mapping[TopicPartition, int],
    sources: Mapping[TopicPartition, LogRange],
    *,
    has_state: bool,
    begins: Mapping[TopicPartition, int] = MappingProxyType({}),
) -> dict[TopicPartition, int]:
    """Return the next offset of every source partition. A partition that was never read begins at its log start.

    :param committed: the offsets of the application's group. It has no entry for a partition without an offset.
    :param has_state: whether anything was ever written to a changelog of the task, even if it is gone by now.
    :param begins: by partition, the offset at which it begins if it was never read, instead of its log start.
    :raises UnsafeState: records were deleted before they were processed, the topic was deleted and made anew, or
        the offsets have expired while the state is still there.
    """
    known = {source: committed[source] for source in sources if source in committed}
    if not known and has_state:
        raise UnsafeState(
            f"task {task}",
            found="state, and no committed offset of any of its inputs",
            expected="the offsets that the state stands for",
            remedy="They have expired (offsets.retention.minutes) or were deleted. Say where to go on by "
            "`set-offset`: where the last run ended, as its result in the control topic says; or delete all "
            "changelogs, all repartition topics and the consumer group to begin anew.",
        )
    for (topic, partition), offset in known.items():
        log = sources[topic, partition]
        if not log.begin <= offset <= log.end:
            lost = f"records from {log.begin} on" if offset < log.begin else f"an end of {log.end}"
            raise UnsafeState(
                f"task {task}, topic {topic!r} partition {partition}",
                found=f"{lost}, and a committed offset of {offset}",
                expected="every record since the last run",
                remedy="They were deleted before they were processed: raise the topic's retention, and run more "
                "often. To go on without them: `set-offset FILE --topic TOPIC --partition N --to earliest`."
                if offset < log.begin
                else "The topic was deleted and made anew, or has lost its end. Find out which, then say where to "
                "go on: `set-offset FILE --topic TOPIC --partition N --to OFFSET`.",
            )
    for (topic, partition), offset in begins.items():
        if (topic, partition) not in known and sources[topic, partition].begin > offset:
            raise UnsafeState(
                f"task {task}, topic {topic!r} partition {partition}",
                found=f"records from {sources[topic, partition].begin} on",
                expected=f"every record from offset {offset} on, which the backfill replays",
                remedy="They were deleted meanwhile: choose a later interval.",
            )
    return {source: known.get(source, begins.get(source, log.begin)) for source, log in sources.items()}
