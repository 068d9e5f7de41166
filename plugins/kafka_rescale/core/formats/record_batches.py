"""Record batches (magic 2) as brokers store and send them: their headers, and their size; records stay unread.

When compaction removes records from a batch, it keeps the batch's first offset and its last offset delta. It
removes whole batches without a trace. So if batches follow each other without a gap, and each has as many records
as offsets, no record was removed between them; transaction markers and aborted records count as records.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kafka_rescale.core.errors import UnsafeState

# baseOffset, batchLength, partitionLeaderEpoch, magic, crc, attributes, lastOffsetDelta, baseTimestamp,
# maxTimestamp, producerId, producerEpoch, baseSequence, recordsCount
_HEADER = struct.Struct(">qiibIhiqqqhii")
_LENGTH = struct.Struct(">8xi")
_LENGTH_COUNTS_FROM = 12
_CODEC = 0x07
_CONTROL = 0x20
_DELETE_HORIZON = 0x40

CODECS = ("", "gzip", "snappy", "lz4", "zstd")
"""By the number in a batch's attributes, as `compression.type` names them; the first is no compression."""


@dataclass(frozen=True)
class Batch:
    """One batch of a log.

    :param last: offset of its last record, even if that record was removed.
    :param records: number of records that are in it.
    :param has_delete_horizon: log cleaning has set the moment from which on it removes the batch's tombstones
        (KIP-534).
    :param opens_segment: whether it is the first of its log segment that is left.
    :param codec: of its records; empty if they are not compressed.
    """

    first: int
    last: int
    records: int
    max_timestamp_ms: int
    is_control: bool = False
    has_delete_horizon: bool = False
    opens_segment: bool = False
    codec: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether all of its records are still in it."""
        return self.records == self.last - self.first + 1


def size_of(key: bytes | None, value: bytes | None, headers: Sequence[tuple[str, bytes | None]] = ()) -> int:
    """Return the size of a batch with one record, uncompressed; ``max.message.bytes`` limits it."""
    fields = [key, value, *(part for name, content in headers for part in (name.encode(), content))]
    # Attributes and the deltas of timestamp and offset take a byte each; every field comes behind its length.
    body = 3 + _varint_size(len(headers)) + sum(_field_size(field) for field in fields)
    return _HEADER.size + _varint_size(body) + body


def _field_size(field: bytes | None) -> int:
    return 1 if field is None else _varint_size(len(field)) + len(field)


def _varint_size(number: int) -> int:
    """Return the bytes of a number that is not negative: seven bits each, after one for the sign."""
    return (number.bit_length() + 7) // 7


def batches_of(data: bytes) -> Iterator[Batch]:
    """Yield the batches of an answer to a fetch; if the last one is cut off, it is left out.

    :raises UnsafeState: a batch has an older format, whose header tells less.
    """
    at = 0
    while at + _HEADER.size <= len(data):
        first, length, _, magic, _, attributes, delta, _, newest, _, _, _, count = _HEADER.unpack_from(data, at)
        if magic != 2:
            raise UnsafeState(
                f"record batch at offset {first}",
                found=f"message format {magic}",
                expected="format 2, which Kafka writes since 0.11",
                remedy="Raise the brokers' message format; what is in the topic is rewritten by and by.",
            )
        if at + _LENGTH_COUNTS_FROM + length > len(data):
            return
        is_control, has_horizon = bool(attributes & _CONTROL), bool(attributes & _DELETE_HORIZON)
        codec = CODECS[attributes & _CODEC]
        yield Batch(first, first + delta, count, newest, is_control, has_horizon, codec=codec)
        at += _LENGTH_COUNTS_FROM + length


def usual_codec(batches: Iterable[Batch]) -> str:
    """Return the codec of most records of some batches; empty if most are not compressed, or there are none."""
    records = Counter[str]()
    for batch in batches:
        if not batch.is_control:
            records[batch.codec] += batch.records
    return max(records, key=lambda codec: records[codec], default="")


def ends_within_batch(data: bytes) -> bool:
    """Return whether the last batch of an answer is cut off.

    Brokers answer a fetch from one log segment, up to the size asked for. So an answer without a cut has come to
    the end of the segment, or of the log.
    """
    at = 0
    while at + _LENGTH_COUNTS_FROM <= len(data):
        at += _LENGTH_COUNTS_FROM + int(_LENGTH.unpack_from(data, at)[0])
    return at != len(data)
