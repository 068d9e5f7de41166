"""Following the control topic at little cost, to wait for its changes."""

from __future__ import annotations

import logging
import time
from collections import Counter
from threading import RLock, Thread
from types import TracebackType
from typing import Self

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.journal import BLUE_STOPPED, Journal
from kafka_rescale.core.control.keys import CONTROL_TOPIC, Concern
from kafka_rescale.core.control.lease import Lease
from kafka_rescale.core.control.pace import Pace, Rate
from kafka_rescale.core.control.records import Read, record_of
from kafka_rescale.core.control.switch import Switch
from kafka_rescale.core.errors import ClusterTimedOut
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.error_classes import may_pass
from kafka_rescale.kafka.client.failures import to_error
from kafka_rescale.kafka.client.waiting import poll_until
from kafka_rescale.kafka.reading.log_reader import SETTINGS

FIRST_SECONDS = 60.0
SILENT_SECONDS, LONGEST_SILENCE_SECONDS = 5.0, 60.0
"""After so many seconds without a word from brokers, a new client reads on.

Within a pause there are several records per second. At other times there may be none for minutes, so the time
doubles until the next record."""
WAIT_MS = 100
"""How long a broker may hold an empty answer. It answers at once when there is a record. While a switch waits for
its window, several jobs follow for days; with a reader's 5 ms each would send 200 requests a second."""


log = logging.getLogger(__name__)


class ControlFollower:
    """Keeps a consumer at the end of the control topic. It reads new records once, within a few ms.

    A client may stand still after a broker has died: once, one did not read for 14 s what a job had written. A
    task that does not read that blue is stopped would make the pause as long as it may be. So a silent client is
    replaced. Several threads may follow.

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
        self._connection, self._lock = connection, RLock()
        self._position = 0
        self._heard_at, self._patience = time.monotonic(), SILENT_SECONDS
        self._consumer = self._opened()

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
        with self._lock:
            # A message has the length of its value, so a deletion counts as false.
            while (message := self._consumer.poll(0)) is not None:
                self._hear(message)
            if time.monotonic() - self._heard_at > self._patience:
                self._replace()

    def _hear(self, message: Message) -> None:
        error = message.error()
        if error is None:
            self.received += 1
            key = message.key() or b""
            self._take(key if isinstance(key, bytes) else key.encode(), message.value())
            self._position, self._patience = (message.offset() or 0) + 1, SILENT_SECONDS
        elif error.code() == KafkaError._PARTITION_EOF:
            self._at_end = True
        elif may_pass(error):
            return
        else:
            raise to_error(error, f"topic {CONTROL_TOPIC!r}")
        self._heard_at = time.monotonic()

    def _replace(self) -> None:
        try:
            silent, self._consumer = self._consumer, self._opened()
        except Exception as error:
            # A certificate or a token may be away for a moment. The present client may still go on.
            log.warning("topic %s: silent, and there is no new client: %s", CONTROL_TOPIC, error)
        else:
            log.info("topic %s: silent for %.0f s, a new client reads on", CONTROL_TOPIC, self._patience)
            # It may wait for the broker that is gone.
            Thread(target=silent.close, name="kafka-rescale-close", daemon=True).start()
        self._heard_at, self._patience = time.monotonic(), min(2 * self._patience, LONGEST_SILENCE_SECONDS)

    def _opened(self) -> Consumer:
        consumer = Consumer(self._connection.client(**{**SETTINGS, "fetch.wait.max.ms": WAIT_MS}))
        consumer.assign([TopicPartition(CONTROL_TOPIC, 0, self._position)])
        return consumer

    def heard(self, job: str) -> tuple[int, JobResult | None]:
        """Return how many records of a job and its parts have arrived, and the job's newest result.

        This does not wait. Signs of life count as well: they are records of their own, beside the results.
        """
        with self._lock:
            return self._heard(job)

    def _heard(self, job: str) -> tuple[int, JobResult | None]:
        self.follow()
        key = f"{Concern.RESULT}/{job}"
        own = self._arrived[key]
        if self._parsed.get(job, (0, None))[0] != own:
            value = self._values[key]
            self._parsed[job] = own, None if value is None else record_of(JobResult, key, value)
        sign = f"{Concern.SIGN}/{job}"
        parts = (f"{key}/", f"{sign}/")
        others = sum(n for name, n in self._arrived.items() if name == sign or name.startswith(parts))
        return own + others, self._parsed.get(job, (0, None))[1]

    def close(self) -> None:
        """End the consumer."""
        with self._lock:
            self._consumer.close()

    def _take(self, key: bytes, value: bytes | None) -> None:
        if not key.startswith(self._prefix):
            return
        name = key.removeprefix(self._prefix).decode(errors="replace")
        self._arrived[name] += 1
        self._values[name] = value

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class JournalFollower(ControlFollower):
    """Follows the journal, the lease, the switch and the pace, and keeps nothing else.

    :param application: base name of the application.
    :param job: the job whose rate it follows; empty to follow no rate.
    """

    def __init__(self, connection: KafkaConnection, application: str, job: str = "") -> None:
        super().__init__(connection, application)
        self._journal: Journal | None = None
        self._lease: Lease | None = None
        self._switch: Switch | None = None
        self._pace: Pace | None = None
        self._rate: Rate | None = None
        self._rate_key = f"{Concern.RATE}/{job}"

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

    def is_let_through(self) -> bool:
        """Return whether the switch of the journal's attempt was let through, without waiting."""
        journal = self.latest()
        return journal is not None and Switch.of(journal, self._switch).released_ms > 0

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
        if not key.startswith(self._prefix):
            return
        name = key.removeprefix(self._prefix).decode(errors="replace")
        if name == Concern.JOURNAL:
            self._journal = _content(Journal, name, value)
        elif name == Concern.LEASE:
            self._lease = _content(Lease, name, value)
        elif name == Concern.SWITCH:
            self._switch = _content(Switch, name, value)
        elif name == Concern.PACE:
            self._pace = _content(Pace, name, value)
        elif name == self._rate_key:
            self._rate = _content(Rate, name, value)


def _content(model: type[Read], name: str, value: bytes | None) -> Read | None:
    return None if value is None else record_of(model, name, value)
