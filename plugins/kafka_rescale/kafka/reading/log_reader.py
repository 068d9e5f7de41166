"""Reading a small compacted partition to its end, again and again."""

from __future__ import annotations

import time
from threading import Lock
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from kafka_rescale.core.errors import ClusterOutage
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.error_classes import may_pass
from kafka_rescale.kafka.client.failures import ConnectionTrouble, to_error
from kafka_rescale.kafka.client.waiting import within

SETTINGS = {
    "group.id": "kafka-rescale-control",
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "isolation.level": "read_committed",
    "auto.offset.reset": "earliest",
    # Behind the last record only a transaction marker follows. A broker tells that by an empty answer, after this
    # time, and the pause of a cutover contains several reads.
    "fetch.wait.max.ms": 5,
}

# A number and not OFFSET_BEGINNING: librdkafka takes half a second to look a logical offset up (measured: 0.50 s
# against 0.01 s), and the pause of a cutover contains several reads.
_START = 0

POLL_SECONDS = 0.2
PATIENCE_SECONDS = 3.0
"""How long the first client may be silent. The time doubles with each client, as connecting may take long."""


class _Read(NamedTuple):
    """A record that was read. Another log has another one at the same offset."""

    offset: int
    timestamp_ms: int
    key: bytes

    @classmethod
    def of(cls, message: Message) -> _Read:
        key = message.key() or b""
        return cls(message.offset() or 0, message.timestamp()[1], key if isinstance(key, bytes) else key.encode())


class LatestValues:
    """The last committed value per key of partition 0, without the keys that were deleted.

    It keeps what it has read, and its client: the pause of a cutover contains many readings, and without that each
    would begin with a connection and with thousands of records. A reading begins at the last record of the reading
    before. If that record is no longer there, somebody has created the topic anew, or compaction has removed the
    record. Then everything is read again.

    :param prefix: only keys that begin with it are kept.
    """

    def __init__(self, connection: KafkaConnection, topic: str, prefix: str) -> None:
        self._connection, self._topic, self._prefix = connection, topic, prefix
        self._trouble = ConnectionTrouble(connection.servers)
        self._consumer: Consumer | None = None
        self._lock = Lock()
        self._values: dict[str, bytes] = {}
        self._last: _Read | None = None
        self._position = _START

    def up_to(self, end: int, *, seconds: float) -> dict[str, bytes]:
        """Return the values by key. They may contain records behind the end.

        The end has to be the high watermark. A ``read_committed`` end stops at the first open transaction of any
        producer, and would hide records that other producers have committed behind it.

        :param end: offset (exclusive) to read up to.
        :param seconds: how long to wait for transactions that are open before ``end``.
        :raises ClusterOutage: the end is not reached in time.
        """
        left, patience = within(seconds), PATIENCE_SECONDS
        with self._lock:
            if end < self._position:
                self._forget()
            try:
                while not self._read_on(end, min(patience, left())):
                    if left() <= 0:
                        raise self._trouble.refusal or _stuck(self._topic, self._position, end)
                    patience *= 2
            except KafkaException as error:
                self._close()
                raise to_error(error.args[0], f"topic {self._topic!r}") from None
            except BaseException:
                self._close()
                raise
            return dict(self._values)

    def _read_on(self, end: int, patience: float) -> bool:
        """Read up to the end; return False if it has to be tried again.

        :param patience: seconds without a message after which another client is tried. After a broker was
            frozen, a client may stand still for many seconds, while a new one reads at once.
        """
        last = self._last
        position = _START if last is None else last.offset
        if end <= position:
            return True
        consumer = self._opened()
        consumer.assign([TopicPartition(self._topic, 0, position)])
        heard, is_same_log = time.monotonic(), last is None
        while position < end or not is_same_log:
            message = consumer.poll(POLL_SECONDS)
            if message is None:
                if time.monotonic() - heard > patience:
                    self._close()
                    return False
                continue
            error = message.error()
            if error is not None and error.code() != KafkaError._PARTITION_EOF:
                if not may_pass(error):
                    raise to_error(error, f"topic {self._topic!r}")
                continue
            heard = time.monotonic()
            self._trouble.forget()
            if is_same_log:
                if error is None:
                    self._take(message)
            elif error is None and _Read.of(message) == last:
                is_same_log = True
            else:
                self._forget()
                return False
            # The offset of an end-of-partition event also counts transaction markers, which are no messages.
            position = (message.offset() or 0) + (error is None)
        self._position = position
        # Without an assignment it fetches nothing, and keeps its connection.
        consumer.unassign()
        return True

    def _take(self, message: Message) -> None:
        self._last = _Read.of(message)
        self._position = self._last.offset + 1
        # A foreign producer's key may be no text. With its bytes replaced, it is none of the known keys.
        name = self._last.key.decode(errors="replace")
        if not name.startswith(self._prefix):
            return
        if (value := message.value()) is None:
            self._values.pop(name, None)
        else:
            self._values[name] = value if isinstance(value, bytes) else value.encode()

    def _opened(self) -> Consumer:
        if self._consumer is None:
            self._trouble.forget()
            self._consumer = Consumer(self._connection.client(**SETTINGS, error_cb=self._trouble))
        else:
            # Without an assignment, as here, a poll reads no record.
            self._trouble.forget_up_to_now(self._consumer)
        return self._consumer

    def _close(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.close()

    def _forget(self) -> None:
        self._values, self._last, self._position = {}, None, _START


def _stuck(topic: str, position: int, end: int) -> ClusterOutage:
    return ClusterOutage(
        f"topic {topic!r}",
        found=f"nothing to read from offset {position} on",
        expected=f"to read up to {end}",
        remedy="A transaction is open there, and ends within its timeout; or the brokers are down. Run again.",
    )
