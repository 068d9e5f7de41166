"""Building the snapshot of one day: it reads changelogs, makes the rows, and publishes the files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from kafka_rescale.core.cluster import TopicDescription
from kafka_rescale.core.control.generations import Generations
from kafka_rescale.core.errors import Unreadable
from kafka_rescale.core.formats.changelog_formats import format_of
from kafka_rescale.core.formats.record_limits import retention_ms
from kafka_rescale.core.snapshots.day import SnapshotDay
from kafka_rescale.core.snapshots.manifest import Manifest, base_for
from kafka_rescale.core.snapshots.request import SnapshotRequest, StoreRequest
from kafka_rescale.core.snapshots.rows import SnapshotRule, rule_of
from kafka_rescale.core.snapshots.source import SnapshotSource
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.reading.processed import await_processed, left_over
from kafka_rescale.spark.jobs.job import Job, say
from kafka_rescale.spark.snapshots.expiry import expire
from kafka_rescale.spark.snapshots.files import StoreDirectory
from kafka_rescale.spark.snapshots.partition import PartitionResult, StoreWork, Unit
from kafka_rescale.spark.snapshots.refusals import damaged, left_unprocessed, missing, too_old
from kafka_rescale.spark.snapshots.tasks import AssessPartitions, BuildPartitions

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import SparkSession


@dataclass
class SnapshotBuild:
    """One attempt at the snapshot of one day.

    :param known: the generations, for messages.
    :param unreadable: by store, the days that might be bases, but can't be looked at.
    """

    job: Job
    request: SnapshotRequest
    source: SnapshotSource
    known: Generations | None
    unreadable: dict[str, list[Unreadable]] = field(default_factory=dict)

    def run(self, spark: SparkSession) -> tuple[list[Manifest], int]:
        """Build and publish every store; return the manifests and the number of records read."""
        stores = self._prepared()
        try:
            results = self._build(spark, stores)
            published = [self._publish(work, results) for work in stores.values()]
        finally:
            for work in stores.values():
                work.directory.discard(work.draft)
        return published, sum(r.read for r in results)

    def expire(self) -> set[SnapshotDay]:
        """Delete the days that are at least ``keep_days`` older than the newest day, and return them."""
        request = self.request
        if request.keep_days is None or (newest := self._newest()) is None:
            return set()
        return expire(request.location, request.application, newest.minus(request.keep_days), now_ms())

    def _assert_kept(self) -> None:
        keep = self.request.keep_days
        newest = None if keep is None else self._newest()
        if keep is not None and newest is not None and self.request.day <= newest.minus(keep):
            raise too_old(self.request, newest)

    def _newest(self) -> SnapshotDay | None:
        """Return the newest complete day of any store."""
        found = (
            self._directory(store).newest(lambda _: True, tell=lambda _: None, count=1)
            for store in self.request.stores
        )
        return max((manifest.day for manifests in found for manifest in manifests), default=None)

    def _prepared(self) -> dict[str, StoreWork]:
        request, admin = self.request, ClusterAdmin(self.job.connection)
        self._assert_kept()
        topics = {s.name: self._topic(s) for s in request.stores}
        described = admin.describe_topics(topics.values())
        if absent := sorted(set(topics.values()) - described.keys()):
            raise missing(request, self.source, absent, self.known)
        self._assert_processed()
        begins, ends = admin.begin_offsets(described), admin.end_offsets(described)
        return {
            s.name: self._work(s, described[topics[s.name]], begins[topics[s.name]], ends[topics[s.name]])
            for s in request.stores
        }

    def _assert_processed(self) -> None:
        connection, request, source = self.job.connection, self.request, self.source
        bounds, names = (request.day.end_ms, request.grace_ms), request.names(source.generation)
        if source.is_running:
            inputs = [source.inputs.get(i, i) for i in request.inputs]
            topics = [*inputs, *(names.repartition(t) for t in request.repartitions)]
            # Look at the bridge first: records that it has yet to copy will still come into the inputs.
            wait = partial(await_processed, connection, seconds=request.max_wait_seconds, tell=say)
            wait(source.bridge_group, source.bridged, *bounds, proven=source.carried)
            wait(source.generation, topics, *bounds)
            return
        if absent := sorted(source.stopped_at.keys() - ClusterAdmin(connection).list_topics()):
            raise missing(request, source, absent, self.known)
        if left := left_over(connection, source.stopped_at, *bounds):
            raise left_unprocessed(request, source, left, self.known)

    def _work(
        self, store: StoreRequest, topic: TopicDescription, begins: Mapping[int, int], ends: Mapping[int, int]
    ) -> StoreWork:
        request, day = self.request, self.request.day
        directory = self._directory(store)
        ends = {p: min(end, ends.get(p, end)) for p, end in self.source.ends.get(topic.name, ends).items()}
        rule = rule_of(
            topic,
            format_of(store.store_type, store.partitioning_key),
            end_ms=day.end_ms,
            grace_ms=request.grace_ms,
        )
        pinned = None if request.from_scratch else self._pinned(directory, store, topic, rule)
        return StoreWork(
            directory=directory,
            draft=directory.begin(day, uuid4().hex),
            topic=topic.name,
            topic_id=topic.topic_id,
            store=store,
            rule=rule,
            begins=begins,
            ends={**ends, **({p.partition: p.end for p in pinned.partitions} if pinned else {})},
            lagging=partial(request.lagging_ms, topic),
            origins=self.source.begins.get(topic.name, {}),
            bases=() if request.from_scratch else self._bases(directory, store, topic, rule, pinned),
            taken_over_ms=self.source.until_ms if topic.name in self.source.ends else None,
            by_age=retention_ms(topic) is not None,
        )

    def _pinned(
        self, directory: StoreDirectory, store: StoreRequest, topic: TopicDescription, rule: SnapshotRule
    ) -> Manifest | None:
        try:
            return directory.manifest(
                self.request.day, lambda found: found.describes(topic.name, topic.topic_id, store, rule)
            )
        except Unreadable as error:
            # To build the day again is what mends it.
            say(f"built up to the present end of the log: {error}")
            return None

    def _bases(
        self,
        directory: StoreDirectory,
        store: StoreRequest,
        topic: TopicDescription,
        rule: SnapshotRule,
        pinned: Manifest | None,
    ) -> tuple[Manifest, ...]:
        def fits(found: Manifest) -> bool:
            return found.describes(topic.name, topic.topic_id, store, rule) and base_for(found, pinned)

        def tell(error: Unreadable) -> None:
            say(f"{topic.name}: not built on a day that can't be looked at: {error}")
            self.unreadable.setdefault(store.name, []).append(error)

        return tuple(directory.newest(fits, tell=tell, before=self.request.day))

    def _build(self, spark: SparkSession, stores: Mapping[str, StoreWork]) -> list[PartitionResult]:
        units = [(name, p) for name, work in stores.items() for p in work.ends]
        connection = self.job.connection
        build, assess = BuildPartitions(connection, stores), AssessPartitions(connection, stores)
        results: list[PartitionResult] = self._beside(lambda: _spread(spark, units).mapPartitions(build).collect())
        for line in (line for r in results for line in r.unused):
            say(line)
        if refused := [r.unit for r in results if r.snapshot is None]:
            if unread := [error for name, _ in refused for error in self.unreadable.get(name, ())]:
                # The state may be exact on top of that day, if the location answers.
                raise unread[0]
            moments = dict(self._beside(lambda: _spread(spark, units).mapPartitions(assess).collect()))
            topics = sorted({stores[name].topic for name, _ in refused})
            is_held = any(stores[name].rule.history_ms is None for name, _ in refused)
            raise damaged(self.request, topics, moments.values(), is_held=is_held)
        return results

    def _beside(self, action: Callable[[], Any]) -> Any:
        return self.job.run_beside(action, lambda: None)

    def _publish(self, work: StoreWork, results: Sequence[PartitionResult]) -> Manifest:
        request = self.request
        partitions = [r.snapshot for r in results if r.unit[0] == work.store.name and r.snapshot is not None]
        manifest = Manifest(
            application=request.application,
            generation=self.source.generation,
            date=request.date,
            end_ms=request.day.end_ms,
            grace_ms=request.grace_ms,
            kept_ms=work.rule.kept_ms,
            versions_ms=work.rule.versions_ms,
            by_age=work.by_age or any(day.by_age for day in work.bases),
            keeps_deletions=work.rule.versions_ms is not None,
            store=work.store,
            topic=work.topic,
            topic_id=work.topic_id,
            partitions=tuple(sorted(partitions, key=lambda p: p.partition)),
        )
        work.directory.publish(work.draft, manifest)
        return manifest

    def _directory(self, store: StoreRequest) -> StoreDirectory:
        return StoreDirectory(self.request.location, self.request.application, store.name)

    def _topic(self, store: StoreRequest) -> str:
        if store.source:
            return self.source.inputs.get(store.source, store.source)
        return self.request.names(self.source.generation).changelog(store.name)


def _spread(spark: SparkSession, units: Sequence[Unit]) -> RDD[list[Unit]]:
    return spark.sparkContext.parallelize([[unit] for unit in units], max(1, len(units)))
