"""Keeping the positions of copies whose tasks have ended, while other tasks of their job go on or are paused.

By default, brokers forget after seven days what a group without members has committed, each partition by itself.
A task that is paused renews its own positions (``CopyWorker.announce_again``). If those of the ended tasks were
forgotten beside them, the next job would read these partitions from their log starts, into a topic that has their
records already.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence

from kafka_rescale.core.cluster import TopicPartition
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.copy.bucket import Bucket
from kafka_rescale.kafka.copy.marks import read_positions
from kafka_rescale.kafka.copy.units import CopyUnit, buckets_of
from kafka_rescale.kafka.reading.committed import closing_consumer

log = logging.getLogger(__name__)

LOOK_SECONDS = 6 * 3_600.0


class EndedCopies:
    """The tasks of one job that copies up to given ends.

    :param lists: the units of each task.
    :param ends: where the copies end (exclusive).
    :param clock: monotonic, in seconds.
    """

    def __init__(
        self,
        connection: KafkaConnection,
        plan: Plan,
        lists: Sequence[Sequence[CopyUnit]],
        ends: Mapping[TopicPartition, int],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connection, self._plan, self._lists, self._ends, self._clock = connection, plan, lists, ends, clock
        self._ended: frozenset[int] = frozenset()
        self._look_at = clock() + LOOK_SECONDS

    def keep(self) -> None:
        """Commit the positions of ended tasks again, every six hours.

        To do so fences their producers. So a task has to be found at its ends in two looks: at the first one, it
        may still have its last commit before it.

        :raises Outage: the brokers don't answer; the next call tries again.
        :raises Fenced: a newer attempt has taken over.
        """
        if self._clock() < self._look_at:
            return
        with closing_consumer(self._connection, self._plan.copy_group) as consumer:
            found = read_positions(consumer, [unit.source for units in self._lists for unit in units])
            at = {source: position.offset for source, position in found.items()}
            ended = frozenset(
                number
                for number, units in enumerate(self._lists)
                if all(at.get(unit.source, -1) >= self._ends[unit.source] for unit in units)
            )
            for number in sorted(ended & self._ended):
                for units in buckets_of(self._lists[number]):
                    bucket = Bucket(self._connection, units, self._plan.green)
                    bucket.commit_at(consumer, read_positions(consumer, bucket.writers))
            if kept := len(ended & self._ended):
                log.info("the positions of %d ended tasks are committed again", kept)
        self._ended, self._look_at = ended, self._clock() + LOOK_SECONDS
