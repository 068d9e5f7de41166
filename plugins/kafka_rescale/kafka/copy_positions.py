"""How far the state of a new processor has been copied: T2, and the present end of what it is copied from."""

from __future__ import annotations

from confluent_kafka import Consumer

from kafka_rescale.core.cluster import TopicPartition
from kafka_rescale.core.processing.state_copies import NO_POSITION, CopyMark, NewTask, Restored
from kafka_rescale.core.processing.task_state import SavedState, objection
from kafka_rescale.kafka.changelogs import changelog_as_seen
from kafka_rescale.kafka.reading.committed import read_committed
from kafka_rescale.kafka.reading.log_range import log_range


def positions(consumer: Consumer, task: NewTask, now: int) -> dict[str, Restored]:
    """Return T2 and the present ends by store.

    :param consumer: of the new processor's group.
    :param now: wall clock in ms.
    :raises Outage: the brokers don't answer.
    """
    sources = {store.name: (task.changelog(store), task.parent.partition) for store in task.stores}
    known = read_committed(consumer, sources.values())
    return {name: _position(consumer, task, source, known.get(source), now) for name, source in sources.items()}


def _position(
    consumer: Consumer, task: NewTask, source: TopicPartition, known: tuple[int, str | None] | None, now: int
) -> Restored:
    log = changelog_as_seen(consumer, source, task.topics[source[0]])
    if known is None:
        own = log_range(consumer, (source[0], task.task.partition))
        return Restored(source, log.begin, log.end, CopyMark(), NO_POSITION if own.end > 0 else "")
    offset, mark = known[0], CopyMark.of(known[1])
    saved = SavedState(
        topic=source[0], topic_id=mark.topic_id, partition=source[1], position=offset, as_of_ms=mark.as_of_ms
    )
    return Restored(source, max(offset, log.begin), log.end, mark, objection(saved, log, now))
