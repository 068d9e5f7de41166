"""While one broker of three is away, the others answer every kind of request within its time limit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from kafka_rescale.core.control.keys import Concern
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.plan.disk_need import TopicNeed
from kafka_rescale.kafka.admin import offsets
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.admin.log_dirs import read_disks
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.control_topic import TOPIC, ControlTopic
from kafka_rescale.kafka.writing.transactional_writer import TransactionalWriter

from testbed.cluster import EmbeddedCluster
from testbed.cluster_roles import ClusterRoles
from testbed.processes import wait_until

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
    """Write a number to the control topic, and return what was written."""
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
    """Kill, stop or freeze a broker for a while."""
    broker = cluster.brokers[node]
    getattr(broker, harm)()
    try:
        yield
    finally:
        if broker.pid is None:
            broker.start()
        broker.thaw()
        cluster.await_healthy()


@pytest.mark.parametrize(("role", "harm"), CASES)
def test_the_others_answer(
    cluster: EmbeddedCluster, role: str, harm: str, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = KafkaConnection(cluster.client_config())
    admin, control = ClusterAdmin(connection), ControlTopic(connection, APPLICATION)
    writer = TransactionalWriter(connection, OTHER)
    number = left(control, control.read().report["number"] + 1) + 1
    admin.describe_topics([DATA])
    monkeypatch.setattr(offsets, "MANY_PARTITIONS", 6)
    many = ClusterAdmin(KafkaConnection({**cluster.client_config(), "client.id": "many"}))
    before = many.end_offsets([DATA])
    assert many.connection in offsets._LISTS
    with away(cluster, ROLES[role](ClusterRoles(connection), admin), harm):
        assert admin.describe_topics([DATA])[DATA].partitions == 6
        assert left(control, number) == number
        assert control.read().report == {"number": number}
        assert admin.end_offsets([DATA])[DATA].keys() == set(range(6))
        assert many.end_offsets([DATA]) == before
        writer.write(DATA, {"key": b"value"})
        admin.commit(GROUP, {DATA: {0: number}})
        assert admin.committed(GROUP) == {DATA: {0: number}}
        assert admin.describe_group(GROUP).state == "Empty"
        assert admin.describe_group(unique).state == "Dead"
        assert DATA in admin.list_topics()
        connection.check()
        assert admin.ensure_topic(unique, 3, 3, {})
        assert admin.grow_topics({unique: 5}) == {unique: 3}
        admin.delete_topics([unique])


def test_a_broker_that_restarts_is_waited_for_and_counted(
    cluster: EmbeddedCluster, unique: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A broker that was stopped cleanly gets no replicas and isn't listed until it is back."""
    connection = KafkaConnection(cluster.client_config())
    admin, roles = ClusterAdmin(connection), ClusterRoles(connection)
    # Leave out the controller: if it stops, its successor may not know that it has stopped cleanly.
    node = min(cluster.brokers.keys() - {roles.controller()})
    for name in ("grown", "validated"):
        admin.ensure_topic(f"{unique}-{name}", 1, 3, {})
    with away(cluster, node, "stop"), ThreadPoolExecutor(max_workers=4) as pool:
        wait_until(lambda: admin.live_brokers() == 2, timeout=60, what="the broker to be gone from the metadata")
        assert admin.broker_count() == 3
        with pytest.raises(UnsafeState, match="INVALID_REPLICATION_FACTOR"):
            admin.ensure_topic(f"{unique}-wide", 1, 4, {})
        waiting = [
            pool.submit(admin.ensure_topic, unique, 3, 3, {}),
            pool.submit(ClusterAdmin(connection).grow_topics, {f"{unique}-grown": 2}),
            pool.submit(ClusterAdmin(connection).validate_growth, {f"{unique}-validated": 2}),
            pool.submit(ClusterAdmin(connection).live_brokers, 3),
        ]
        wait_until(lambda: "Waiting for 3" in caplog.text, timeout=60, what="the first look")
        # The other requests may be accepted by then: a new controller doesn't know of the clean stop.
        assert not waiting[-1].done()
        cluster.brokers[node].start()
        created, grown, _, live = (future.result(timeout=120) for future in waiting)
    assert (created, grown, live) == (True, {f"{unique}-grown": 1}, 3)
    assert admin.describe_topics([unique])[unique].replication_factor == 3


@pytest.mark.parametrize(("partitions", "replicas"), [(8, 2), (5, 1), (1, 3)])
def test_brokers_spread_replicas_as_the_need_of_disk_takes_it(
    cluster: EmbeddedCluster, partitions: int, replicas: int
) -> None:
    connection, name = KafkaConnection(cluster.client_config()), f"spread-{partitions}"

    def held() -> list[int]:
        return [sum(t == name for t, _ in d.sizes) for d in read_disks(connection, {name: partitions}).log_dirs]

    ClusterAdmin(connection).ensure_topic(name, partitions, replicas, {})
    wait_until(lambda: sum(held()) == partitions * replicas, timeout=30, what="each replica to have its log")
    need = TopicNeed(name, name, partitions, partitions, partitions, replicas)
    assert max(held()) <= need.on_one(3, 1)


# In `make test`, U/test_disk.py has brokers that tell nothing, and what is made of that.
@pytest.mark.slow
def test_a_frozen_broker_tells_nothing_of_its_disk_and_the_others_do(cluster: EmbeddedCluster) -> None:
    connection = KafkaConnection(cluster.client_config())
    with away(cluster, 2, "freeze"):
        disks = read_disks(connection, {DATA: 6})
        assert {each.broker for each in disks.log_dirs} == {1, 3}
        assert list(disks.untold) == [2]
        assert disks.untold[2]
        assert {at for each in disks.log_dirs for at in each.sizes} == {(DATA, p) for p in range(6)}
