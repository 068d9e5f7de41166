"""One broker of three is away: every kind of request is answered by the others, within its limit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from kafka_rescale.core.control.keys import Concern
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.admin.group_members import describe_unseen
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.control_topic import TOPIC, ControlTopic
from kafka_rescale.kafka.writing.transactional_writer import TransactionalWriter

from testbed.cluster import EmbeddedCluster
from testbed.cluster_roles import ClusterRoles

pytestmark = pytest.mark.integration

APPLICATION, DATA, GROUP, OTHER = "app", "data", "group", "other-id"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(tmp_path_factory.mktemp("cluster")) as running:
        connection = KafkaConnection(running.client_config())
        admin = ClusterAdmin(connection)
        admin.ensure_topic(DATA, 6, 3, {})
        admin.commit(GROUP, {DATA: {0: 0}})
        left(ControlTopic(connection, APPLICATION), 0)
        TransactionalWriter(connection, OTHER).write(DATA, {"key": b"value"})
        yield running


def left(control: ControlTopic, number: int) -> int:
    """Leave a number in the control topic, and return it as it was written."""
    return int(control.update(lambda _: {Concern.REPORT: {"number": number}}).report["number"])


def told_of(admin: ClusterAdmin) -> int:
    """The broker that this client takes for the controller."""
    return int(admin._client.list_topics(timeout=10).controller_id)


ROLES: dict[str, Callable[[ClusterRoles, ClusterAdmin], int]] = {
    "the controller that the client was told of": lambda _, admin: told_of(admin),
    "leader of the control topic": lambda roles, _: roles.leader(TOPIC),
    "coordinator of the control topic's transactions": lambda roles, _: roles.transaction_coordinator(
        f"kafka-rescale-{APPLICATION}"
    ),
    "coordinator of the group": lambda roles, _: roles.group_coordinator(GROUP),
}
SHORT = "the controller that the client was told of"
CASES = [
    pytest.param(
        role, harm, id=f"{harm} {role}", marks=[] if (role, harm) == (SHORT, "kill") else pytest.mark.slow
    )
    for role in ROLES
    for harm in ("kill", "freeze")
]


@contextmanager
def away(cluster: EmbeddedCluster, node: int, harm: str) -> Iterator[None]:
    """Kill or freeze a broker for a while."""
    broker = cluster.brokers[node]
    getattr(broker, harm)()
    try:
        yield
    finally:
        if harm == "kill":
            broker.start()
        broker.thaw()
        cluster.await_healthy()


@pytest.mark.parametrize(("role", "harm"), CASES)
def test_the_others_answer(cluster: EmbeddedCluster, role: str, harm: str, unique: str) -> None:
    connection = KafkaConnection(cluster.client_config())
    admin, control = ClusterAdmin(connection), ControlTopic(connection, APPLICATION)
    writer = TransactionalWriter(connection, OTHER)
    number = left(control, control.read().report["number"] + 1) + 1
    admin.describe_topics([DATA])
    with away(cluster, ROLES[role](ClusterRoles(connection), admin), harm):
        assert admin.describe_topics([DATA])[DATA].partitions == 6
        assert left(control, number) == number
        assert control.read().report == {"number": number}
        assert admin.end_offsets([DATA])[DATA].keys() == set(range(6))
        writer.write(DATA, {"key": b"value"})
        admin.commit(GROUP, {DATA: {0: number}})
        assert admin.committed(GROUP) == {DATA: {0: number}}
        assert admin.describe_group(GROUP).state == "Empty"
        assert describe_unseen(connection, unique).state == "Dead"
        assert DATA in admin.list_topics()
        connection.check()
        assert admin.ensure_topic(unique, 3, 3, {})
        assert admin.grow_topics({unique: 5}) == {unique: 3}
        admin.delete_topics([unique])
