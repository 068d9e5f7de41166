"""How far the copies are, seen from outside: committed positions against the ends of their sources."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from threading import Thread

from kafka_rescale.core.cluster import TopicPartition
from kafka_rescale.core.control.journal import PartitionOffsets
from kafka_rescale.core.control.progress import NO_POSITION, PartitionProgress
from kafka_rescale.core.errors import Outage
from kafka_rescale.core.plan.plan import Move, Plan
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.copy.marks import Mark, Position, read_positions
from kafka_rescale.kafka.copy.units import CopyUnit, units_of
from kafka_rescale.kafka.reading.committed import copy_consumer
from kafka_rescale.kafka.reading.progress import Snapshot


class CopyProgress:
    """Reads the progress of some moves; the first reading is the baseline for records and bytes.

    :param clock: wall clock in ms.
    :param group: the group that keeps the positions; by default the plan's copy group.
    :param fixed_ends: exclusive; by default the present ends of the sources at every reading.
    :param begins: where copies begin that do not begin at the log start.
    """

    def __init__(
        self,
        connection: KafkaConnection,
        plan: Plan,
        moves: Sequence[Move],
        clock: Callable[[], int] = now_ms,
        group: str | None = None,
        fixed_ends: Mapping[TopicPartition, int] | None = None,
        begins: Mapping[TopicPartition, int] | None = None,
    ) -> None:
        self._moves, self._clock, self._fixed_ends = moves, clock, fixed_ends
        self._begins = begins or {}
        self._log_starts: PartitionOffsets = {}
        self._admin = ClusterAdmin(connection)
        self._opened = partial(copy_consumer, connection, group or plan.copy_group)
        self._consumer = self._opened()
        self._baseline: dict[TopicPartition, Mark] | None = None
        self._at, self._worked, self._rests = time.monotonic(), 0.0, False
        self._asked: tuple[int, dict[TopicPartition, int]] | None = None
        self._as_of_ms = self._throttled_ms = 0

    def ends(self) -> dict[TopicPartition, int]:
        """Return the end (exclusive) of every source partition, as a ``read_committed`` reader sees it.

        :raises ClusterOutage: no broker knows one of the topics.
        """
        if self._fixed_ends is not None:
            return dict(self._fixed_ends)
        found = self._admin.end_offsets([move.source for move in self._moves])
        return {u.source: found[u.move.source][u.partition] for u in units_of(self._moves)}

    def read(self) -> Snapshot:
        """Return how far the copies are now.

        :raises Outage: the brokers don't answer.
        """
        asked_ms = self._clock()
        ends = self.ends()
        positions = self._positions(ends)
        self._throttled_ms = sum(position.mark.throttled_ms for position in positions.values())
        if self._baseline is None:
            self._log_starts = self._admin.begin_offsets({topic for topic, _ in ends})
            self._baseline = {source: position.mark for source, position in positions.items()}
            marks = [positions[s].mark.as_of_ms if s in positions else 0 for s in ends]
            self._as_of_ms = min(marks, default=asked_ms)
        for asked in (self._asked, (asked_ms, ends)):
            if asked is not None and all(_reached(positions.get(s), end) for s, end in asked[1].items()):
                self._as_of_ms, self._asked = max(asked[0], self._as_of_ms), None
        self._asked = self._asked or (asked_ms, ends)
        return Snapshot(
            tuple(self._progress(source, positions.get(source), end) for source, end in ends.items()),
            self._as_of_ms,
            self._seconds(),
        )

    def note_rest(self, rests: bool) -> None:
        """Note that the copies rest from now on, or work. The time in which they rest tells nothing of their pace.

        :param rests: whether a person has paused them, or they rest for a disk.
        """
        self._seconds()
        self._rests = rests

    def _seconds(self) -> float:
        """Return how long the copies have worked."""
        before, self._at = self._at, time.monotonic()
        if not self._rests:
            self._worked += self._at - before
        return self._worked

    @property
    def throttled_ms(self) -> int:
        """For how long brokers had made the copies wait up to the last reading, over all attempts."""
        return self._throttled_ms

    def all_follow(self, session: str, units: Sequence[CopyUnit]) -> bool:
        """Whether the worker of that session follows all of these units."""
        positions = self._positions([u.source for u in units])
        return len(positions) == len(units) and all(p.mark.session == session for p in positions.values())

    def close(self) -> None:
        """Close the clients."""
        self._consumer.close()

    def _positions(self, sources: Iterable[TopicPartition]) -> dict[TopicPartition, Position]:
        """Read positions. Replace a consumer that gets no answer: it may wait for a broker that is gone."""
        try:
            return read_positions(self._consumer, sources)
        except Outage:
            Thread(target=self._consumer.close, name="close consumer", daemon=True).start()
            self._consumer = self._opened()
            raise

    def _progress(self, source: TopicPartition, position: Position | None, end: int) -> PartitionProgress:
        before = (self._baseline or {}).get(source, Mark())
        mark = position.mark if position else Mark()
        return PartitionProgress(
            topic=source[0],
            partition=source[1],
            position=position.offset if position else NO_POSITION,
            end=end,
            records=max(0, mark.records - before.records),
            bytes=max(0, mark.bytes - before.bytes),
            begin=self._begins.get(source, self._log_starts.get(source[0], {}).get(source[1])),
        )


def _reached(position: Position | None, end: int) -> bool:
    return position is not None and not position.mark.state and position.offset >= end
