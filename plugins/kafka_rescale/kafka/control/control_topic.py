"""The control topic: the records about each application, as the last record per key of a compacted topic.

The controllers of an application write under one transactional id, so a second controller fences the first.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping

from pydantic import BaseModel, ValidationError

from kafka_rescale.core.control.acceptances import Acceptances
from kafka_rescale.core.control.autoscaling import Autoscaling
from kafka_rescale.core.control.bridge import Bridge
from kafka_rescale.core.control.generations import Generations
from kafka_rescale.core.control.history import PastExpansion
from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.journal import Journal
from kafka_rescale.core.control.keys import CONTROL_TOPIC, Concern
from kafka_rescale.core.control.lease import Lease
from kafka_rescale.core.control.pace import Pace, Rate
from kafka_rescale.core.control.processing import Processing
from kafka_rescale.core.control.processors import PipelineProcessors
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.control.switch import Switch
from kafka_rescale.core.errors import Fenced, Outage, UnsafeState
from kafka_rescale.core.values import Value
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.journal_follower import ControlFollower
from kafka_rescale.kafka.reading.log_reader import latest_values
from kafka_rescale.kafka.writing.transactional_writer import MESSAGE_MAX_BYTES, TransactionalWriter

TOPIC = CONTROL_TOPIC
READ_SECONDS = 30.0
UPDATE_SECONDS = 60.0
"""How long a change is tried while brokers are away."""

Change = Mapping[str, Value | Mapping[str, object] | None]
"""What to write: the key's part after ``<application>/``, and its new value (``None`` deletes it)."""

