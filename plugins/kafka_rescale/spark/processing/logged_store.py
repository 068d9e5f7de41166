"""A task's store with its changelog and its files: restored before a run, saved after it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

import pyarrow as pa

from kafka_rescale.core.pipeline.task import Headers
from kafka_rescale.core.processing.expiry import Expiry
from kafka_rescale.core.processing.task_state import Changelog, SavedState, newest, objection
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.processing.task_producer import TaskProducer
from kafka_rescale.kafka.reading.range_reader import read_ranges
from kafka_rescale.spark.processing.state_files import StateFiles
from kafka_rescale.spark.processing.state_store import SCHEMA, TaskStore

log = logging.getLogger(__name__)

SIGN_RECORDS = 1_000
"""How many records a restore reads between two calls that say that it goes on."""
SAVE_SECONDS, SAVING_SHARE = 60.0, 0.1
"""A restore saves what it has about once a minute, but takes no more than this share of its time for it."""


@dataclass(frozen=True)
class Restored:
    """How a store came to its present state.

    :param records: number of records read from the changelog.
    :param is_full: whether the whole changelog was read, because no saved state could be used.
    """

    records: int
    is_full: bool


class LoggedStore:
    """One store of one task.

    :param changelog: the changelog as it is after every older attempt has been fenced.
    :param producer: producer of the task; None for a standby, which only reads.
    :param clock: wall clock in ms.
    :param expiry: tells which entries have expired; None if entries never expire.
    """

    def __init__(
        self,
        connection: KafkaConnection,
        changelog: Changelog,
        files: StateFiles,
        producer: TaskProducer | None,
        clock: Callable[[], int],
        expiry: Expiry | None = None,
    ) -> None:
        self._connection, self._changelog, self._files = connection, changelog, files
        self._producer, self._clock = producer, clock
        self._saved: SavedState | None = None
        self._restored_to = changelog.end
        self.store = TaskStore(self._write, expiry)

    def restore(self, goes_on: Callable[[], None] = lambda: None) -> Restored:
        """Restore the store from its changelog, beginning with the nearest saved state that can be used.

        :param goes_on: called again and again as records are read.
        :raises Outage: the changelog can't be read to its end.
        """
        began_ms, began = self._clock(), monotonic()
        begun_with = self._saved = self._loaded(began_ms)
        # What is saved on the way lacks the deletions behind it, and may have entries of the state it began with.
        self._as_of_ms = begun_with.as_of_ms if begun_with is not None else began_ms
        records = self._read(goes_on)
        read_ms = began_ms + int((monotonic() - began) * 1000)
        # While the rest was read, a deletion in it may have become old enough to be compacted away.
        if begun_with is not None and (why := objection(begun_with, self._changelog, read_ms)):
            log.warning("%s is restored from its changelog alone: %s", self._files.owner, why)
            begun_with = self._saved = None
            self._as_of_ms = began_ms
            self.store.load(SCHEMA.empty_table(), [])
            records += self._read(goes_on)
        self._as_of_ms = began_ms
        return Restored(records, is_full=begun_with is None)

    def _read(self, goes_on: Callable[[], None]) -> int:
        """Take over the changelog from the saved state's position on; return the number of records read.

        What has been read is saved on the way: a restore may take hours, and be killed.
        """
        here, records, save_at = self._changelog, 0, monotonic() + SAVE_SECONDS
        start = self._saved.position if self._saved else here.begin
        ranges = {here.partition: (max(start, here.begin), here.end)}
        for message in read_ranges(self._connection, here.topic, ranges, may_be_deleted=True):
            self.store.restore(message.key(), message.value(), message.timestamp()[1])
            records += 1
            if records % SIGN_RECORDS == 0:
                goes_on()
                if (began := monotonic()) >= save_at:
                    self._restored_to = message.offset() + 1
                    self.save()
                    save_at = monotonic() + max(SAVE_SECONDS, (monotonic() - began) / SAVING_SHARE)
        self._restored_to = here.end
        return records

    def save(self, *, anew: bool = False) -> None:
        """Save the state of the last commit. If saving fails, the next run only takes longer.

        :param anew: whether to save even if the position is the same. Then only the time as of which the state is
            known to be whole has advanced.
        """
        position = self._position()
        is_saved = self._saved is not None and self._saved.position == position
        if position is None or (is_saved and not anew):
            return
        here = self._changelog
        state = SavedState(
            topic=here.topic,
            topic_id=here.topic_id,
            partition=here.partition,
            position=position,
            as_of_ms=self._as_of_ms,
        )
        try:
            self._saved = self._files.save(self.store, self._saved, state)
        except (OSError, pa.ArrowException) as error:
            log.warning("%s is not saved: %s", self._files.owner, error)

    def committed(self, before_ms: int) -> None:
        """Note that the written records are committed.

        :param before_ms: wall clock before the commit.
        """
        self._as_of_ms = before_ms

    def _loaded(self, now_ms: int) -> SavedState | None:
        try:
            found = self._files.found()
        except OSError as error:
            log.warning("%s can't be read: %s", self._files.owner, error)
            return None
        for saved in newest(found, self._changelog, now_ms):
            wrong = self._files.load(saved, self.store)
            if not wrong:
                return saved
            log.warning("%s: %s", self._files.owner, wrong)
        return None

    def _position(self) -> int | None:
        if self._producer is None or not self._producer.wrote(self._changelog.topic):
            return self._restored_to
        return self._producer.position(self._changelog.topic)

    def _write(self, key: bytes, value: bytes | None, timestamp_ms: int, headers: Headers) -> None:
        assert self._producer is not None, "a standby writes nothing"
        self._producer.produce(
            self._changelog.topic,
            value,
            key,
            self._changelog.partition,
            timestamp=timestamp_ms,
            headers=list(headers) or None,
        )
