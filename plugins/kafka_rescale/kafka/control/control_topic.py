"""The control topic: the records about each application, as the last record per key of a compacted topic.

The controllers of an application write under one transactional id, so a second controller fences the first.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping

from kafka_rescale.core.control.job_results import JobResult, Sign
from kafka_rescale.core.control.keys import CONTROL_TOPIC, LARGEST_RECORD_BYTES, Concern
from kafka_rescale.core.control.records import Change, ControlRecords, changed, decided, encoded
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import Fenced, Outage
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.journal_follower import ControlFollower
from kafka_rescale.kafka.reading.log_reader import LatestValues
from kafka_rescale.kafka.writing.transactional_writer import TransactionalWriter

log = logging.getLogger(__name__)

TOPIC = CONTROL_TOPIC
READ_SECONDS = 30.0
UPDATE_SECONDS = 60.0
"""How long a change is tried while brokers are away."""

# Small segments: every controller reads the topic to its end, and only closed segments are compacted.
_CONFIGS = {
    "cleanup.policy": "compact",
    "segment.bytes": str(4 * 1024 * 1024),
    "min.cleanable.dirty.ratio": "0.1",
    "max.message.bytes": str(LARGEST_RECORD_BYTES),
}


class ControlTopic:
    """The records of one application.

    :param connection: how to reach the cluster.
    :param application: name of the application (its first ``application.id``).
    """

    def __init__(self, connection: KafkaConnection, application: str) -> None:
        self.connection = connection
        self.application = application
        self._admin = ClusterAdmin(connection)
        self._log, self._records = LatestValues(connection, TOPIC, f"{application}/"), ControlRecords()
        self._job_writers: dict[str, TransactionalWriter] = {}
        self._written = set[str]()
        self._is_there = False

    def ensure(self, replication_factor: int | None = None) -> None:
        """Create the topic if it is missing. One that exists keeps its partitions and replicas.

        If somebody has grown it, partition 0 has every record all the same. It can't shrink, so a refusal would
        end only with its deletion, and would keep a run from starting what an interrupted one has stopped.

        :param replication_factor: of a new topic; by default 3, or the number of brokers if there are fewer.
        """
        found = self._admin.describe_topics([TOPIC]).get(TOPIC)
        if found is None and not self._admin.is_absent(TOPIC):
            # A broker that has just started does not know it yet.
            found = self._admin.existing_topics([TOPIC])[TOPIC]
        partitions = found.partitions if found is not None else 1
        factor = (
            found.replication_factor
            if found is not None
            else replication_factor or min(3, self._admin.broker_count())
        )
        if partitions > 1:
            log.warning(
                "topic %s has %d partitions, and needs one. It is used as it is: all records are in partition 0. "
                "Don't delete it, for it knows which generation runs.",
                TOPIC,
                partitions,
            )
        # With two replicas, all records would be refused while one broker restarts. The topic decides, and not the
        # present number of brokers.
        durable = {"min.insync.replicas": "2"} if factor > 2 else {}
        self._admin.ensure_topic(TOPIC, partitions, factor, {**_CONFIGS, **durable})

    def read(self) -> ControlState:
        """Return everything that was committed when the call began; empty if there is no topic yet.

        :raises Outage: the end can't be reached in time.
        :raises UnsafeState: a newer version of the program has written a record.
        """
        return self._records.state(self._values(self._end() or 0))

    def follow(self) -> ControlFollower:
        """Return a follower that has read everything so far. The caller has to close it.

        :raises ClusterOutage: the end can't be reached in time.
        """
        follower = ControlFollower(self.connection, self.application)
        try:
            follower.to_end()
        except BaseException:
            follower.close()
            raise
        return follower

    def update(self, change: Callable[[ControlState], Change]) -> ControlState:
        """Compare and set: fence every other controller, read, and write what ``change`` returns.

        :param change: called once with the present state. If it raises, the error is passed on, and nothing is
            written.
        :returns: the state as written.
        :raises Fenced: another controller came in between.
        :raises Outage: the brokers don't answer, or the records don't show.
        """
        if not self._is_there and self._end() is None:
            self.ensure()
        self._is_there = True
        writer = self._controller()
        values = self._values(self._known_end())
        state = self._records.state(values)
        changes = change(state)
        if not changes:
            return state
        records = {key: encoded(value) for key, value in changes.items()}
        self._write(writer, records, values)
        return self._records.state(changed(values, records))

    def _controller(self) -> TransactionalWriter:
        return TransactionalWriter(self.connection, f"kafka-rescale-{self.application}")

    def _write(
        self, writer: TransactionalWriter, records: Mapping[str, bytes | None], before: Mapping[str, bytes]
    ) -> None:
        """Write the records. Try again if an outage has prevented it, and no other controller came in between.

        :param before: the state from which the records were decided.
        """
        deadline = time.monotonic() + UPDATE_SECONDS
        while True:
            try:
                return writer.write(TOPIC, {f"{self.application}/{key}": value for key, value in records.items()})
            except Outage:
                # The answer got lost, but maybe not the commit. A new writer ends the transaction either way.
                writer = self._controller()
                found = self._values(self._known_end())
                if all(found.get(key) == value for key, value in records.items()):
                    return None
                if decided(found) != decided(before) or time.monotonic() > deadline:
                    raise

    def put_result(self, result: JobResult, records: Change | None = None) -> None:
        """Write the result of a job, in the name of this attempt.

        The first call fences earlier attempts at the same job, and never the controller. The first call after an
        outage does the same, if no newer attempt has left a result meanwhile.

        :param records: records of a concern that only this job writes; they are written with the result.
        :raises Fenced: a newer attempt has begun; nothing was written.
        :raises Outage: it is not known whether the result was written; the next call writes with a new producer.
        """
        more = {str(concern): encoded(value) for concern, value in (records or {}).items()}
        self._write_of_job(result, {f"{Concern.RESULT}/{result.job}": encoded(result), **more})

    def put_sign(self, result: JobResult) -> None:
        """Write a sign of life of a job. It is small: with thousands of partitions, a result is not.

        :param result: any result of this attempt at the job; it is not written.
        :raises RescaleError: as ``put_result`` does.
        """
        sign = Sign(run=result.run, attempt=result.attempt)
        self._write_of_job(result, {f"{Concern.SIGN}/{result.job}": encoded(sign)})

    def _write_of_job(self, result: JobResult, records: Mapping[str, bytes | None]) -> None:
        writer = self._job_writers.get(result.job)
        if writer is None:
            self._assert_newest(result)
            # A slash can't be in a topic's or an application's name: no other writer has such an id.
            key = f"kafka-rescale-{self.application}/{Concern.RESULT}/{result.job}"
            writer = self._job_writers[result.job] = TransactionalWriter(self.connection, key)
        try:
            writer.write(TOPIC, {f"{self.application}/{key}": value for key, value in records.items()})
        except Outage:
            del self._job_writers[result.job]
            raise
        self._written.add(result.job)

    def _assert_newest(self, result: JobResult) -> None:
        """Refuse to fence a newer attempt: at first, and when an outage has ended the writer.

        If this attempt has written before, an attempt that has taken over has written a result since. Only in the
        moment between its takeover and this result can't it be seen.
        """
        known = self.read().results.get(result.job)
        if known is None or (known.run, known.attempt) == (result.run, result.attempt):
            return
        if result.job in self._written or (known.run == result.run and known.attempt > result.attempt):
            raise Fenced(
                f"job {result.job!r} of {self.application}",
                found=f"results of attempt {known.attempt} of run {known.run!r}",
                expected=f"attempt {result.attempt} of run {result.run!r} to be the newest",
                remedy="Nothing to do here: the newer attempt goes on.",
            )

    def _values(self, end: int) -> dict[str, bytes]:
        values = self._log.up_to(end, seconds=READ_SECONDS)
        return {key.removeprefix(f"{self.application}/"): value for key, value in values.items()}

    def _end(self) -> int | None:
        """Return the end of the topic; None only if there is no topic.

        A broker that has just started may not know the topic. Taken for an application without any state, that
        would let another expansion begin over one that is in progress.
        """
        ends = self._admin.end_offsets([TOPIC], read_committed=False, if_present=True)
        if TOPIC in ends:
            return ends[TOPIC][0]
        return None if self._admin.is_absent(TOPIC) else self._known_end()

    def _known_end(self) -> int:
        return self._admin.end_offsets([TOPIC], read_committed=False)[TOPIC][0]
