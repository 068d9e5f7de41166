"""Which records of aborted transactions have been written again?

A record that is written again has the same key and the same timestamp, behind the aborted one in its partition.
The cache of a store (``statestore.cache.max.bytes``) may merge several updates of a key into one, so that only a
record with a later timestamp comes again. A cache writes when a transaction is about to be committed, so such
records are seldom aborted, and then not alone. So if nothing of a transaction came again the same in a partition,
records with a later timestamp don't tell whether the aborted ones are in them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from kafka_rescale.core.formats.record_batches import Batch
from kafka_rescale.core.verify.aborted import SHOWN, AbortedRecord, AbortedReport, AbortedSpan

OPEN = -1
Offsets = tuple[int, int]
"""First and last offset, both inclusive."""


class Written(NamedTuple):
    """A record as a reader of everything sees it, committed or not.

    :param digest: a hash of the value. It tells apart records without a key.
    """

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    digest: bytes = b""


class AbortedTransaction(NamedTuple):
    """The batches of one aborted transaction in a partition.

    :param producer: the id of its producer.
    """

    producer: int
    batches: list[Offsets]


@dataclass
class Transactions:
    """The transactions in the log of one partition, as far as it was read.

    :param position: next offset to read.
    :param aborted: the aborted transactions, in the order of their ends.
    :param are_used: whether any transaction was seen.
    :param batches: number of batches that were seen.
    """

    position: int
    aborted: list[AbortedTransaction] = field(default_factory=list)
    are_used: bool = False
    batches: int = 0
    _open: dict[int, list[Offsets]] = field(default_factory=dict)

    def take(self, batch: Batch) -> None:
        """Go past a batch."""
        self.position = max(self.position, batch.last + 1)
        self.batches += 1
        if not batch.is_transactional:
            return
        self.are_used = True
        if not batch.is_control:
            self._open.setdefault(batch.producer, []).append((batch.first, batch.last))
            return
        ended = self._open.pop(batch.producer, None)
        if batch.is_abort and ended is not None:
            self.aborted.append(AbortedTransaction(batch.producer, ended))

    @property
    def open_since(self) -> int | None:
        """The first offset of a transaction whose end was not seen; None if there is none."""
        return min((first for batches in self._open.values() for first, _ in batches), default=None)

    @property
    def first_aborted(self) -> int | None:
        """The first offset of an aborted transaction; None if there is none."""
        return min((first for each in self.aborted for first, _ in each.batches), default=None)

    def uncommitted(self) -> dict[int, int]:
        """Return the offsets that are not committed, each with the number of its transaction, or ``OPEN``."""
        found = {o: OPEN for batches in self._open.values() for a, b in batches for o in range(a, b + 1)}
        for number, each in enumerate(self.aborted):
            found |= {offset: number for first, last in each.batches for offset in range(first, last + 1)}
        return found


class _Answer(IntEnum):
    """What has come behind an aborted record."""

    NONE = 0
    LATER = 1
    SAME = 2


@dataclass
class _Waiting:
    """An aborted record of a transaction of its partition, and what has come behind it."""

    record: Written
    transaction: int
    answer: _Answer = _Answer.NONE


def aborted_report(
    topic: str,
    transactions: Mapping[int, Transactions],
    records: Iterable[Written],
    judged: Mapping[int, int],
    others: Collection[int] = (),
) -> AbortedReport:
    """Look for the later records of a topic's aborted ones.

    :param transactions: by partition.
    :param records: all records from the first aborted one of each partition on, in the order of each partition.
    :param judged: offsets by partition (exclusive) below which an aborted record without a later one is lost.
        Green has processed all records that its inputs had when these offsets were the ends.
    :param others: ids of producers that are not green's. What they abort is their own affair.
    """
    uncommitted = {partition: of.uncommitted() for partition, of in transactions.items()}
    waiters = _Waiters()
    for record in records:
        transaction = uncommitted[record.partition].get(record.offset)
        if transaction is None:
            waiters.answer(record)
        elif transaction != OPEN and transactions[record.partition].aborted[transaction].producer not in others:
            waiters.add(_Waiting(record, transaction))
    found = waiters.all
    came_again = {(w.record.partition, w.transaction) for w in found if w.answer is _Answer.SAME}
    later = [w for w in found if w.answer is _Answer.LATER]
    unclear = sum((w.record.partition, w.transaction) not in came_again for w in later)
    unanswered = [w.record for w in found if w.answer is _Answer.NONE]
    lost = [r for r in unanswered if r.offset < judged.get(r.partition, 0)]
    return AbortedReport(
        topic=topic,
        records=len(found),
        again=len(found) - len(unanswered) - unclear,
        unclear=unclear,
        undecided=len(unanswered) - len(lost),
        lost=len(lost),
        first=tuple(_told(record) for record in lost[:SHOWN]),
        spans=tuple(_spans(lost)),
    )


class _Waiters:
    """Aborted records that wait for a later one of their key."""

    def __init__(self) -> None:
        self.all: list[_Waiting] = []
        self._of_key: dict[tuple[int, bytes], list[_Waiting]] = {}
        self._keyless: dict[tuple[int, bytes], list[_Waiting]] = {}
        self._answered: set[tuple[int, bytes]] = set()

    def add(self, waiting: _Waiting) -> None:
        record = waiting.record
        self.all.append(waiting)
        if record.key is not None:
            self._of_key.setdefault((record.partition, record.key), []).append(waiting)
            return
        # A producer chooses any partition for a record without a key, so the order of offsets tells nothing.
        content = record.timestamp_ms, record.digest
        if content in self._answered:
            waiting.answer = _Answer.SAME
        else:
            self._keyless.setdefault(content, []).append(waiting)

    def answer(self, record: Written) -> None:
        if record.key is None:
            content = record.timestamp_ms, record.digest
            self._answered.add(content)
            for each in self._keyless.pop(content, ()):
                each.answer = _Answer.SAME
            return
        place = record.partition, record.key
        if place not in self._of_key:
            return
        left = []
        for each in self._of_key[place]:
            if each.record.timestamp_ms == record.timestamp_ms:
                each.answer = _Answer.SAME
                continue
            if each.record.timestamp_ms < record.timestamp_ms:
                each.answer = _Answer.LATER
            left.append(each)
        if left:
            self._of_key[place] = left
        else:
            del self._of_key[place]


def _told(record: Written) -> AbortedRecord:
    return AbortedRecord(
        partition=record.partition,
        offset=record.offset,
        timestamp_ms=record.timestamp_ms,
        key=(record.key or b"").hex(),
    )


def _spans(lost: Iterable[Written]) -> Iterable[AbortedSpan]:
    offsets: dict[int, list[int]] = {}
    for record in lost:
        offsets.setdefault(record.partition, []).append(record.offset)
    for partition, found in sorted(offsets.items()):
        yield AbortedSpan(partition=partition, first=min(found), last=max(found), records=len(found))
