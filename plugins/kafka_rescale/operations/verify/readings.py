"""How far the comparisons of stores are at present, measured by what Spark has read."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING

from kafka_rescale.core.verify.pairs import StorePair
from kafka_rescale.spark.verify.reading import begin_reading, records_read

if TYPE_CHECKING:
    from pyspark import SparkContext


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

        Offsets that compaction has removed count as not read until the part is compared.
        """
        with self._lock:
            if part not in self._of:
                return 0.0
            context, name, offsets = self._of[part]
        return min(1.0, records_read(context, name) / offsets) if offsets else 1.0
