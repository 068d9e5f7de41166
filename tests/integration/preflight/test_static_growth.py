"""KIP-878: if a static partitioner asks for a partition beyond the count, preflight reads the counts again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from kafka_rescale.core.errors import PreflightRefused
from kafka_rescale.kafka.admin import growing_topics
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.operations.preflight import preflight

from tests.support.situations import all_placed_by
from tests.support.small_application import KEYS, placed, records
from tests.support.small_cluster import make, produce, run_preflight

pytestmark = pytest.mark.integration
Client = Mapping[str, str]
NUMBERED = "static:tests.support.user_partitioners:numbered"
OLD = tuple(key for key in KEYS if int(key.rpartition(b"-")[2]) % 8 < 4)
NEW = tuple(key for key in KEYS if key not in OLD)


def make_numbered(client: Client, name: str) -> None:
    """Make every topic with 4 partitions and the keys that belong there."""
    made = records(name, 8, NUMBERED)
    old = {t: [m for m in its if m.partition < 4] for t, its in made.items()}
    make(client, name, spoilt={topic.removeprefix(f"{name}-"): its for topic, its in old.items()})


def test_an_input_that_grows_while_it_is_sampled_is_looked_at_again(
    client: Client, tmp_path: Path, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_numbered(client, unique)
    customers, counted, genuine = f"{unique}-customers", list[int](), preflight._sample

    def grown_before(known: Any, admin: ClusterAdmin, connection: KafkaConnection) -> Any:
        """After the count and before the sample, the topic grows and its producers send new keys."""
        counted.append(known.cluster.topics[customers].partitions)
        if len(counted) == 1:
            admin.grow_topic(customers, 8)
            produce(client, {customers: placed(NEW, 8, NUMBERED)})
        return genuine(known, admin, connection)

    monkeypatch.setattr(preflight, "_sample", grown_before)
    result = run_preflight(client, tmp_path, unique, **all_placed_by(unique, NUMBERED))
    assert counted == [4, 8]
    assert result.plan is not None
    (planned,) = (i for i in result.plan.inputs if i.topic == customers)
    assert (planned.earlier, planned.current) == (4, 8)


def test_an_answer_that_stays_outside_of_the_topic_is_refused(
    client: Client, tmp_path: Path, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growing_topics, "BROKERS_KNOW_SECONDS", 1.0)
    make(client, unique)
    with pytest.raises(PreflightRefused, match="expected one partition of 0 to 3, and always the same"):
        run_preflight(client, tmp_path, unique, **all_placed_by(unique, NUMBERED))
