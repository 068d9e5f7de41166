"""The oracles of the proof, and how each names its findings.

Compaction leaves a contiguous suffix of every key's history. It removes a record only if the cleaned part holds a
newer one, and a tombstone only if it is the oldest record left. So blue's log and the copy are both suffixes of
one history. They must agree record by record, counted *from the end*, however often either has been compacted.
``STATE`` compares the last record of a key, and ``SEQUENCE`` all records before it.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from kafka_rescale.core.values import Value


class Oracle(StrEnum):
    """A statement that must hold; the value is the word for it in reports."""

    STATE = "state"
    PLACEMENT = "placement"
    MISPLACED_IN_BLUE = "misplaced in blue"
    ONE_PARTITION = "one partition"
    TOMBSTONES = "tombstones"
    START_OFFSETS = "start offsets"
    MISROUTED = "misrouted"
    RESIDUE = "residue"
    SEQUENCE = "sequence"
    DUPLICATES = "duplicates"
    VERSIONS = "versions"
    PRIMARY_PARTITION = "primary partition"
    ABORTED = "aborted"


MEANING: dict[Oracle, str] = {
    Oracle.STATE: "every live entry has the same key, value, timestamp and headers on both sides",
    Oracle.PLACEMENT: "every record of green is in the partition of its partitioning key",
    Oracle.MISPLACED_IN_BLUE: "every record of blue is in the partition of its partitioning key",
    Oracle.ONE_PARTITION: "no key is in two partitions of one log",
    Oracle.TOMBSTONES: "a key that is deleted or unknown in blue is not live in green",
    Oracle.START_OFFSETS: "green started where blue stopped, and at 0 in new partitions",
    Oracle.MISROUTED: "every record that came into a grown input since is in the partition of its key",
    Oracle.RESIDUE: "green's partition modulo blue's count is blue's partition (static partitioners: is blue's)",
    Oracle.SEQUENCE: "the records of a key have the same order on both sides",
    Oracle.DUPLICATES: "green has no record more often than blue's log",
    Oracle.VERSIONS: "every version that compaction had to keep is on both sides",
    Oracle.ABORTED: "what green wrote in transactions that were aborted, it has written again",
    Oracle.PRIMARY_PARTITION: "every foreign-key subscription names the partition of its primary key",
}


class Entry(Value):
    """One changelog record as the comparison sees it.

    :param timestamp_ms: the record timestamp, ms since the epoch.
    :param value: 128 bits of hash over the value.
    :param headers: 64 bits of hash over the headers in their order; 0 if there are none.
    """

    partition: int
    offset: int
    timestamp_ms: int
    tombstone: bool
    value: tuple[int, int]
    headers: int


class KeyFinding(Value):
    """One violation of an oracle.

    :param subject: the store, or for ``START_OFFSETS`` the topic.
    :param key: the changelog key in hex.
    :param text: the changelog key as text, if it is printable UTF-8.
    :param blue: ``partition@offset`` of blue's record; empty if there is no record.
    :param green: ``partition@offset`` of green's record; empty if there is no record.
    """

    oracle: Oracle
    subject: str
    detail: str
    key: str = ""
    text: str = ""
    blue: str = ""
    green: str = ""


class Alignment(Value):
    """A key's records of both sides with the same distance from the end.

    :param rank: 1 for the last record of the key, counting backwards.
    :param source: the partition of ``blue.partitions`` that the partitioner gives, -1 for a malformed key.
    :param target: the partition of ``green.partitions`` that it gives, -1 for a malformed key.
    :param blue_neighbour: partition of the key's next newer record in blue, if there is such a record.
    :param primary: for a foreign-key subscription, the left table's partition that green's value names.
    :param primary_home: the partition that its primary key belongs to.
    """

    key: bytes
    rank: int
    source: int
    target: int
    blue: Entry | None = None
    green: Entry | None = None
    blue_neighbour: int | None = None
    green_neighbour: int | None = None
    primary: int | None = None
    primary_home: int | None = None


def finding_of(oracle: Oracle, store: str, at: Alignment) -> KeyFinding:
    """Return the finding of one oracle at one alignment, in words."""
    return KeyFinding(
        oracle=oracle,
        subject=store,
        detail=_detail(oracle, at),
        key=at.key.hex(),
        text=printable(at.key),
        blue=_place(at.blue),
        green=_place(at.green),
    )


def printable(key: bytes) -> str:
    """Return a key as text; an empty text if a person can't read it."""
    try:
        text = key.decode()
    except UnicodeDecodeError:
        return ""
    return text if text.isprintable() else ""


def differences(blue: Entry, green: Entry) -> str:
    """Return what differs between two records, for a person."""
    if blue.tombstone != green.tombstone:
        return "deleted in blue, a value in green" if blue.tombstone else "a value in blue, deleted in green"
    parts = [
        "value differs" if blue.value != green.value else "",
        f"timestamp {blue.timestamp_ms} in blue, {green.timestamp_ms} in green"
        if blue.timestamp_ms != green.timestamp_ms
        else "",
        "headers differ" if blue.headers != green.headers else "",
    ]
    return ", ".join(p for p in parts if p)


def _detail(oracle: Oracle, at: Alignment) -> str:
    words: dict[Oracle, Callable[[Alignment], str]] = {
        Oracle.PLACEMENT: lambda at: _wrong_place(at.green, at.target),
        Oracle.MISPLACED_IN_BLUE: lambda at: _wrong_place(at.blue, at.source),
        Oracle.ONE_PARTITION: _split,
        Oracle.VERSIONS: _missing_version,
        Oracle.PRIMARY_PARTITION: lambda at: (
            f"names partition {at.primary} of the left table instead of {at.primary_home}"
        ),
        Oracle.DUPLICATES: lambda at: (
            f"record {at.rank} from the end; blue's log is complete and has {at.rank - 1} of the key"
        ),
    }
    if oracle in words:
        return words[oracle](at)
    return _disagreement(oracle, at)


def _disagreement(oracle: Oracle, at: Alignment) -> str:
    blue, green = at.blue, at.green
    if blue is None:
        if green is not None and green.tombstone:
            return "deleted in green; blue has no record of the key since"
        return "live in green; blue has no record of the key (its tombstone may have been compacted away)"
    if green is None:
        return "deleted in blue, no deletion in green" if blue.tombstone else "live in blue, missing in green"
    if oracle is Oracle.RESIDUE:
        return f"partition {green.partition} of green, {blue.partition} of blue"
    where = "" if at.rank == 1 else f"record {at.rank} from the end: "
    return where + differences(blue, green)


def _missing_version(at: Alignment) -> str:
    entry, side = (at.blue, "green") if at.green is None else (at.green, "blue")
    what = "deletion" if entry and entry.tombstone else "version"
    return (
        f"record {at.rank} from the end: the {what} of {entry.timestamp_ms if entry else '?'} is missing in {side}"
    )


def _split(at: Alignment) -> str:
    sides = (("blue", at.blue, at.blue_neighbour), ("green", at.green, at.green_neighbour))
    return ", ".join(
        f"partitions {entry.partition} and {neighbour} of {name}"
        for name, entry, neighbour in sides
        if entry is not None and neighbour is not None and neighbour != entry.partition
    )


def _wrong_place(entry: Entry | None, expected: int) -> str:
    if expected < 0:
        return "the key can't be of the store type"
    return f"in partition {entry.partition if entry else '?'} instead of {expected}"


def _place(entry: Entry | None) -> str:
    return "" if entry is None else f"{entry.partition}@{entry.offset}"
