"""How much a worker has on its way to the brokers at most, so that slow brokers keep no commit waiting for long.

Brokers with a quota (``producer_byte_rate``) take what a client sends. If it was too much, they delay their answer
accordingly. A client that has queued 64 MB by then waits for minutes, longer than any of its time-outs. Then its
commit is given up, its records are aborted, and the next client fares no better.
"""

from __future__ import annotations

from kafka_rescale.kafka.copy.settings import CopySettings
from kafka_rescale.kafka.writing.settings import MIB

FIRST_BYTES = 2 * MIB
"""The bound until the first commits have been quick. A quota that is there from the beginning shows by then."""
MOST_BYTES = 8 * MIB
"""With 2 MiB, records of 1 kB were copied up to a fifth more slowly than without a bound."""
THROTTLED_BYTES = FIRST_BYTES // 8
"""The bound as soon as brokers say that they throttle. A request that waits for longer than ``socket.timeout.ms``
is sent again, and counts against the quota again."""
LEAST_BYTES = 16 * 1024
LONG = 0.25
"""The part of ``still_seconds`` (which bounds a commit) that a commit may take before the window shrinks."""
QUICK = 0.05
"""The part of ``still_seconds`` within which a commit has to end for the window to grow again."""
ANSWER_SECONDS = 0.01
"""A producer does not report records that have arrived. So a wait for answers always takes its full time."""
USUAL_RECORD = 256.0
"""Bytes of a record, before the first is seen."""


class Window:
    """The bytes that may be on their way, of all units of a worker together."""

    def __init__(self, settings: CopySettings) -> None:
        self._settings, self.bytes, self._record = settings, FIRST_BYTES, USUAL_RECORD

    def poll_records(self, on_way: int = 0, most_bytes: float | None = None) -> int:
        """Return how many records to take at a time.

        :param on_way: how many records brokers have not answered.
        :param most_bytes: a further bound; None if there is none.
        """
        room = self.bytes - on_way * self._record
        room = room if most_bytes is None else min(room, most_bytes)
        return max(1, min(self._settings.poll_records, int(room / self._record)))

    def is_full(self, on_way: int) -> bool:
        """Whether so many records on their way are enough for now: they take more than half of the window."""
        return 2 * on_way * self._record > self.bytes

    def wrote(self, records: int, size: int) -> None:
        """Note records that were written, and their bytes."""
        if records:
            self._record = max(1.0, (self._record + size / records) / 2)

    def committed(self, size: int, seconds: float) -> None:
        """Note a commit of so many bytes, and how long it took."""
        allowed = self._settings.still_seconds
        if seconds > LONG * allowed:
            self.bytes = max(LEAST_BYTES, self.bytes // 2)
        elif size and seconds < QUICK * allowed:
            self.bytes = min(2 * self.bytes, MOST_BYTES)

    def throttled(self) -> None:
        """Note that brokers have said that they make a client wait."""
        self.bytes = min(self.bytes, THROTTLED_BYTES)

    def stuck(self) -> None:
        """Note a commit that has not returned."""
        self.bytes = max(LEAST_BYTES, self.bytes // 8)
