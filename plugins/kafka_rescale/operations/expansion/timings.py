"""The downtime in its parts, as the journal keeps it over interruptions."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

log = logging.getLogger(__name__)


class Timings(dict[str, float]):
    """Seconds per part. If a part is done again after an interruption or a failure, its times add up."""

    def __init__(self, known: Mapping[str, float]) -> None:
        super().__init__(known)

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Add the time that the body takes."""
        began = time.monotonic()
        try:
            yield
        finally:
            self[name] = round(self.get(name, 0.0) + time.monotonic() - began, 3)
            log.info("part %s took %.3f s", name, self[name])

    def split(self, whole: str, head: str, seconds: float) -> None:
        """Make a piece of a part a part of its own.

        :param seconds: how long the piece took.
        """
        self[head] = round(min(max(seconds, 0.0), self[whole]), 3)
        self[whole] = round(self[whole] - self[head], 3)
