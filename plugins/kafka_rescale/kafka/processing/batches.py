"""Records in small batches: coordinators abort transactions that are open for a minute."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice
from typing import TypeVar

T = TypeVar("T")

BEGIN = 10
"""Size of the first batch, as the time per record is not known yet."""
GROWTH = 10


def batch_of(records: Iterator[T], size: int, seconds: float) -> list[T]:
    """Return the next records; an empty list is the end.

    :param size: the most records to return.
    :param seconds: after this time, no further record is taken.
    """
    deadline, found = time.monotonic() + seconds, []
    for record in islice(records, size):
        found.append(record)
        if time.monotonic() > deadline:
            break
    return found


class BatchSize:
    """How many records to process at a time. This depends on how long the last records took.

    :param largest: the largest size of a batch.
    :param seconds: how long a batch should take at most.
    """

    def __init__(self, largest: int, seconds: float) -> None:
        self._largest, self._seconds = largest, seconds
        self.now = min(BEGIN, largest)

    def took(self, records: int, seconds: float) -> None:
        """Note how long a batch took."""
        if seconds > self._seconds:
            self.now = max(1, int(records * self._seconds / seconds))
        elif records == self.now and seconds * GROWTH <= self._seconds:
            self.now = min(self._largest, self.now * GROWTH)
