"""Whether copies that are being made will be too old when they end. A person can then act within minutes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from kafka_rescale.core.cluster import TopicDescription, TopicPartition
from kafka_rescale.core.control.journal import PartitionOffsets
from kafka_rescale.core.control.progress import PartitionProgress
from kafka_rescale.core.expansion.deletions import NEAR, advised_ms, least_kept, more_time
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.reading.progress import Snapshot

log = logging.getLogger(__name__)

FIRST_SECONDS = 120.0
"""How long a pace is measured before it tells anything."""


class Deadline:
    """Compares how long some copies will take with how long their sources keep deletions.

    :param sources: descriptions of the changelogs that are copied.
    :param begins: their log starts.
    :param has_seeds: whether copies may begin with snapshots. These are no part of the pace.
    :param clock: wall clock in ms.
    """

    def __init__(
        self,
        sources: Mapping[str, TopicDescription],
        begins: PartitionOffsets,
        *,
        has_seeds: bool = False,
        clock: Callable[[], int] = now_ms,
    ) -> None:
        self._kept, self._begins, self._has_seeds, self._clock = least_kept(sources), begins, has_seeds, clock
        self._first: dict[TopicPartition, int] | None = None
        self._began_ms = 0
        self._is_told = False

    def told(self, snapshot: Snapshot) -> str:
        """Return what a person should know, and log it once; an empty text if the copies end in time.

        The pace is that of offsets: a compacted log has fewer records than offsets.

        :param snapshot: how far the copies are now; the readings of one attempt in their order.
        """
        if self._kept is None:
            return ""
        # As long as one of the copies has not begun, the age of the others is unknown; they may be older.
        self._began_ms = self._began_ms or self._clock()
        since_ms = snapshot.as_of_ms or self._began_ms
        copied = self._copied(snapshot)
        if snapshot.seconds < FIRST_SECONDS or copied <= 0:
            return ""
        # Most copies may not have begun yet: there is one per core at a time. They begin at their log starts.
        offsets = sum(max(0, p.end - max(p.position, self._begin_of(p))) for p in snapshot.partitions)
        left = offsets * snapshot.seconds / copied
        age = (self._clock() - since_ms) / 1000 + left
        topic, kept_ms = self._kept
        if age * 1000 <= NEAR * kept_ms:
            return ""
        said = (
            f"at this pace some {left:,.0f} s are left, so the copies get {age:,.0f} s old, and {topic} keeps "
            f"deletions for {kept_ms / 1000:,.0f} s (delete.retention.ms); copies that get older begin anew. To "
            f"avoid that, {more_time(f'set delete.retention.ms of the changelogs to at least {advised_ms(age)}')}"
        )
        if not self._is_told:
            log.warning("%s", said)
            self._is_told = True
        return said

    def _begin_of(self, of: PartitionProgress) -> int:
        return self._begins.get(of.topic, {}).get(of.partition, 0)

    def _copied(self, snapshot: Snapshot) -> int:
        """Return how many offsets were copied since the first reading."""
        at = {(p.topic, p.partition): p for p in snapshot.partitions if p.position >= 0}
        if self._first is None:
            # An earlier attempt may have copied so far.
            self._first = {source: p.position for source, p in at.items()}
        for source, p in at.items():
            self._first.setdefault(source, p.position if self._has_seeds else self._begin_of(p))
        return sum(p.position - self._first[source] for source, p in at.items())
