"""A restore that may begin with a snapshot. It does what a Spark job does, but in this process without Spark."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kafka_rescale.core.plan.plan import Move, Plan
from kafka_rescale.core.snapshots.day import SnapshotDay
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.copy.progress import CopyProgress
from kafka_rescale.kafka.copy.reset import restart_stale
from kafka_rescale.kafka.copy.units import units_of
from kafka_rescale.spark.copy.tasks import CopyToEnds
from kafka_rescale.spark.snapshots.seed import Candidates, candidates_for

from tests.integration.copy_helpers import Record, changelog, expected_partition, per_key, plan_of, read
from tests.support.snapshot_world import PARTITIONS, STORE, SnapshotWorld

STORE_TYPE = "timestamped-key-value"
KEEP = {"cleanup.policy": "compact", "min.compaction.lag.ms": str(2**62)}


@dataclass(frozen=True)
class Restored:
    """What one attempt did.

    :param seeded: rows of snapshots.
    :param tail: records read from the log.
    :param refused: why snapshots were not used.
    """

    seeded: int
    tail: int
    refused: tuple[str, ...] = ()


@dataclass(frozen=True)
class SeededRestore:
    """The copy of one changelog into more partitions."""

    world: SnapshotWorld
    connection: KafkaConnection
    move: Move

    @classmethod
    def of(cls, world: SnapshotWorld) -> SeededRestore:
        """Make the target topic, and return the copy to it."""
        connection = KafkaConnection(dict(world.client))
        move = changelog(world.application, STORE_TYPE, PARTITIONS, 5, store=STORE)
        ClusterAdmin(connection).ensure_topic(move.target, move.target_partitions, 1, KEEP)
        return cls(world, connection, move)

    @property
    def plan(self) -> Plan:
        """The plan with this changelog alone."""
        return plan_of(self.world.application, self.move)

    def candidates(self, **changes: object) -> Candidates:
        """The snapshots that fit the changelog, or a changelog that differs from it."""
        move = self.move.model_copy(update=changes)
        return candidates_for(self.connection, str(self.world.directory), self.world.application, [move])

    def ends(self) -> dict[tuple[str, int], int]:
        """Where the changelog ends now."""
        return dict(CopyProgress(self.connection, self.plan, [self.move]).ends())

    def task(self, *, snapshots: bool = True) -> CopyToEnds:
        """The function that runs in Spark's workers."""
        seeds = self.candidates().by_source if snapshots else {}
        return CopyToEnds(self.connection, self.plan, self.ends(), now_ms(), seeds=seeds)

    def run(self, task: CopyToEnds | None = None) -> Restored:
        """Make one attempt."""
        restart_stale(self.connection, self.plan, [self.move], now_ms(), attempt=1)
        progress = CopyProgress(self.connection, self.plan, [self.move])
        progress.read()
        found = list((task or self.task())([unit] for unit in units_of([self.move])))
        seeded = sum(each.rows for each in found)
        refused = tuple(line for each in found for line in each.refused)
        return Restored(seeded, progress.read().records - seeded, refused)

    def files(self, day: SnapshotDay) -> list[Path]:
        """The Parquet files of a day."""
        return sorted(self._directory(day).glob("*.parquet"))

    def manifest(self, day: SnapshotDay) -> Path:
        """The manifest of a day."""
        return self._directory(day) / "_manifest.json"

    def assert_equal_to_a_full_copy(self) -> None:
        """Assert that the state is the same, each key is where it belongs, and no record came twice."""
        assert self._live(self.move.target) == self._live(self.move.source)
        for partition, records in read(self.connection, self.move.target).items():
            for record in records:
                assert record.key is not None
                home = expected_partition(STORE_TYPE, record.key, self.move.target_partitions)
                assert home == partition
        whole = per_key(read(self.connection, self.move.source))
        for key, records in per_key(read(self.connection, self.move.target)).items():
            assert whole[key][-len(records) :] == records, "the end of each history, in its order"

    def _live(self, topic: str) -> dict[bytes | None, Record]:
        last = {key: records[-1] for key, records in per_key(read(self.connection, topic)).items()}
        return {key: record for key, record in last.items() if record.value is not None}

    def _directory(self, day: SnapshotDay) -> Path:
        return self.world.directory / self.world.application / STORE / f"date={day}"
