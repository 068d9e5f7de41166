"""Snapshots that a restore can begin with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kafka_rescale.core.changelog_formats import Content, format_of
from kafka_rescale.core.cluster import TopicDescription, TopicPartition
from kafka_rescale.core.plan import Move
from kafka_rescale.core.snapshot_exactness import coverage_of
from kafka_rescale.core.snapshot_manifest import Manifest
from kafka_rescale.kafka.admin import ClusterAdmin
from kafka_rescale.kafka.connection import KafkaConnection
from kafka_rescale.kafka.log_batches import log_batches
from kafka_rescale.kafka.seeding import Seed, Seeding, SeedRow
from kafka_rescale.kafka.waiting import now_ms
from kafka_rescale.spark.snapshot_files import StoreDirectory

BATCH_ROWS = 2_000


@dataclass(frozen=True)
class SnapshotSeed:
    """The rows of one partition on one day.

    :param file: empty if there were none.
    """

    directory: StoreDirectory
    manifest: Manifest
    file: str
    position: int

    def batches(self) -> Iterator[Sequence[SeedRow]]:
        """Yield the rows whose last record lies before the position: the others are in the tail of the log."""
        if not self.file:
            return
        table = self.directory.read(self.manifest.day, self.file)
        columns = table.select(["key", "value", "timestamp", "headers", "offset"])
        for batch in columns.to_batches(max_chunksize=BATCH_ROWS):
            rows = [
                SeedRow(
                    row["key"],
                    row["value"],
                    round(row["timestamp"].timestamp() * 1000),
                    [(h["key"], h["value"]) for h in row["headers"]],
                    self.position,
                )
                for row in batch.to_pylist()
                if row["offset"] < self.position
            ]
            if rows:
                yield rows


def seeds_for(
    connection: KafkaConnection, location: str, application: str, moves: Sequence[Move]
) -> dict[TopicPartition, SnapshotSeed]:
    """Return the newest snapshot of every source partition that has one which fits the running changelog.

    Stores of which more than the last record of a key counts, or whose changelogs delete by age, have none: the
    copy of such a log holds more than its snapshot.

    :param location: of the application file; empty for no snapshots.
    """
    formats = {m.source: format_of(m.store_type, m.partitioning_key) for m in moves}
    wanted = {m.source: m for m in moves if location and not formats[m.source].has(Content.VERSIONS)}
    topics = ClusterAdmin(connection).describe_topics(wanted)
    found: dict[TopicPartition, SnapshotSeed] = {}
    for name, topic in topics.items():
        if topic.cleanup_policy == ("compact",):
            found |= _newest(StoreDirectory(location, application, wanted[name].store), topic, wanted[name])
    return found


def _newest(directory: StoreDirectory, topic: TopicDescription, move: Move) -> dict[TopicPartition, SnapshotSeed]:
    for day in directory.days():
        manifest = directory.manifest(day)
        if manifest is None or (manifest.topic, manifest.topic_id) != (topic.name, topic.topic_id):
            continue
        if manifest.store.store_type == move.store_type and len(manifest.partitions) == topic.partitions:
            return {
                (topic.name, p.partition): SnapshotSeed(directory, manifest, p.file, p.position)
                for p in manifest.partitions
            }
    return {}


def seeding_of(
    connection: KafkaConnection, seeds: Mapping[TopicPartition, SnapshotSeed], ends: Mapping[TopicPartition, int]
) -> Seeding:
    """Return the seeds behind whose positions nothing has been removed: else deletions may be missing.

    :param ends: exclusive, up to which the copies are to go.
    """
    as_of_ms = now_ms()
    whole: dict[TopicPartition, Seed] = {
        s: seed for s, seed in seeds.items() if _is_whole(connection, s, seed, ends[s])
    }
    return Seeding(whole, as_of_ms)


def _is_whole(connection: KafkaConnection, source: TopicPartition, seed: SnapshotSeed, end: int) -> bool:
    batches = log_batches(connection, *source, seed.position, end)
    return coverage_of(batches, seed.position, end, begin=0).is_whole
