"""Following the control topic at little cost, to wait for its changes."""

from __future__ import annotations

from collections import Counter
from types import TracebackType
from typing import Self

from confluent_kafka import Consumer, KafkaError, TopicPartition

from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.journal import BLUE_STOPPED, Journal
from kafka_rescale.core.control.keys import CONTROL_TOPIC, Concern
from kafka_rescale.core.control.lease import Lease
from kafka_rescale.core.control.pace import Pace, Rate
from kafka_rescale.core.errors import ClusterTimedOut
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.error_classes import may_pass
from kafka_rescale.kafka.client.failures import to_error
from kafka_rescale.kafka.client.waiting import poll_until
from kafka_rescale.kafka.reading.log_reader import SETTINGS

FIRST_SECONDS = 60.0
WAIT_MS = 100
"""How long a broker may hold an empty answer. It answers at once when there is a record. While a switch waits for
its window, several jobs follow for days; with a reader's 20 ms each would send 50 requests a second."""


class ControlFollower:
    """Keeps one consumer at the end of the control topic. It reads new records once, within a few ms.

    :param application: base name of the application.
    :ivar received: how many records have been read, of whatever application.
    """

    def __init__(self, connection: KafkaConnection, application: str) -> None:
        self.received = 0
        self._prefix = f"{application}/".encode()
        self._values: dict[str, bytes | None] = {}
        self._parsed: dict[str, tuple[int, JobResult | None]] = {}
        self._arrived: Counter[str] = Counter()
        self._at_end = False
        self._consumer = Consumer(connection.client(**{**SETTINGS, "fetch.wait.max.ms": WAIT_MS}))
        self._consumer.assign([TopicPartition(CONTROL_TOPIC, 0, 0)])

    def to_end(self) -> None:
        """Read all records that were in the topic when this was called first.

        :raises ClusterOutage: the end is not reached in time.
        """

        def read() -> bool:
            self.follow()
            return self._at_end

        poll_until(
            read,
            seconds=FIRST_SECONDS,
            otherwise=lambda: ClusterTimedOut(
                f"topic {CONTROL_TOPIC!r} to be read up to its end", seconds=FIRST_SECONDS, remedy="Run again."
            ),
        )

    def follow(self) -> None:
        """Take the records that have arrived, without waiting."""
        while message := self._consumer.poll(0):
            error = message.error()
            if error is None:
                self.received += 1
                key = message.key() or b""
                self._take(key if isinstance(key, bytes) else key.encode(), message.value())
            elif error.code() == KafkaError._PARTITION_EOF:
                self._at_end = True
            elif not may_pass(error):
                raise to_error(error, f"topic {CONTROL_TOPIC!r}")

    def heard(self, job: str) -> tuple[int, JobResult | None]:
        """Return how many records of a job and its parts have arrived, and the job's newest result.

        This does not wait. Signs of life count as well: they are records of their own, beside the results.
        """
        self.follow()
        key = f"{Concern.RESULT}/{job}"
        own = self._arrived[key]
        if self._parsed.get(job, (0, None))[0] != own:
            value = self._values[key]
            self._parsed[job] = own, None if value is None else JobResult.model_validate_json(value)
        sign = f"{Concern.SIGN}/{job}"
        parts = (f"{key}/", f"{sign}/")
        others = sum(n for name, n in self._arrived.items() if name == sign or name.startswith(parts))
        return own + others, self._parsed.get(job, (0, None))[1]

    def close(self) -> None:
        """End the consumer."""
        self._consumer.close()

    def _take(self, key: bytes, value: bytes | None) -> None:
        if not key.startswith(self._prefix):
            return
        name = key.removeprefix(self._prefix).decode()
        self._arrived[name] += 1
        self._values[name] = value

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class JournalFollower(ControlFollower):
    """Follows the journal, the lease and the pace, and keeps nothing else.

    :param application: base name of the application.
    :param job: the job whose rate it follows; empty to follow no rate.
    """

    def __init__(self, connection: KafkaConnection, application: str, job: str = "") -> None:
        super().__init__(connection, application)
        self._journal: Journal | None = None
        self._lease: Lease | None = None
        self._pace: Pace | None = None
        self._rate: Rate | None = None
        self._rate_key = f"{Concern.RATE}/{job}".encode()

    def first(self) -> Journal | None:
        """Return the journal as it is now, having read all of the topic.

        :raises ClusterOutage: the end is not reached in time.
        """
        self.to_end()
        return self._journal

    def latest(self) -> Journal | None:
        """Return the newest journal that has arrived, without waiting."""
        self.follow()
        return self._journal

    def is_paused(self) -> bool:
        """Return whether a cutover has begun and has not been promoted, without waiting."""
        journal = self.latest()
        return journal is not None and journal.phase in BLUE_STOPPED

    def holder(self) -> str:
        """Return the holder of the lease by the records so far, without waiting; empty if it is free."""
        self.follow()
        return self._lease.holder if self._lease else ""

    def pace(self) -> Pace | None:
        """Return the newest pace that has arrived, of whatever plan, without waiting."""
        self.follow()
        return self._pace

    def rate(self) -> Rate | None:
        """Return the newest rate of the job that has arrived, of whatever attempt, without waiting."""
        self.follow()
        return self._rate

    def _take(self, key: bytes, value: bytes | None) -> None:
        if key == self._prefix + Concern.JOURNAL.encode():
            self._journal = None if value is None else Journal.model_validate_json(value)
        elif key == self._prefix + Concern.LEASE.encode():
            self._lease = None if value is None else Lease.model_validate_json(value)
        elif key == self._prefix + Concern.PACE.encode():
            self._pace = None if value is None else Pace.model_validate_json(value)
        elif key == self._prefix + self._rate_key:
            self._rate = None if value is None else Rate.model_validate_json(value)
