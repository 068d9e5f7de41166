"""The snapshots with which a restore may begin, before it looks at any log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kafka_rescale.core.cluster import TopicDescription
from kafka_rescale.core.plan.plan import Move, MoveKind
from kafka_rescale.core.snapshots.manifest import PartitionSnapshot
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.spark.snapshots import seed as snapshot_seed
from kafka_rescale.spark.snapshots.files import StoreDirectory
from kafka_rescale.spark.snapshots.seed import candidates_for

from tests.support.snapshot_days import DAY, STORE, manifest_of

APPLICATION = "orders-app"
TOPIC = TopicDescription("orders-app-g2-totals-changelog", 1, 1, {"cleanup.policy": "compact"}, topic_id="x")
MOVE = Move(
    kind=MoveKind.CHANGELOG,
    source=TOPIC.name,
    target="orders-app-g3-totals-changelog",
    store=STORE.name,
    store_type=STORE.store_type,
    source_partitions=1,
    target_partitions=2,
)


class Admin:
    """Knows the running changelog."""

    def __init__(self, _: KafkaConnection) -> None: ...

    def describe_topics(self, _: list[str]) -> dict[str, TopicDescription]:
        """Return the running changelog."""
        return {TOPIC.name: TOPIC}


@pytest.mark.parametrize(
    ("changes", "fits"),
    [
        pytest.param({}, True, id="as they are taken now"),
        pytest.param({"format": 1}, False, id="a format whose days may lack living keys"),
        pytest.param({"kept_ms": 86_400_000}, False, id="taken while the topic still deleted by age"),
        pytest.param({"topic_id": "y"}, False, id="another topic of this name"),
    ],
)
def test_only_days_that_hold_all_that_a_copy_would_are_begun_with(
    tmp_path: Path, changes: dict[str, Any], fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot_seed, "ClusterAdmin", Admin)
    directory = StoreDirectory(str(tmp_path), APPLICATION, STORE.name)
    manifest = manifest_of(DAY, PartitionSnapshot(partition=0, position=10, end=10, rows=0))
    directory.publish(directory.begin(DAY, "x"), manifest.model_copy(update=changes))
    connection = KafkaConnection({"bootstrap.servers": "none"})
    found = candidates_for(connection, str(tmp_path), APPLICATION, [MOVE])
    assert bool(found.by_source) is fits
    assert bool(found.remarks) is not fits
