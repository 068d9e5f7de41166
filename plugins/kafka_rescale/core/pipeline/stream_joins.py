"""Joins of two streams: the work on a record of one side.

Kafka Streams looks once per second of the wall clock for records that stay without a partner. This module looks
whenever it gets a record that is at least as late as all earlier records, as Kafka Streams does with
``__emit.interval.ms.kstreams.outer.join.spurious.results.fix__`` = 0. Therefore the results depend only on the
records, not on the clock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from kafka_rescale.core.pipeline.processor import Mark, Processor, TaskContext
from kafka_rescale.core.pipeline.stores.outer_join_store import Lonely, OuterJoinStore
from kafka_rescale.core.pipeline.stores.window_stores import JoinWindowStore
from kafka_rescale.core.pipeline.task import Headers
from kafka_rescale.core.pipeline.windows import JoinWindows

NEVER = 2**63 - 1
UNKNOWN = -NEVER
"""Stands for a time that a checkpoint lacks. The real time may have any value, so the store has to be searched."""


class TimeTracker(NamedTuple):
    """The times that both sides of a join share.

    :param stream_time: the highest timestamp of both sides.
    :param earliest: the lowest timestamp of the records without a partner, as far as the join knows it. It is
        ``NEVER`` if there is no such record.
    """

    stream_time: Mark
    earliest: Mark

    @classmethod
    def of(cls, context: TaskContext, store: str, node: str) -> TimeTracker:
        """Return the tracker of a join.

        :param store: the store of the join's left side.
        :param node: the node where the results of both sides meet.
        """
        earliest = f"{node}-earliest"
        return cls(context.observed(store, node), context.mark(f"<{store}", UNKNOWN, former=earliest))


class JoinSide(NamedTuple):
    """The properties of one side of a join.

    :param is_left: whether this is the left side.
    :param is_outer: whether the join also emits records of this side that have no partner.
    :param joiner: takes the left and the right value; returns the joined value.
    """

    is_left: bool
    is_outer: bool
    windows: JoinWindows
    joiner: Callable[[Any, Any], Any]

    @property
    def before_ms(self) -> int:
        """The time in ms by which a partner may be earlier."""
        return self.windows.before_ms if self.is_left else self.windows.after_ms

    @property
    def after_ms(self) -> int:
        """The time in ms by which a partner may be later."""
        return self.windows.after_ms if self.is_left else self.windows.before_ms


class JoinWindow(Processor):
    """First hands a record to the join, then keeps it for the other side, as ``KStreamJoinWindow`` does."""

    def __init__(self, store: JoinWindowStore) -> None:
        self._store = store

    def process(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        self.forward(key, value, timestamp, headers)
        if key is not None:
            self._store.put(key, value, timestamp, headers)


class StreamStreamJoin(Processor):
    """Joins the records of one side with those of the other side, as ``KStreamKStreamJoin`` does.

    :param other: the store in which the other side has kept its records.
    :param lonely: the store of the records of both sides that have found no partner, or ``None`` in an inner join.
    """

    def __init__(
        self,
        context: TaskContext,
        side: JoinSide,
        other: JoinWindowStore,
        lonely: OuterJoinStore | None,
        tracker: TimeTracker,
    ) -> None:
        self._context, self._side, self._other = context, side, other
        self._lonely, self._tracker = lonely, tracker

    def process(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        side, stream_time = self._side, self._tracker.stream_time
        stream_time.value = max(stream_time.value, timestamp)
        if key is None and value is not None and side.is_outer:
            self.forward(key, self._joined(value, None), timestamp, headers)
            return
        if key is None or value is None:
            self._context.dropped += 1
            return
        if self._lonely is not None and timestamp == stream_time.value:
            self._emit_lonely(self._lonely, timestamp, headers)
        latest = max(0, timestamp + side.after_ms)
        is_joined = False
        for time, other in self._other.fetch(key, max(0, timestamp - side.before_ms), latest):
            is_joined = True
            if self._lonely is not None:
                self._lonely.forget(key, time, not side.is_left, timestamp)
            self.forward(key, self._joined(value, other), max(timestamp, time), headers)
        if side.is_outer and not is_joined:
            if self._lonely is None or latest < stream_time.value:
                self.forward(key, self._joined(value, None), timestamp, headers)
            else:
                self._tracker.earliest.value = min(self._tracker.earliest.value, timestamp)
                self._lonely.add(key, timestamp, side.is_left, value)

    def _joined(self, here: Any, there: Any) -> Any:
        return self._side.joiner(here, there) if self._side.is_left else self._side.joiner(there, here)

    def _emit_lonely(self, store: OuterJoinStore, timestamp: int, headers: Headers) -> None:
        """Emit the records whose windows have closed without a partner.

        As in Kafka Streams, ``earliest`` becomes the timestamp of the last record that this search looks at.
        """
        earliest, closed = self._tracker.earliest, self._tracker.stream_time.value - self._side.windows.grace_ms
        if earliest.value + self._side.after_ms >= closed:
            return
        earliest.value = NEVER
        open_sides: set[bool] = set()
        emitted: bytes | None = None
        for each in store.all():
            earliest.value = each.timestamp
            if len(open_sides) == 2:
                break
            if each.timestamp + self._reach(each) >= closed:
                open_sides.add(each.is_left)
                continue
            for value in each.values:
                sides = (value, None) if each.is_left else (None, value)
                self.forward(each.key, self._side.joiner(*sides), each.timestamp, headers)
            if emitted is not None:
                store.delete(emitted, timestamp)
            emitted = each.raw
        if emitted is not None:
            store.delete(emitted, timestamp)

    def _reach(self, each: Lonely) -> int:
        windows = self._side.windows
        return windows.after_ms if each.is_left else windows.before_ms
