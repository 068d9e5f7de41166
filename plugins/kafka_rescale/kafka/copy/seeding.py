"""Beginning a copy with the rows of a snapshot, so that only the tail of the log has to be read.

From the first row to the last the committed mark says that the target is being seeded; whoever finds that after a
crash empties the target and begins anew, as after an interrupted restart. With the last row the position is that
of the snapshot and the mark an ordinary one. So the copy stays exactly once, and fenced by the transactional id.
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
from kafka_rescale.kafka.copy.writer import UnitWriter


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
        """Return the headers, None for none."""
        return self.row_headers or None

    def offset(self) -> int:
        """Return what makes the writer's position that of the snapshot."""
        return self.position - 1

    def __len__(self) -> int:
        return len(self.row_value or b"")


class Seed(Protocol):
    """The snapshot of one source partition."""

    @property
    def position(self) -> int:
        """Offset from which on the log is to be read."""
        ...

    def batches(self) -> Iterator[Sequence[SeedRow]]:
        """Yield the rows of keys whose last record lies before the position, in the order of their keys."""
        ...


@dataclass(frozen=True)
class Seeding:
    """Seeds that may be used, and how old the copies are then.

    :param as_of_ms: wall clock before it was seen that all of the logs behind the positions is there.
    :param refused: why others may not, for a person.
    """

    seeds: dict[tuple[str, int], Seed]
    as_of_ms: int
    refused: tuple[str, ...] = ()

    def fits(self, source: tuple[str, int], committed: Position | None, log: LogRange) -> bool:
        """Return whether a copy can begin with its seed: nothing has been copied, and the log goes on from it."""
        seed = self.seeds.get(source)
        return seed is not None and is_fresh(committed, log) and log.begin <= seed.position <= log.end


class Begun(NamedTuple):
    """How copies were begun.

    :param rows: of snapshots; all else is read from the log.
    :param refused: why snapshots were not used.
    """

    rows: int = 0
    refused: tuple[str, ...] = ()


def is_fresh(committed: Position | None, log: LogRange) -> bool:
    """Return whether a copy has not begun, or has just been started anew."""
    if committed is None:
        return True
    return committed.offset <= log.begin and not (committed.mark.records or committed.mark.state)


def seed_with(
    writer: UnitWriter, consumer: Consumer, seeding: Seeding, settings: CopySettings, explain: Explain
) -> int:
    """Write a snapshot's rows, set the writer to its position, and return how many rows that were.

    :raises Fenced: a newer attempt has taken over.
    :raises Outage: a transaction was aborted; the next attempt begins anew.
    :raises UnsafeState: a record that the brokers refuse.
    """
    seed = seeding.seeds[writer.unit.source]
    mark = Mark(as_of_ms=seeding.as_of_ms, state=SEEDING)
    try:
        writer.commit_at(consumer, Position(seed.position, mark))
        for rows in seed.batches():
            writer.write(_as_messages(rows))
            if writer.pending_records >= settings.commit_records or writer.pending_bytes >= settings.commit_bytes:
                mark = replace(
                    mark,
                    records=mark.records + writer.pending_records,
                    bytes=mark.bytes + writer.pending_bytes,
                )
                writer.commit_at(consumer, Position(seed.position, mark))
        writer.commit(consumer)
    except Rewound as rewound:
        # Its rows are what was left of the log before the snapshot's position.
        raise explain(writer.unit, rewound.reason, 0, seed.position) from None
    return writer.mark.records


def _as_messages(rows: Iterable[SeedRow]) -> Any:
    return list(rows)
