"""Whether copies that are being made will be too old when they end. A person can then act within minutes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from kafka_rescale.core.cluster import TopicDescription, TopicPartition
from kafka_rescale.core.expansion.deletions import NEAR, advised_ms, least_kept
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.reading.progress import Snapshot

log = logging.getLogger(__name__)

FIRST_SECONDS = 120.0
"""How long a pace is measured before it tells anything."""


class Deadline:
    """Compares how long some copies will take with how long their sources keep deletions.

    :param sources: descriptions of the changelogs that are copied.
    :param clock: wall clock in ms.
    """

    def __init__(self, sources: Mapping[str, TopicDescription], clock: Callable[[], int] = now_ms) -> None:
        self._kept, self._clock = least_kept(sources), clock
        self._first: dict[TopicPartition, int] = {}
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
        at = {(p.topic, p.partition): p.position for p in snapshot.partitions if p.position >= 0}
        copied = sum(position - self._first.setdefault(source, position) for source, position in at.items())
        if snapshot.seconds < FIRST_SECONDS or copied <= 0:
            return ""
        left = snapshot.lag * snapshot.seconds / copied
        age = (self._clock() - since_ms) / 1000 + left
        topic, kept_ms = self._kept
        if age * 1000 <= NEAR * kept_ms:
            return ""
        said = (
            f"at this pace some {left:,.0f} s are left, so the copies get {age:,.0f} s old, and {topic} keeps "
            f"deletions for {kept_ms / 1000:,.0f} s (delete.retention.ms); copies that get older begin anew. Give "
            "Spark more cores or raise the limit of the pace; or roll back, set delete.retention.ms of the "
            f"changelogs to at least {advised_ms(age)}, delete the new generation's changelogs, and trigger again"
        )
        if not self._is_told:
            log.warning("%s", said)
            self._is_told = True
        return said
