"""What a driver reads to know whether its copy does harm, on three real brokers. One of them dies."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka_rescale.core.application.topics import InputPolicy
from kafka_rescale.core.control.pace import Pace, Rate
from kafka_rescale.core.errors import ClusterOutage
from kafka_rescale.core.expansion import pacing_lag
from kafka_rescale.core.expansion.pacing import SETTLING_MS, first_rate, next_rate
from kafka_rescale.core.plan.plan import InputPlan, Plan
from kafka_rescale.kafka.admin import offsets
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import again_after_outage
from kafka_rescale.kafka.copy.harm import Harm
from kafka_rescale.kafka.copy.progress import CopyProgress

from testbed.cluster import EmbeddedCluster
from testbed.processes import wait_until
from tests.integration.copy_helpers import changelog, plan_of

pytestmark = pytest.mark.integration

LIMIT = 1_000_000


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture
def plan(cluster: EmbeddedCluster, unique: str) -> Plan:
    """Topics with a replica on each broker, and an input."""
    move = changelog(unique, "key-value", 2, 4)
    read = InputPlan(
        topic=f"{unique}-input", policy=InputPolicy.UNKEYED, partitioner="murmur2", current=2, target=2
    )
    topics = [NewTopic(name, 2, 3) for name in (move.source, move.target, read.topic)]
    admin = AdminClient(cluster.client_config())
    for made in admin.create_topics(topics, operation_timeout=30).values():
        made.result()
    return plan_of(unique, move).model_copy(update={"inputs": (read,)})


@pytest.fixture
def harm(cluster: EmbeddedCluster, plan: Plan) -> Iterator[tuple[Harm, CopyProgress]]:
    connection = KafkaConnection(cluster.client_config())
    progress = CopyProgress(connection, plan, plan.moves)
    yield Harm(connection, plan, plan.blue, progress), progress
    progress.close()


# In `make test`, U/test_pacing.py has this sign of harm and all others, and what comes of them.
@pytest.mark.slow
def test_a_broker_that_is_down_halves_the_rate_until_its_replicas_are_back(
    cluster: EmbeddedCluster, plan: Plan, harm: tuple[Harm, CopyProgress]
) -> None:
    readings, progress = harm
    pace = Pace(plan=plan.fingerprint, limit=LIMIT)
    rate = first_rate(pace, "r", 1, 1, 0)

    def decided() -> Rate:
        # A broker that has just come back may not know the topic yet.
        return next_rate(pace, rate, readings.read(again_after_outage(progress.read)), 1)

    assert (decided().bytes_per_second, decided().slowed_by) == (LIMIT, "")
    cluster.brokers[3].kill()
    wait_until(lambda: decided().slowed_by, timeout=60, what="replicas to be missed")
    rate = decided()
    assert rate.bytes_per_second == LIMIT // 2
    assert "partitions have fewer replicas in sync than replicas" in rate.slowed_by
    cluster.start_again(3)
    rate = rate.model_copy(update={"slowed_ms": rate.slowed_ms - SETTLING_MS})
    wait_until(
        lambda: (decided().bytes_per_second or 0) > LIMIT // 2,
        timeout=120,
        what="the rate to rise when all are back",
    )


def test_the_lag_of_the_inputs_is_read_from_the_groups_positions(
    cluster: EmbeddedCluster, plan: Plan, harm: tuple[Harm, CopyProgress], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pacing_lag, "WINDOW_MS", 1_500)
    monkeypatch.setattr(pacing_lag, "LEAST_GROWTH", 50)
    readings, progress = harm
    topic = plan.inputs[0].topic
    assert readings.read(progress.read()).input_lag is None, "a group without positions is not known, and no 0"
    consumer = Consumer({**cluster.client_config(), "group.id": plan.blue})
    consumer.commit(offsets=[TopicPartition(topic, p, 0) for p in range(2)], asynchronous=False)
    consumer.close()
    assert readings.read(progress.read()).input_lag is None, "nor is a growth in the first minute"
    wait_until(lambda: readings.read(progress.read()).input_lag == "", timeout=30, what="a second window")
    producer = Producer(cluster.client_config())
    for partition in (0, 1):
        for _ in range(100):
            producer.produce(topic, b"value", partition=partition)
    assert producer.flush(30) == 0
    began, said = time.monotonic(), ""
    while not said and time.monotonic() - began < 30:
        said = readings.read(progress.read()).input_lag or ""
    assert said == "the application's input lag has grown from 0 to 200 records in a minute"


def test_ends_of_a_topic_that_a_broker_does_not_know_are_an_outage(
    harm: tuple[Harm, CopyProgress], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that has just started may answer this way, and a driver must not die of it."""
    _, progress = harm
    monkeypatch.setattr(ClusterAdmin, "partition_counts", lambda *_: {})
    monkeypatch.setattr(offsets, "SETTLE_SECONDS", 0.3)
    with pytest.raises(ClusterOutage, match="-changelog: found brokers that have not known it"):
        progress.read()
