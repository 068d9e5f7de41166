"""How much the comparisons of stores have read at present, as Spark counts it."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING

from kafka_rescale.core.verify.pairs import StorePair
from kafka_rescale.spark.verify.reading import begin_reading, read_so_far

if TYPE_CHECKING:
    from pyspark import SparkContext


LARGEST_SHARE = 0.99
"""The largest share while something may be left to be read: tasks report with a delay."""


class Readings:
    """The readings of one Spark session. Each reading covers some parts, in one Spark plan."""

    def __init__(self) -> None:
        self._of: dict[str, tuple[SparkContext, str, int]] = {}
        self._lock = Lock()

    def begin(self, context: SparkContext, parts: Sequence[str], pairs: Sequence[StorePair]) -> None:
        """Count what this thread reads from now on as the reading of some parts.

        :param parts: names of the parts.
        :param pairs: the logs that are read for these parts.
        """
        offsets = sum(end - begin for pair in pairs for log in pair.logs for begin, end in log.ranges.values())
        name = begin_reading(context)
        with self._lock:
            self._of.update(dict.fromkeys(parts, (context, name, offsets)))

    def share(self, part: str) -> float:
        """Return the share of its logs that the reading of a part has read, from 0 to 1.

        Offsets that compaction has removed count as not read until everything is read. Then the share is 1, while
        Spark still sorts and compares.
        """
        with self._lock:
            if part not in self._of:
                return 0.0
            context, name, offsets = self._of[part]
        if not offsets:
            return 1.0
        read = read_so_far(context, name)
        return 1.0 if read.is_whole else min(LARGEST_SHARE, read.records / offsets)
