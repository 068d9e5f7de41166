"""The records of a stretch, divided by their keys. If there are many parts, they wait on disk for their turn."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from contextlib import ExitStack
from tempfile import TemporaryFile
from typing import IO
from zlib import crc32

from kafka_rescale.core.verify.delta import Seen

BUFFERED = 4_000
"""Records of a part that are in memory before they are written."""


class Spool:
    """One side of a stretch.

    :param numbers: the parts to keep.
    :param of: into how many parts the keys are divided. A single part stays in memory.
    """

    def __init__(self, numbers: range, of: int) -> None:
        self._of = of
        self._latest: dict[int, list[Seen]] = {number: [] for number in numbers}
        self._files: dict[int, IO[bytes]] = {}
        self._at_end = ExitStack()

    def has(self, key: bytes) -> bool:
        """Whether a key is of a part that is kept."""
        return self._number(key) in self._latest

    def fill(self, records: Iterable[Seen]) -> None:
        """Keep records. All of them must be of parts that are kept."""
        for record in records:
            number = self._number(record.key)
            latest = self._latest[number]
            latest.append(record)
            if self._of > 1 and len(latest) == BUFFERED:
                self._write(number, latest)

    def taken(self, number: int) -> list[Seen]:
        """Return the records of a part, in the order in which they came, and keep them no longer."""
        found: list[Seen] = []
        if (file := self._files.pop(number, None)) is not None:
            with file:
                end = file.tell()
                file.seek(0)
                while file.tell() < end:
                    found += map(Seen._make, pickle.load(file))
        return found + self._latest.pop(number)

    def close(self) -> None:
        """Delete what is on disk."""
        self._at_end.close()

    def _write(self, number: int, records: list[Seen]) -> None:
        if number not in self._files:
            # It has no name: however this process ends, nothing of it stays behind.
            file = TemporaryFile(prefix="kafka-rescale-")  # noqa: SIM115
            self._files[number] = self._at_end.enter_context(file)
        pickle.dump([tuple(record) for record in records], self._files[number], pickle.HIGHEST_PROTOCOL)
        records.clear()

    def _number(self, key: bytes) -> int:
        return crc32(key) % self._of if self._of > 1 else 0
