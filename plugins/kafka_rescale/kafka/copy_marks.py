"""What a copy commits beside its position: a mark in the metadata of the consumer-group offset.

Position and mark are written in the transaction of the records they stand for, so counts are exact over any number
of crashes, and the age of a copy is known without any other memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass

from confluent_kafka import Consumer, KafkaException
from confluent_kafka import TopicPartition as KafkaPartition

from kafka_rescale.core.cluster import TopicPartition
from kafka_rescale.core.errors import Outage, RescaleError
from kafka_rescale.kafka.connection import KafkaConnection
from kafka_rescale.kafka.failures import to_error
from kafka_rescale.kafka.waiting import poll_until

RESETTING = "resetting"
"""The target is being emptied; whoever finds this must empty it again before copying."""

SEEDING = "seeding"
"""The rows of a snapshot are being written; whoever finds this must empty the target before copying."""

EMPTIED = "emptied"
"""The target of in-flight records is empty and waits for this attempt's range; the offset means nothing yet."""

AT_ONCE = {"isolation.level": "read_uncommitted"}
"""Whoever only looks does not wait for the transaction of a run that was killed: it counts for nothing."""

COMMITTED_SECONDS = 30.0


@dataclass(frozen=True)
class Mark:
    """The state of one unit.

    :param as_of_ms: everything that was in the source partition then has been copied; or when the copy began, if
        it has never reached an end.
    :param records: copied so far, over all attempts.
    :param bytes: of keys and values copied so far.
    :param attempt: the attempt at the cutover that has last emptied the target: records in flight belong to it.
    :param state: empty while copying, or one of the constants above.
    :param session: who follows this unit live; see ``CopyWorker.announce``.
    :param fingerprint: of the move that this was copied by; empty in a mark of an earlier version.
    """

    as_of_ms: int = 0
    records: int = 0
    bytes: int = 0
    attempt: int = 0
    state: str = ""
    session: str = ""
    fingerprint: str = ""

    def to_metadata(self) -> str:
        """Return the text that goes into the offset's metadata."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_metadata(cls, text: str | None) -> Mark:
        """Return the mark of a committed offset; for one that somebody else committed, the oldest possible."""
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


def read_committed(
    consumer: Consumer, sources: Iterable[TopicPartition]
) -> dict[TopicPartition, tuple[int, str | None]]:
    """Return the committed offsets (next to read) and their metadata; partitions without one are left out.

    :param consumer: of the group and ``read_committed``, so that the answer waits for open transactions.
    :raises Outage: the coordinator did not answer.
    """
    wanted = [KafkaPartition(topic, partition) for topic, partition in sources]
    found: list[KafkaPartition] = []
    failures: list[RescaleError] = []

    def answered() -> bool:
        # The first request of a group makes a broker load its coordinator; that shows as errors for a moment.
        try:
            found[:] = consumer.committed(wanted, timeout=COMMITTED_SECONDS)
        except KafkaException as error:
            failures.append(to_error(error.args[0], "progress of the copy"))
        else:
            errors = [(entry, entry.error) for entry in found if entry.error is not None]
            failures.extend(to_error(error, f"progress of {e.topic}-{e.partition}") for e, error in errors)
            if not errors:
                return True
        if not isinstance(failures[-1], Outage):
            raise failures[-1]
        return False

    if wanted:
        poll_until(answered, seconds=COMMITTED_SECONDS, otherwise=lambda: failures[-1])
    return {(entry.topic, entry.partition): (entry.offset, entry.metadata) for entry in found if entry.offset >= 0}


def copy_consumer(connection: KafkaConnection, group: str, **tuning: object) -> Consumer:
    """Return a consumer for ``assign``: it reads committed records only, says where logs end, commits nothing."""
    settings = {
        "group.id": group,
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
        "auto.offset.reset": "error",
        # Each replica is cleaned by itself, and whether a log is whole is asked of its leader.
        "client.rack": "",
        **tuning,
    }
    return Consumer(connection.client(**settings))


@contextmanager
def closing_consumer(connection: KafkaConnection, group: str, **tuning: object) -> Iterator[Consumer]:
    """Lend a consumer that looks something up; see ``copy_consumer``."""
    consumer = copy_consumer(connection, group, **tuning)
    try:
        yield consumer
    finally:
        consumer.close()
