"""What a copy commits beside its position: a mark in the metadata of the consumer-group offset.

Position and mark are written in the transaction of the records that they stand for. So the counts are exact over
any number of crashes, and the age of a copy needs no other memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from confluent_kafka import Consumer

from kafka_rescale.core.cluster import TopicPartition
from kafka_rescale.kafka.reading.committed import read_committed

RESETTING = "resetting"
"""The target is being emptied. A worker that finds this must empty it again before copying."""

SEEDING = "seeding"
"""The rows of a snapshot are being written. A worker that finds this must empty the target before copying."""

EMPTIED = "emptied"
"""The target of in-flight records is empty and waits for this attempt's range; the offset means nothing yet."""


@dataclass(frozen=True)
class Mark:
    """The state of one unit.

    :param as_of_ms: wall clock since when deletions may be missed: as of it, the whole source partition has been
        copied, or the copy began at the log start. What had been deleted and compacted before a copy began, it
        has not read. So the time of its begin counts also behind ends that were asked for earlier.
    :param records: number of records copied so far, over all attempts.
    :param bytes: bytes of keys and values copied so far.
    :param attempt: the attempt at the cutover that has last emptied the target. Records in flight belong to it.
    :param state: empty while copying, or one of the constants above.
    :param session: session of the worker that follows this unit live; see ``CopyWorker.announce``.
    :param fingerprint: fingerprint of the move that made the copy; empty in a mark of an earlier version.
    :param throttled_ms: for how long brokers have made this unit's writers wait, because of a quota.
    :param restarted_ms: wall clock when the copy was last begun anew; 0 if it never was. It tells one copy from
        the next, also where retention moves the log starts of the target.
    """

    as_of_ms: int = 0
    records: int = 0
    bytes: int = 0
    attempt: int = 0
    state: str = ""
    session: str = ""
    fingerprint: str = ""
    throttled_ms: int = 0
    restarted_ms: int = 0

    def to_metadata(self) -> str:
        """Return the text that goes into the offset's metadata.

        Brokers limit how much a commit may have, and to an earlier version an unknown field is no mark at all.
        """
        fields = asdict(self)
        if not self.restarted_ms:
            del fields["restarted_ms"]
        return json.dumps(fields, separators=(",", ":"))

    @classmethod
    def from_metadata(cls, text: str | None) -> Mark:
        """Return the mark of a committed offset; the oldest possible mark if the metadata is no mark."""
        try:
            found = json.loads(text or "")
            return cls(**found)
        except (ValueError, TypeError):
            return cls()


@dataclass(frozen=True)
class Position:
    """The next offset to read, and its mark."""

    offset: int
    mark: Mark


def read_positions(consumer: Consumer, sources: Iterable[TopicPartition]) -> dict[TopicPartition, Position]:
    """Return the committed positions of a copy; see ``read_committed``."""
    return {
        source: Position(offset, Mark.from_metadata(text))
        for source, (offset, text) in read_committed(consumer, sources).items()
    }
