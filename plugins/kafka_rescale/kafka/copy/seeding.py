"""Beginning a copy with the rows of a snapshot, so that only the tail of the log has to be read.

From the first row to the last, the committed mark says that the target is being seeded. A worker that finds this
mark after a crash empties the target and begins anew, as after an interrupted restart. The last row is committed
together with the snapshot's position and an ordinary mark. So the copy stays exactly once, and the transactional
id fences it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

from confluent_kafka import Consumer

from kafka_rescale.core.cluster import LogRange
from kafka_rescale.kafka.client.failures import Rewound
from kafka_rescale.kafka.copy.commits import Explain
from kafka_rescale.kafka.copy.marks import SEEDING, Mark, Position
from kafka_rescale.kafka.copy.settings import CopySettings
from kafka_rescale.kafka.copy.throttle import Throttle
from kafka_rescale.kafka.copy.window import ANSWER_SECONDS, Window
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


@dataclass(frozen=True)
class Flow:
    """What bounds the rows that a worker writes, as it bounds the records that the worker copies.

    :param throttle: the worker's share.
    :param window: how much it has on its way at most.
    :param on_way: returns how many of its records the brokers have not answered.
    :param await_answers: waits for so many seconds for answers.
    :param renew: called while the worker rests; nothing is open then.
    """

    throttle: Throttle
    window: Window
    on_way: Callable[[], int]
    await_answers: Callable[[float], None]
    renew: Callable[[], None]


def seed_with(
    writer: UnitWriter,
    consumer: Consumer,
    seeding: Seeding,
    settings: CopySettings,
    explain: Explain,
    flow: Flow,
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
        sower = _Sower(writer, consumer, seed.position, settings, flow)
        for rows in seed.batches():
            sower.write(rows)
        writer.commit(consumer)
    except Rewound as rewound:
        # The rows are the entries that remained of the log before the snapshot's position.
        raise explain(writer.unit, rewound.reason, 0, seed.position) from None
    return writer.mark.records


class _Sower:
    """Writes rows in transactions that are no larger and no older than those of a copy.

    :param position: the snapshot's position.
    """

    def __init__(
        self, writer: UnitWriter, consumer: Consumer, position: int, settings: CopySettings, flow: Flow
    ) -> None:
        self._writer, self._consumer, self._position = writer, consumer, position
        self._settings, self._flow = settings, flow
        self._committed = time.monotonic()

    def write(self, rows: Sequence[SeedRow]) -> None:
        """Write some rows, in parts that the brokers can answer in time; rest if the share is used up."""
        flow, written = self._flow, 0
        while written < len(rows):
            wanted = flow.window.poll_records(flow.on_way(), flow.throttle.most_bytes)
            part = rows[written : written + wanted]
            before = self._writer.pending_bytes
            self._writer.write(_as_messages(part))
            size = self._writer.pending_bytes - before
            flow.throttle.spent(size)
            flow.window.wrote(len(part), size)
            written += len(part)
            self._commit_if_due()
            flow.throttle.wait(REST_SECONDS, self._rest)
            while flow.window.is_full(flow.on_way()):
                flow.await_answers(ANSWER_SECONDS)
                self._commit_if_due()

    def _rest(self) -> None:
        if self._writer.pending_records:
            self._commit()
        self._flow.renew()

    def _commit_if_due(self) -> None:
        writer, settings = self._writer, self._settings
        is_large = writer.pending_bytes >= settings.commit_bytes
        is_old = time.monotonic() - self._committed >= settings.commit_seconds
        if is_large or is_old or writer.pending_records >= settings.commit_records:
            self._commit()

    def _commit(self) -> None:
        """Commit what is written; the mark still says that the target is being seeded."""
        writer, began = self._writer, time.monotonic()
        size = writer.pending_bytes
        mark = replace(
            writer.mark, records=writer.mark.records + writer.pending_records, bytes=writer.mark.bytes + size
        )
        writer.commit_at(self._consumer, Position(self._position, mark))
        self._committed = time.monotonic()
        self._flow.window.committed(size, self._committed - began)


def _as_messages(rows: Iterable[SeedRow]) -> Any:
    return list(rows)
