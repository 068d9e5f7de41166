"""Which records of aborted transactions have been written again?

A record that is written again has the same key and the same timestamp, behind the aborted one in its partition. A
record without a key has the same timestamp and value, anywhere in its topic. Two aborted records that are the same
by this count as one.

The cache of a store (``statestore.cache.max.bytes``) may merge several updates of a key into one, so that only a
record with a later timestamp comes again. A cache writes when a transaction is about to be committed, so such
records are seldom aborted, and then not alone. So a later timestamp tells something only in a changelog, and only
if something of the transaction came again the same.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from kafka_rescale.core.formats.record_batches import Batch
from kafka_rescale.core.verify.aborted import SHOWN, AbortedRecord, AbortedReport
from kafka_rescale.core.verify.misrouted import Span

OPEN = -1
"""Stands for the number of a transaction whose end was not seen."""
Offsets = tuple[int, int]
"""First and last offset, both inclusive."""


class Written(NamedTuple):
    """A record as a reader of everything sees it, committed or not.

    :param digest: a hash of the value.
    :param is_dated_by_broker: whether its timestamp is that of the broker (``LogAppendTime``), and tells nothing.
    """

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    digest: bytes = b""
    is_dated_by_broker: bool = False

    @property
    def mark(self) -> tuple[int, bytes]:
        """What is the same if the record is written again, beside its key. Without a key, its value counts too."""
        if self.is_dated_by_broker:
            return 0, self.digest
        return self.timestamp_ms, b"" if self.key is not None else self.digest


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
    :param start: first offset that was to be read.
    :param aborted: the aborted transactions, in the order of their ends.
    :param are_used: whether any transaction was seen.
    :param batches: number of batches that were seen.
    """

    position: int
    start: int = field(init=False)
    aborted: list[AbortedTransaction] = field(default_factory=list)
    are_used: bool = False
    batches: int = 0
    _open: dict[int, list[Offsets]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.start = self.position

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

    @property
    def last_aborted(self) -> int:
        """The last offset of an aborted transaction; -1 if there is none."""
        return max((last for each in self.aborted for _, last in each.batches), default=-1)

    def uncommitted(self) -> Uncommitted:
        """Return the records that are not committed."""
        found = [(first, last, OPEN) for batches in self._open.values() for first, last in batches]
        for number, each in enumerate(self.aborted):
            found += [(first, last, number) for first, last in each.batches]
        return Uncommitted(sorted(found))


class Uncommitted:
    """The batches of a partition that are not committed, each with the number of its transaction, or ``OPEN``.

    :param batches: first and last offset and number, in the order of the offsets.
    """

    def __init__(self, batches: Sequence[tuple[int, int, int]]) -> None:
        self._batches, self._firsts = batches, [first for first, _, _ in batches]

    def transaction(self, offset: int) -> int | None:
        """Return the number of the transaction that an offset belongs to; None if it is committed."""
        at = bisect_right(self._firsts, offset) - 1
        if at < 0:
            return None
        _, last, number = self._batches[at]
        return number if offset <= last else None


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
    *,
    is_changelog: bool = False,
) -> AbortedReport:
    """Look for the later records of a topic's aborted ones.

    :param transactions: by partition.
    :param records: all records from the first aborted one of each partition on, in the order of each partition. If
        there are aborted ones without a key, those of all partitions.
    :param judged: offsets by partition (exclusive) below which an aborted record without a later one is lost.
        Green has processed all records that its inputs had when these offsets were the ends.
    :param others: ids of producers that are not green's. What they abort is their own affair.
    :param is_changelog: whether a partition has the records of one task only. If something of a transaction came
        again there, the task has processed all of it again.
    """
    uncommitted = {partition: of.uncommitted() for partition, of in transactions.items()}
    waiters = _Waiters()
    for record in records:
        transaction = uncommitted[record.partition].transaction(record.offset)
        if transaction is None:
            waiters.answer(record)
        elif transaction != OPEN and transactions[record.partition].aborted[transaction].producer not in others:
            waiters.add(_Waiting(record, transaction))
    found = waiters.all
    waiters.answer_keyless()
    same = {(w.record.partition, w.transaction) for w in found if w.answer is _Answer.SAME}
    came_again = same if is_changelog else set[tuple[int, int]]()
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
        self._keyless: list[_Waiting] = []
        self._committed: set[tuple[int, bytes]] = set()

    def add(self, waiting: _Waiting) -> None:
        record = waiting.record
        self.all.append(waiting)
        if record.key is None:
            self._keyless.append(waiting)
        else:
            self._of_key.setdefault((record.partition, record.key), []).append(waiting)

    def answer(self, record: Written) -> None:
        if record.key is None:
            self._committed.add(record.mark)
            return
        place = record.partition, record.key
        left = []
        for each in self._of_key.get(place, ()):
            if each.record.mark == record.mark:
                each.answer = _Answer.SAME
                continue
            if record.is_dated_by_broker or each.record.timestamp_ms < record.timestamp_ms:
                each.answer = _Answer.LATER
            left.append(each)
        if left:
            self._of_key[place] = left
        else:
            self._of_key.pop(place, None)

    def answer_keyless(self) -> None:
        """Answer the records without a key. A producer chooses any partition for them, so order tells nothing."""
        times, values = {time for time, _ in self._committed}, {value for _, value in self._committed}
        for each in self._keyless:
            time, value = each.record.mark
            if (time, value) in self._committed:
                each.answer = _Answer.SAME
            elif value in values or (not each.record.is_dated_by_broker and time in times):
                each.answer = _Answer.LATER


def _told(record: Written) -> AbortedRecord:
    return AbortedRecord(
        partition=record.partition,
        offset=record.offset,
        timestamp_ms=record.timestamp_ms,
        key=(record.key or b"").hex(),
    )


def _spans(lost: Iterable[Written]) -> Iterable[Span]:
    offsets: dict[int, list[int]] = {}
    for record in lost:
        offsets.setdefault(record.partition, []).append(record.offset)
    for partition, found in sorted(offsets.items()):
        yield Span(partition=partition, first=min(found), last=max(found), records=len(found))
