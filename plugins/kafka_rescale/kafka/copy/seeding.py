"""Beginning a copy with the rows of a snapshot, so that only the tail of the log has to be read.

From the first row to the last, the committed mark says that the target is being seeded. A worker that finds this
mark after a crash empties the target and begins anew, as after an interrupted restart. The last row is committed
together with the snapshot's position and an ordinary mark. So the copy stays exactly once, and the transactional
id fences it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

from confluent_kafka import Consumer

from kafka_rescale.core.cluster import LogRange
from kafka_rescale.kafka.client.failures import Rewound
from kafka_rescale.kafka.copy.commits import Explain
from kafka_rescale.kafka.copy.marks import SEEDING, Mark, Position
from kafka_rescale.kafka.copy.settings import CopySettings
from kafka_rescale.kafka.copy.throttle import Throttle
from kafka_rescale.kafka.copy.writer import UnitWriter

REST_SECONDS = 0.5
"""How often a worker that rests looks whether it may go on."""


class SeedRow(NamedTuple):
    """One row, as much like a ``Message`` as a writer needs."""

    row_key: bytes
    row_value: bytes | None
    timestamp_ms: int
    row_headers: list[tuple[str, bytes | None]]
    position: int

    def key(self) -> bytes:
        """Return the changelog key."""
        return self.row_key

    def value(self) -> bytes | None:
        """Return the value."""
        return self.row_value

    def timestamp(self) -> tuple[int, int]:
        """Return type and time, as a ``Message`` does."""
        return 1, self.timestamp_ms

    def headers(self) -> list[tuple[str, bytes | None]] | None:
        """Return the headers; None if there are none."""
        return self.row_headers or None

    def offset(self) -> int:
        """Return an offset after which the writer's position is the snapshot's position."""
        return self.position - 1

    def __len__(self) -> int:
        return len(self.row_value or b"")


class Seed(Protocol):
    """The snapshot of one source partition."""

    @property
    def position(self) -> int:
        """Offset from which the log has to be read."""
        ...

    def batches(self) -> Iterator[Sequence[SeedRow]]:
        """Yield the rows of keys whose last record lies before the position, in the order of their keys."""
        ...


@dataclass(frozen=True)
class Seeding:
    """Snapshots that may be used, and how old the copies are then.

    :param as_of_ms: wall clock before the logs behind the positions were found to be complete.
    :param refused: why other snapshots can't be used, for a person.
    """

    seeds: dict[tuple[str, int], Seed]
    as_of_ms: int
    refused: tuple[str, ...] = ()

    def fits(self, source: tuple[str, int], committed: Position | None, log: LogRange) -> bool:
        """Return whether a copy can begin with its snapshot: it has copied nothing, and the log continues it."""
        seed = self.seeds.get(source)
        return seed is not None and is_fresh(committed, log) and log.begin <= seed.position <= log.end


class Begun(NamedTuple):
    """How copies were begun.

    :param rows: number of rows from snapshots; all other records are read from the log.
    :param refused: why snapshots were not used.
    """

    rows: int = 0
    refused: tuple[str, ...] = ()


def is_fresh(committed: Position | None, log: LogRange) -> bool:
    """Return whether a copy has copied nothing yet, or has just been started anew."""
    if committed is None:
        return True
    return committed.offset <= log.begin and not (committed.mark.records or committed.mark.state)


def seed_with(
    writer: UnitWriter,
    consumer: Consumer,
    seeding: Seeding,
    settings: CopySettings,
    explain: Explain,
    throttle: Throttle,
    restarted_ms: int = 0,
) -> int:
    """Write a snapshot's rows, set the writer to its position, and return the number of rows.

    While this rests, nothing is open at the brokers, as when a worker rests.

    :param restarted_ms: when the copy was last begun anew; see ``Mark``.
    :raises Fenced: a newer attempt has taken over.
    :raises Outage: a transaction was aborted; the next attempt begins anew.
    :raises UnsafeState: the brokers refuse a record.
    """
    seed = seeding.seeds[writer.unit.source]
    mark = Mark(as_of_ms=seeding.as_of_ms, state=SEEDING, restarted_ms=restarted_ms)
    try:
        writer.commit_at(consumer, Position(seed.position, mark))
        for rows in seed.batches():
            before = writer.pending_bytes
            writer.write(_as_messages(rows))
            throttle.spent(writer.pending_bytes - before)
            is_large = writer.pending_bytes >= settings.commit_bytes
            if is_large or writer.pending_records >= settings.commit_records or throttle.rest_seconds() > 0:
                mark = replace(
                    mark,
                    records=mark.records + writer.pending_records,
                    bytes=mark.bytes + writer.pending_bytes,
                )
                writer.commit_at(consumer, Position(seed.position, mark))
            throttle.wait(REST_SECONDS)
        writer.commit(consumer)
    except Rewound as rewound:
        # The rows are the entries that remained of the log before the snapshot's position.
        raise explain(writer.unit, rewound.reason, 0, seed.position) from None
    return writer.mark.records


def _as_messages(rows: Iterable[SeedRow]) -> Any:
    return list(rows)
