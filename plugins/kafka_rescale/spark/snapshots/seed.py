"""Snapshots with which a restore can begin."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kafka_rescale.core.cluster import TopicDescription, TopicPartition
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.formats.changelog_formats import Content, format_of
from kafka_rescale.core.plan.plan import Move
from kafka_rescale.core.snapshots.exactness import coverage_of
from kafka_rescale.core.snapshots.manifest import FORMAT, Manifest
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.copy.seeding import Seed, Seeding, SeedRow

if TYPE_CHECKING:
    from kafka_rescale.spark.snapshots.files import StoreDirectory

BATCH_ROWS = 2_000
COLUMNS = ("key", "value", "timestamp", "headers", "offset")


@dataclass(frozen=True)
class SnapshotSeed:
    """The rows of one partition on one day.

    :param file: name of the file with the rows; empty if there were no rows.
    """

    directory: StoreDirectory
    manifest: Manifest
    file: str
    position: int

    def check(self) -> None:
        """Compare the file with its digest. The rows of a bucket's partitions don't fit into memory together.

        :raises InvalidInput: the file has changed since it was written, or can't be read.
        """
        if self.file:
            self.directory.check(self.manifest.day, self.file)

    def batches(self) -> Iterator[Sequence[SeedRow]]:
        """Yield the rows whose last record lies before the position. The other rows are in the tail of the log.

        :raises Outage: the file can't be read any more.
        """
        if not self.file:
            return
        for batch in self.directory.batches(self.manifest.day, self.file, COLUMNS, BATCH_ROWS):
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


@dataclass
class Candidates:
    """Snapshots that fit the running changelogs, the newest first, and why others are not used.

    :param remarks: for a person; one per store without a snapshot, and one per day that can't be looked at.
    """

    by_source: dict[TopicPartition, tuple[SnapshotSeed, ...]] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)


def candidates_for(
    connection: KafkaConnection, location: str, application: str, moves: Sequence[Move]
) -> Candidates:
    """Return the newest snapshots that fit the running changelog, by source partition.

    A store has no fitting snapshot if more than the last record of a key counts, or if its changelog deletes by
    age: the copy of such a log holds more than its snapshot.

    :param location: location that the application file names; empty for no snapshots.
    """
    found = Candidates()
    if not location:
        return found
    # Imported here, because only an application with snapshots needs Arrow.
    from kafka_rescale.spark.snapshots.files import StoreDirectory

    topics = ClusterAdmin(connection).describe_topics([m.source for m in moves])
    for move in moves:
        topic, layout = topics.get(move.source), format_of(move.store_type, move.partitioning_key)
        if topic is None:
            continue
        if layout.has(Content.VERSIONS) or topic.cleanup_policy != ("compact",):
            found.remarks.append(f"{move.source}: read as a whole, because it holds more than a snapshot does")
            continue
        directory = StoreDirectory(location, application, move.store)
        try:
            days = _fitting(directory, topic, move, found.remarks)
        except (OSError, InvalidInput) as error:
            # A copy does not need a snapshot.
            why = str(error)[:300]
            found.remarks.append(
                f"{move.source}: read as a whole, because its snapshots can't be looked at: {why}"
            )
            continue
        if days:
            found.by_source |= {
                (topic.name, p): tuple(_seed(directory, day, p) for day in days) for p in range(topic.partitions)
            }
        else:
            found.remarks.append(f"{move.source}: read as a whole, because there is no snapshot of this topic")
    return found


def _fitting(directory: StoreDirectory, topic: TopicDescription, move: Move, remarks: list[str]) -> list[Manifest]:
    """Return the newest days of this very topic. A topic of the same name that was made anew is another topic.

    Days of an older format may lack keys. Days that were taken while the topic still deleted by age lack keys,
    or have too many.
    """

    def fits(found: Manifest) -> bool:
        if (found.topic, found.topic_id) != (topic.name, topic.topic_id):
            return False
        if found.format != FORMAT or found.kept_ms is not None or found.by_age:
            return False
        return found.store.store_type == move.store_type and len(found.partitions) == topic.partitions

    return directory.newest(
        fits,
        tell=lambda error: remarks.append(f"{move.source}: not begun with a snapshot that can't be read: {error}"),
    )


def _seed(directory: StoreDirectory, manifest: Manifest, partition: int) -> SnapshotSeed:
    of_partition = next(p for p in manifest.partitions if p.partition == partition)
    return SnapshotSeed(directory, manifest, of_partition.file, of_partition.position)


def seeding_of(
    connection: KafkaConnection,
    candidates: Mapping[TopicPartition, Sequence[SnapshotSeed]],
    ends: Mapping[TopicPartition, int],
) -> Seeding:
    """Return the newest usable seed of each source. The seeds are checked before anything is written.

    :param ends: exclusive; the copies go up to there.
    """
    as_of_ms = now_ms()
    usable: dict[TopicPartition, Seed] = {}
    refused: list[str] = []
    for source, seeds in candidates.items():
        for seed in seeds:
            if not (why := _obstacle(connection, source, seed, ends[source])):
                usable[source] = seed
                break
            refused.append(f"{source[0]}-{source[1]}: not begun with {seed.manifest.day}: {why}")
    return Seeding(usable, as_of_ms, tuple(refused))


def _obstacle(connection: KafkaConnection, source: TopicPartition, seed: SnapshotSeed, end: int) -> str:
    """Return why a copy can't begin with a seed; empty if it can."""
    if seed.position > end:
        return f"its position {seed.position} lies behind the end of the log, {end}"
    from kafka_rescale.kafka.reading.log_batches import log_batches

    coverage = coverage_of(log_batches(connection, *source, seed.position, end), seed.position, end, begin=0)
    if not coverage.is_whole:
        # The removed records may include a deletion.
        return f"records behind its position {seed.position} were removed"
    if coverage.is_expiring:
        # They may be gone before the log is read. The snapshot's rows may include the entries that they delete.
        return f"deletions behind its position {seed.position} may be removed at any time"
    try:
        seed.check()
    except InvalidInput as error:
        return str(error)
    return ""
