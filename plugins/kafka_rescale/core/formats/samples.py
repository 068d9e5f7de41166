"""Records that preflight has looked at, and their names in messages."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sample:
    """The place, the key and the contents of one record.

    :param timestamp_ms: the record's own timestamp.
    :param value: ``None`` for a tombstone, or if no check needs the value.
    :param batch_bytes: the size of a batch with this record alone, without compression.
    """

    topic: str
    partition: int
    offset: int
    key: bytes | None
    timestamp_ms: int = 0
    value: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    batch_bytes: int = 0


def at(sample: Sample) -> str:
    """Return the place of a sample, for a message."""
    return f"partition {sample.partition}, offset {sample.offset}"


def shown(key: bytes | None) -> str:
    """Return a key for a message: as text if it is printable, else in hex. A long key is cut."""
    if key is None:
        return "null"
    text = key[:40].decode("utf-8", errors="replace")
    rest = "…" if len(key) > 40 else ""
    return f"{text!r}{rest}" if text.isprintable() and "\ufffd" not in text else f"0x{key[:40].hex()}{rest}"
