"""The units of a move that one producer writes: records and positions of all of them in common transactions.

So there are as many producers as a plan says (``core/plan/producers.py``), however many partitions a topic has. A
transaction that is aborted takes all units of its bucket back to their last commits. A producer that is fenced
can't write any unit of its bucket any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as KafkaPartition

from kafka_rescale.core.cluster import TopicPartition
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.copy.marks import Position
from kafka_rescale.kafka.copy.units import CopyUnit
from kafka_rescale.kafka.copy.writer import UnitWriter
from kafka_rescale.kafka.writing.producer import STUCK_SECONDS, UnitProducer
from kafka_rescale.kafka.writing.settings import BATCH_BYTES


class Bucket:
    """Writes some units; construction fences every older attempt at any unit of their bucket.

    :param units: at least one, all with the same transactional id.
    :param batch_bytes: largest batch that the target accepts.
    :param call_seconds: how long to wait for a commit; see ``UnitProducer``.
    :raises Outage: the transaction coordinator does not answer.
    """

    def __init__(
        self,
        connection: KafkaConnection,
        units: Sequence[CopyUnit],
        green: str,
        batch_bytes: int = BATCH_BYTES,
        call_seconds: float = STUCK_SECONDS,
    ) -> None:
        first, codec = units[0], units[0].move.compression
        compression = {"compression.type": codec} if codec and not connection.compression else {}
        what = f"copy of {first}" + (f" and of {len(units) - 1} more of its producer" if len(units) > 1 else "")
        self._producer = UnitProducer(
            connection, what, first.transactional_id(green), batch_bytes, call_seconds, **compression
        )
        self._told_ms, self._fingerprint = 0, first.move.fingerprint
        self.writers: dict[TopicPartition, UnitWriter] = {
            unit.source: UnitWriter(unit, self._producer, self.commit_at) for unit in units
        }

    @property
    def throttled_ms(self) -> int:
        """For how long brokers have made its client wait."""
        return self._producer.throttled_ms

    @property
    def unanswered(self) -> int:
        """How many of its records are on their way."""
        return self._producer.unanswered

    @property
    def pending_records(self) -> int:
        """How many records the open transaction has."""
        return sum(writer.pending_records for writer in self.writers.values())

    @property
    def pending_bytes(self) -> int:
        """How many bytes of keys and values the open transaction has."""
        return sum(writer.pending_bytes for writer in self.writers.values())

    def commit(self, consumer: Consumer, writers: Iterable[UnitWriter]) -> None:
        """Make the records of all units visible and the positions of some of them durable, all or nothing.

        :param writers: the position of any other unit that has written records is committed as well.
        :raises Fenced: a newer attempt has taken over; nothing was written.
        :raises Rewound: the transaction was aborted.
        """
        self.commit_at(consumer, {writer.unit.source: writer.written for writer in writers})

    def commit_at(self, consumer: Consumer, positions: Mapping[TopicPartition, Position]) -> None:
        """Commit positions and marks of some units, together with the records of this transaction.

        No record is committed without its unit's position, whoever asks for the commit. The marks also say which
        move has written the records. Every mark is committed here, so every mark says it.
        """
        others = {s: w.written for s, w in self.writers.items() if w.pending_records and s not in positions}
        throttled_ms = self._producer.throttled_ms
        # One of the marks gets the wait of the producer: readers add all marks up.
        untold_ms, told = throttled_ms - self._told_ms, dict[TopicPartition, Position]()
        for source, position in {**positions, **others}.items():
            waited_ms = position.mark.throttled_ms + untold_ms
            mark = replace(position.mark, fingerprint=self._fingerprint, throttled_ms=waited_ms)
            told[source], untold_ms = replace(position, mark=mark), 0
        self._producer.commit(
            [KafkaPartition(*s, at.offset, metadata=at.mark.to_metadata()) for s, at in told.items()], consumer
        )
        self._told_ms = throttled_ms
        for source, position in told.items():
            self.writers[source].begin(position, committed=True)

    def rewind(self) -> None:
        """Go back to the last commits of all units, after an abort."""
        for writer in self.writers.values():
            writer.rewind()

    def await_answers(self, seconds: float) -> None:
        """Wait for a moment for answers of the brokers; see ``UnitProducer``."""
        self._producer.await_answers(seconds)

    def abandon(self) -> None:
        """Leave the producer behind as it is; see ``UnitProducer``."""
        self._producer.abandon()

    def abort(self) -> None:
        """Abort the records since the last commit; errors don't matter any more."""
        self._producer.abort()
