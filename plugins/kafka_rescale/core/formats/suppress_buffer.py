"""The version of the value format of a suppress buffer's changelog record.

Kafka Streams before 2.3 wrote no header (version 0). Later versions write the header ``v`` = 1, 2 or 3. But 2.4.0,
2.4.1 and 2.5.0 wrote version 3 with the number 2. Copies keep bytes and headers as they are, so the version
matters only to tell buffers from other stores. Source: ``InMemoryTimeOrderedKeyValueChangeBuffer`` and its
changelog deserialization helper.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

Headers = Sequence[tuple[str, bytes | None]]

HEADER = "v"
_TIME = 8
_NULL = -1
_SAME_AS_PRIOR = -2


class _Malformed(Exception):
    pass


class _Reader:
    """Walks through a value. Every step raises an error if there are not enough bytes."""

    def __init__(self, value: bytes) -> None:
        self._value, self._at = value, 0

    def skip(self, count: int) -> None:
        if count < 0 or self._at + count > len(self._value):
            raise _Malformed
        self._at += count

    def number(self) -> int:
        self.skip(4)
        return int.from_bytes(self._value[self._at - 4 : self._at], "big", signed=True)

    def sized(self, *others: int) -> None:
        """Read a length and this number of bytes. ``_NULL`` and the values of ``others`` stand for no bytes."""
        length = self.number()
        if length not in {_NULL, *others}:
            self.skip(length)

    @property
    def is_at_end(self) -> bool:
        return self._at == len(self._value)


def version_of(headers: Headers, value: bytes) -> int | None:
    """Return the version that the bytes really have, 0 to 3. ``None`` if no suppress buffer wrote them."""
    numbers = [content for name, content in headers if name == HEADER]
    labelled = numbers[-1] if numbers else b"\x00"
    candidates = {b"\x00": (0,), b"\x01": (1,), b"\x02": (2, 3), b"\x03": (3,)}.get(labelled or b"", ())
    return next((version for version in candidates if _is_of(version, value)), None)


def _is_of(version: int, value: bytes) -> bool:
    reader = _Reader(value)
    try:
        _LAYOUTS[version](reader)
    except _Malformed:
        return False
    return reader.is_at_end


def _v0(reader: _Reader) -> None:
    reader.skip(_TIME)
    _legacy_change(reader)


def _v1(reader: _Reader) -> None:
    reader.skip(_TIME)
    _context(reader)
    reader.skip(4)
    _legacy_change(reader)


def _v2(reader: _Reader) -> None:
    _context(reader)
    reader.skip(4)
    _legacy_change(reader)
    reader.sized()
    reader.skip(_TIME)


def _v3(reader: _Reader) -> None:
    _context(reader)
    reader.sized()
    reader.sized(_SAME_AS_PRIOR)
    reader.sized()
    reader.skip(_TIME)


_LAYOUTS: dict[int, Callable[[_Reader], None]] = {0: _v0, 1: _v1, 2: _v2, 3: _v3}


def _legacy_change(reader: _Reader) -> None:
    reader.sized()
    reader.sized()


def _context(reader: _Reader) -> None:
    """``ProcessorRecordContext``: timestamp, offset, topic, partition, headers (-1 for none)."""
    reader.skip(16)
    reader.skip(reader.number())
    reader.skip(4)
    for _ in range(max(0, reader.number())):
        reader.skip(reader.number())
        reader.sized()
