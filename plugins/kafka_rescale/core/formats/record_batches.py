"""Record batches (magic 2) as brokers store and send them. This module reads only their headers and sizes.

When compaction removes records from a batch, it keeps the batch's first offset and its last offset delta. If it
removes a whole batch, it leaves only a gap between offsets. So no record was removed if the batches follow each
other without a gap, and each batch has as many records as offsets. Transaction markers and aborted records count
as records.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kafka_rescale.core.cluster import Habit
from kafka_rescale.core.errors import UnsafeState

# baseOffset, batchLength, partitionLeaderEpoch, magic, crc, attributes, lastOffsetDelta, baseTimestamp,
# maxTimestamp, producerId, producerEpoch, baseSequence, recordsCount
_HEADER = struct.Struct(">qiibIhiqqqhii")
_LENGTH = struct.Struct(">8xi")
_LENGTH_COUNTS_FROM = 12
_CONTROL_KEY = struct.Struct(">hh")
_ABORT = 0
_CODEC = 0x07
_TRANSACTIONAL = 0x10
_CONTROL = 0x20
_DELETE_HORIZON = 0x40

CODECS = ("", "gzip", "snappy", "lz4", "zstd")
"""Names as in `compression.type`. The number in a batch's attributes is the index. The first is no compression."""


@dataclass(frozen=True)
class Batch:
    """One batch of a log.

    :param first: the offset of its first record, even if that record was removed.
    :param last: the offset of its last record, even if that record was removed.
    :param records: the number of records that are still in the batch.
    :param has_delete_horizon: whether log cleaning has set the time from which on it may remove the tombstones of
        the batch (KIP-534).
    :param opens_segment: whether it is the first batch that is left in its log segment.
    :param codec: the codec of its records. Empty if they are not compressed.
    :param producer: the id of the producer that has written it; -1 without idempotence.
    :param is_transactional: whether its records belong to a transaction, or end one.
    :param is_abort: whether it is the marker of an aborted transaction.
    """

    first: int
    last: int
    records: int
    max_timestamp_ms: int
    is_control: bool = False
    has_delete_horizon: bool = False
    opens_segment: bool = False
    codec: str = ""
    producer: int = -1
    is_transactional: bool = False
    is_abort: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether no record was removed from the batch."""
        return self.records == self.last - self.first + 1


def size_of(key: bytes | None, value: bytes | None, headers: Sequence[tuple[str, bytes | None]] = ()) -> int:
    """Return the size of a batch with one record, uncompressed. ``max.message.bytes`` limits this size."""
    fields = [key, value, *(part for name, content in headers for part in (name.encode(), content))]
    # Attributes and the deltas of timestamp and offset take a byte each. Before every field stands its length.
    body = 3 + _varint_size(len(headers)) + sum(_field_size(field) for field in fields)
    return _HEADER.size + _varint_size(body) + body


def _field_size(field: bytes | None) -> int:
    return 1 if field is None else _varint_size(len(field)) + len(field)


def _varint_size(number: int) -> int:
    """Return how many bytes a number takes that is not negative. A byte has seven bits; one bit is the sign."""
    return (number.bit_length() + 7) // 7


def batches_of(data: bytes) -> Iterator[Batch]:
    """Yield the batches of an answer to a fetch. If the last batch is cut off, leave it out.

    :raises UnsafeState: a batch has an older format. The header of such a batch tells less.
    """
    at = 0
    while at + _HEADER.size <= len(data):
        fields = _HEADER.unpack_from(data, at)
        first, length, _, magic, _, attributes, delta, _, newest, producer, _, _, count = fields
        if magic != 2:
            raise UnsafeState(
                f"record batch at offset {first}",
                found=f"message format {magic}",
                expected="format 2, which Kafka writes since 0.11",
                remedy="Raise the brokers' message format. The batches in the topic are then rewritten over time.",
            )
        if at + _LENGTH_COUNTS_FROM + length > len(data):
            return
        is_control, has_horizon = bool(attributes & _CONTROL), bool(attributes & _DELETE_HORIZON)
        yield Batch(
            first,
            first + delta,
            count,
            newest,
            is_control,
            has_horizon,
            codec=CODECS[attributes & _CODEC],
            producer=producer,
            is_transactional=bool(attributes & _TRANSACTIONAL),
            is_abort=is_control and _is_abort(data, at + _HEADER.size),
        )
        at += _LENGTH_COUNTS_FROM + length


def _is_abort(data: bytes, at: int) -> bool:
    """Whether the record of a control batch says that a transaction was aborted (``ControlRecordType``).

    Its key is a version and a type, of two bytes each. Before it stand five fields: the length of the record, the
    attributes, the deltas of timestamp and offset, and the length of the key.

    :param at: where the record begins.
    """
    for _ in range(5):
        # Attributes are a byte whose first bit is not set, so they end like a varint of one byte.
        while data[at] & 0x80:
            at += 1
        at += 1
    return bool(_CONTROL_KEY.unpack_from(data, at)[1] == _ABORT)


def habit_of(batches: Iterable[tuple[Batch, int]]) -> Habit:
    """Return how some batches of a topic were written.

    :param batches: each with the offset from which on its partition has been written by the application. What an
        expansion has copied there before was written in the copy's transactions.
    """
    records, in_transactions = Counter[str](), False
    for batch, own_from in batches:
        if not batch.is_control:
            records[batch.codec] += batch.records
            in_transactions |= batch.is_transactional and batch.last >= own_from
    return Habit(max(records, key=lambda codec: records[codec], default=""), in_transactions)


def ends_within_batch(data: bytes) -> bool:
    """Return whether the last batch of an answer is cut off.

    Brokers answer a fetch from one log segment, up to the size that the fetch asks for. So if an answer is not cut
    off, it has reached the end of the segment, or of the log.
    """
    at = 0
    while at + _LENGTH_COUNTS_FROM <= len(data):
        at += _LENGTH_COUNTS_FROM + int(_LENGTH.unpack_from(data, at)[0])
    return at != len(data)
