"""The test bed of three brokers goes on when it loses one, and the roles that it names are real."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kafka_rescale.kafka.admin.kept_clients import admin_client
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.writing.transactional_writer import TransactionalWriter

from testbed.cluster import EmbeddedCluster
from testbed.cluster_roles import ClusterRoles, java_hash
from testbed.processes import wait_until

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="module")
def roles(cluster: EmbeddedCluster) -> ClusterRoles:
    return ClusterRoles(KafkaConnection(cluster.client_config()))


@pytest.fixture(scope="module")
def topic(cluster: EmbeddedCluster) -> str:
    admin = AdminClient(cluster.client_config())
    admin.create_topics([NewTopic("written", 1)])["written"].result()
    return "written"


def write(cluster: EmbeddedCluster, topic: str, *, seconds: int = 30) -> None:
    refused: list[object] = []
    producer = Producer(
        {**cluster.client_config(), "acks": "all", "message.timeout.ms": seconds * 1_000, "log_level": 0}
    )
    producer.produce(topic, b"value", on_delivery=lambda error, _: refused.append(error) if error else None)
    assert producer.flush(40) == 0
    if refused:
        raise KafkaException(refused[0])


# In `make test`, test_requests_beside_faults.py and test_broker_faults.py kill brokers of such a cluster by their
# roles, among them the coordinator of transactions and the controller.
@pytest.mark.slow
@pytest.mark.parametrize("harm", ["kill", "freeze"])
def test_a_record_is_acknowledged_while_a_broker_is_away(
    cluster: EmbeddedCluster, roles: ClusterRoles, topic: str, harm: str
) -> None:
    leader = roles.leader(topic)
    victim = cluster.brokers[leader]
    getattr(victim, harm)()
    try:
        write(cluster, topic)
        assert roles.leader(topic) not in {leader, -1}
    finally:
        if harm == "kill":
            victim.start()
        victim.thaw()
    cluster.await_healthy()


@pytest.mark.slow
def test_a_record_is_refused_while_two_brokers_are_away(cluster: EmbeddedCluster, topic: str) -> None:
    away = [cluster.brokers[1], cluster.brokers[2]]
    for broker in away:
        broker.freeze()
    try:
        with pytest.raises((KafkaException, AssertionError)):
            write(cluster, topic, seconds=5)
    finally:
        for broker in away:
            broker.thaw()
    cluster.await_healthy()


@pytest.mark.slow
def test_the_coordinator_of_a_transaction_is_the_one_that_brokers_name(
    cluster: EmbeddedCluster, roles: ClusterRoles, topic: str
) -> None:
    connection = KafkaConnection(cluster.client_config())
    TransactionalWriter(connection, "some-id").write(topic, {"key": b"value"})
    with admin_client(connection) as client:
        named = client.describe_transactions(["some-id"])["some-id"].coordinator_id
    assert roles.transaction_coordinator("some-id") == named


@pytest.mark.slow
def test_another_controller_takes_over(cluster: EmbeddedCluster, roles: ClusterRoles) -> None:
    first = roles.controller()
    cluster.brokers[first].kill()
    try:
        wait_until(lambda: roles.controller() not in {first, -1}, timeout=60, what="another controller")
    finally:
        cluster.brokers[first].start()
    cluster.await_healthy()


@pytest.mark.slow
def test_while_the_only_controller_is_dead_records_are_written_and_no_topic_is_made(tmp_path: Path) -> None:
    with EmbeddedCluster(tmp_path, lone_controller=True) as cluster:
        admin = AdminClient(cluster.client_config())
        admin.create_topics([NewTopic("written", 1)])["written"].result()
        number = ClusterRoles(KafkaConnection(cluster.client_config())).controller()
        assert number not in cluster.brokers
        write(cluster, "written")
        cluster.nodes[number].kill()
        write(cluster, "written")
        with pytest.raises(KafkaException):
            admin.create_topics([NewTopic("missing", 1)], request_timeout=5)["missing"].result()
        cluster.start_again(number)
        admin.create_topics([NewTopic("made", 1)])["made"].result()
        write(cluster, "made")


@pytest.mark.parametrize(("text", "hashed"), [("", 0), ("hello", 99162322), ("flights", -771814909), ("é", 233)])
def test_the_hash_is_that_of_java(text: str, hashed: int) -> None:
    assert java_hash(text) == hashed