_MODELS: dict[str, type[BaseModel]] = {
    Concern.LEASE: Lease,
    Concern.JOURNAL: Journal,
    Concern.SWITCH: Switch,
    Concern.PACE: Pace,
    Concern.GENERATIONS: Generations,
    Concern.BRIDGE: Bridge,
    Concern.AUTOSCALING: Autoscaling,
    Concern.ACCEPTANCES: Acceptances,
    Concern.PROCESSING: Processing,
    Concern.PROCESSORS: PipelineProcessors,
}
_SEVERAL: dict[str, tuple[str, type[Value]]] = {
    Concern.RESULT: ("results", JobResult),
    Concern.RATE: ("rates", Rate),
    Concern.HISTORY: ("history", PastExpansion),
}
"""Concerns with several records each, whose keys go on behind a slash: the state's field, and the model."""
_AS_WRITTEN: dict[str, str] = {
    Concern.REPORT: "report",
    Concern.PROOF: "proof",
    Concern.PROOF_PROGRESS: "proof_progress",
    Concern.ROLLING_PROOF: "rolling_proof",
}
"""Concerns that are kept as they were written, with their fields: ``core.verify`` knows them."""
_OF_JOBS = {Concern.BRIDGE, Concern.PROOF_PROGRESS, Concern.ROLLING_PROOF}
"""Concerns that jobs write beside their results, again and again."""
# Small segments: every controller reads the topic to its end, and only closed segments are compacted.
_CONFIGS = {
    "cleanup.policy": "compact",
    "segment.bytes": str(4 * 1024 * 1024),
    "min.cleanable.dirty.ratio": "0.1",
    "max.message.bytes": str(MESSAGE_MAX_BYTES),
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
        self._job_writers: dict[str, TransactionalWriter] = {}
        self._written = set[str]()

    def ensure(self, replication_factor: int | None = None) -> None:
        """Create the topic if it is missing.

        :param replication_factor: by default 3, or the number of brokers if there are fewer.
        :raises UnsafeState: it exists with more than one partition.
        """
        factor = replication_factor or min(3, self._admin.broker_count())
        durable = {"min.insync.replicas": "2"} if factor > 2 else {}
        self._admin.ensure_topic(TOPIC, 1, factor, {**_CONFIGS, **durable})

    def read(self) -> ControlState:
        """Return everything that was committed when the call began; empty if there is no topic yet.

        :raises Outage: the end can't be reached in time.
        :raises UnsafeState: another version of the program has written a record.
        """
        return _state(self._values(self._end() or 0))

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
        if self._end() is None:
            self.ensure()
        writer = self._controller()
        values = self._values(self._known_end())
        state = _state(values)
        changes = change(state)
        if not changes:
            return state
        records = {key: _encoded(value) for key, value in changes.items()}
        self._write(writer, records, values)
        return _changed(state, records)

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
                if _decided(found) != _decided(before) or time.monotonic() > deadline:
                    raise

    def put_result(self, result: JobResult, records: Change | None = None) -> None:
        """Write the result of a job, in the name of this attempt.

        The first call fences earlier attempts at the same job, and never the controller. The first call after an
        outage does the same, if no newer attempt has left a result meanwhile.

        :param records: records of a concern that only this job writes; they are written with the result.
        :raises Fenced: a newer attempt has begun; nothing was written.
        :raises Outage: it is not known whether the result was written; the next call writes with a new producer.
        """
        writer = self._job_writers.get(result.job)
        if writer is None:
            self._assert_newest(result)
            # A slash can't be in a topic's or an application's name: no other writer has such an id.
            key = f"kafka-rescale-{self.application}/{Concern.RESULT}/{result.job}"
            writer = self._job_writers[result.job] = TransactionalWriter(self.connection, key)
        key = f"{self.application}/{Concern.RESULT}/{result.job}"
        more = {f"{self.application}/{concern}": _encoded(value) for concern, value in (records or {}).items()}
        try:
            writer.write(TOPIC, {key: _encoded(result), **more})
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
        prefix = f"{self.application}/"
        values = latest_values(self.connection, TOPIC, end, prefix=prefix, seconds=READ_SECONDS)
        return {key.removeprefix(prefix): value for key, value in values.items()}

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


def _decided(values: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the part of the state from which changes are decided. Jobs write their own records at any time."""
    own = (f"{Concern.RESULT}/", f"{Concern.RATE}/")
    return {k: value for k, value in values.items() if k not in _OF_JOBS and not k.startswith(own)}


def _encoded(value: Value | Mapping[str, object] | None) -> bytes | None:
    if value is None:
        return None
    if isinstance(value, BaseModel):
        return value.model_dump_json().encode()
    return json.dumps(value).encode()


def _changed(state: ControlState, records: Mapping[str, bytes | None]) -> ControlState:
    """Return the state as the next reader will see it."""
    present: dict[str, bytes | None] = {
        f"{concern}/{detail}": _encoded(value)
        for concern, (field, _) in _SEVERAL.items()
        for detail, value in getattr(state, field).items()
    }
    present |= {concern: _encoded(getattr(state, concern)) for concern in _MODELS}
    present |= {concern: _encoded(getattr(state, field) or None) for concern, field in _AS_WRITTEN.items()}
    return _state({key: value for key, value in {**present, **records}.items() if value is not None})


def _state(values: Mapping[str, bytes]) -> ControlState:
    fields: dict[str, object] = {}
    several: dict[str, dict[str, Value]] = {field: {} for field, _ in _SEVERAL.values()}
    for key, value in values.items():
        concern, _, detail = key.partition("/")
        try:
            if concern in _MODELS:
                fields[concern] = _MODELS[concern].model_validate_json(value)
            elif concern in _SEVERAL:
                field, model = _SEVERAL[concern]
                several[field][detail] = model.model_validate_json(value)
            elif concern in _AS_WRITTEN:
                fields[_AS_WRITTEN[concern]] = json.loads(value)
        except (ValidationError, ValueError) as error:
            raise UnsafeState(
                f"record {key!r} in topic {TOPIC!r}",
                found=f"a {type(error).__name__}",
                expected="a record of this version of the program",
                remedy="Use the version that began the expansion until it is complete.",
            ) from None
    return ControlState.model_validate({**fields, **several})
