"""The request to a snapshot job. It has only those parts of the application file that the job needs.

The request is an argument on a command line. Therefore it has nothing of the lifecycle.
"""

from __future__ import annotations

from kafka_rescale.core.application.generation_names import GenerationNames
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.cluster import TopicDescription
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.formats.record_limits import UNLIMITED, compaction_lag_ms
from kafka_rescale.core.formats.serdes import NONE
from kafka_rescale.core.snapshots.day import SnapshotDay
from kafka_rescale.core.topology.topology import Topology
from kafka_rescale.core.values import Value

MINUTE_MS = 60_000


class StoreRequest(Value):
    """The request for one store.

    :param source: the input that serves as its changelog, by its name in the file. Empty if the store has its own
        changelog.
    :param key: the serde of the partitioning key.
    :param value: the serde of the value.
    """

    name: str
    store_type: str
    partitioning_key: str = ""
    source: str = ""
    key: str = NONE
    value: str = NONE
    window_size_ms: int | None = None

    def same_rows(self, other: StoreRequest) -> bool:
        """Return whether the raw columns of both mean the same. Decoded columns can be made anew at any time."""
        decoding = {"key": NONE, "value": NONE, "window_size_ms": None}
        return self.model_copy(update=decoding) == other.model_copy(update=decoding)


class SnapshotRequest(Value):
    """The request for one day of one application.

    :param inputs: the inputs of the application, by their names in the file.
    :param repartitions: the topics between sub-topologies, the most upstream first.
    :param compaction_lag_since: the ISO date since which changelogs have their compaction lag. Empty if the file
        does not declare it.
    :param from_scratch: whether the job uses no earlier snapshot, and reads the log up to its present end.
    """

    application: str
    date: str
    location: str
    grace_ms: int
    keep_days: int | None = None
    max_wait_seconds: int = 0
    internal_topic_prefix: str | None = None
    stores: tuple[StoreRequest, ...]
    inputs: tuple[str, ...] = ()
    repartitions: tuple[str, ...] = ()
    compaction_lag_since: str = ""
    from_scratch: bool = False

    @property
    def day(self) -> SnapshotDay:
        """The day that the request asks for."""
        return SnapshotDay.named(self.date)

    def lagging_ms(self, topic: TopicDescription, now_ms: int) -> int | None:
        """Return the moment from which on a changelog's records have always been too young for log cleaning.

        :returns: the moment in ms since the epoch. None if the file doesn't say since when the topic has had its
            compaction lag, or if an expansion holds compaction now: the lag that was set before is not known here.
        """
        lag_ms = compaction_lag_ms(topic)
        if not self.compaction_lag_since or lag_ms == UNLIMITED:
            return None
        return max(SnapshotDay.named(self.compaction_lag_since).minus(1).end_ms, now_ms - lag_ms)

    def names(self, generation: str) -> GenerationNames:
        """Return the topic names of a generation.

        :param generation: its ``application.id``.
        """
        if self.internal_topic_prefix is None:
            return GenerationNames(generation)
        return GenerationNames(self.internal_topic_prefix + generation.removeprefix(self.application))


def request_of(
    application: Application, topology: Topology, day: SnapshotDay, *, from_scratch: bool = False
) -> SnapshotRequest:
    """Return the request for one day of all stores.

    :raises InvalidInput: the application file has no ``snapshots:``.
    """
    declared = application.snapshots
    if declared is None:
        raise InvalidInput(
            f"application file of {application.application_id}",
            found="no `snapshots:`",
            expected="at least `snapshots: {location: ...}`",
            remedy="Say where the snapshots shall go.",
        )
    upstream_first = reversed(topology.downstream_first())
    return SnapshotRequest(
        application=application.application_id,
        date=str(day),
        location=declared.location,
        grace_ms=declared.grace_minutes * MINUTE_MS,
        keep_days=declared.keep_days,
        max_wait_seconds=declared.max_wait_seconds,
        internal_topic_prefix=application.internal_topic_prefix,
        stores=tuple(
            StoreRequest(
                name=store.name,
                store_type=store.type,
                partitioning_key=store.partitioning_key,
                source=topology.source_of(store.name) if store.changelog == "source" else "",
                key=declared.store_named(store.name).key,
                value=declared.store_named(store.name).value,
                window_size_ms=declared.store_named(store.name).window_size_ms,
            )
            for store in application.logged_stores
        ),
        inputs=tuple(i.topic for i in application.inputs),
        compaction_lag_since=str(declared.compaction_lag_since or ""),
        repartitions=tuple(t for s in upstream_first for t in s.sources if t in topology.repartitions),
        from_scratch=from_scratch,
    )
