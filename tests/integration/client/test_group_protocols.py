"""Real Kafka Streams instances of every group protocol: they are seen, proven gone, and started without a wait."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from kafka_rescale.core.errors import Outage, UnsafeState
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.admin.transactions import open_transactions, wait_until_complete
from kafka_rescale.kafka.client.connection import KafkaConnection

from testbed.jars import java_command
from testbed.processes import wait_until
from tests.support.streams_member import streams_member

pytestmark = pytest.mark.integration

PARTITIONS, RECORDS = 2, 20
LONG_SESSION = {"session.timeout.ms": "1200000", "max.poll.interval.ms": "1200000"}
CLASSIC = {"group.protocol": "classic", "commit.interval.ms": "100", **LONG_SESSION}
STATIC = {**CLASSIC, "group.instance.id": "pod-0", "processing.guarantee": "exactly_once_v2"}
STREAMS = {"group.protocol": "streams", "processing.guarantee": "exactly_once_v2"}
SOON = 40.0
"""An instance must run within so many seconds. This is less than any session timeout here.
With KIP-1071, the session timeout is the broker's 45 s.
"""


@pytest.fixture
def admin(client: dict[str, str]) -> ClusterAdmin:
    return ClusterAdmin(KafkaConnection(client))


@pytest.fixture
def topic(admin: ClusterAdmin, client: dict[str, str], unique: str) -> str:
    """An input with records, and its output topic."""
    admin.ensure_topic(unique, PARTITIONS, 1, {})
    admin.ensure_topic(f"{unique}-counts", PARTITIONS, 1, {})
    producer = Producer(client)
    for i in range(RECORDS):
        producer.produce(unique, b"v", str(i).encode(), i % PARTITIONS)
    assert producer.flush(20) == 0
    return unique


def processed(admin: ClusterAdmin, topic: str) -> int:
    """The sum of the group's committed offsets. It has processed at most so many records."""
    return sum(admin.committed(topic).get(topic, {}).values())


@pytest.mark.parametrize(
    "settings",
    [
        # In `make test`, `classic static` lingers in its group as `classic` does.
        pytest.param(CLASSIC, id="classic", marks=pytest.mark.slow),
        pytest.param(STATIC, id="classic static"),
        pytest.param(STREAMS, id="streams"),
    ],
)
def test_after_a_stop_no_start_waits_for_a_session_timeout(
    admin: ClusterAdmin, client: dict[str, str], topic: str, tmp_path: Path, settings: dict[str, str]
) -> None:
    servers = client["bootstrap.servers"]
    # As for green before its first start: its first member decides the type of the group.
    admin.commit(topic, {topic: dict.fromkeys(range(PARTITIONS), 1)})
    with streams_member(servers, topic, topic, tmp_path / "1", settings) as first:
        first.await_state("RUNNING", SOON)
        found = admin.describe_group(topic)
        assert found.is_live
        assert found.protocol == settings["group.protocol"]
        with pytest.raises(UnsafeState, match="live members"):
            admin.commit(topic, {topic: {0: 0}})
        first.close(SOON)
    lingers = settings["group.protocol"] == "classic"
    assert admin.describe_group(topic).is_live == lingers, (
        "a clean close leaves a group of the streams protocol only"
    )
    assert admin.remove_members(topic) == ()
    assert admin.describe_group(topic).state == "Empty"
    admin.commit(topic, {topic: dict.fromkeys(range(PARTITIONS), 1)})

    with streams_member(servers, topic, topic, tmp_path / "2", settings) as second:
        second.await_state("RUNNING", SOON)
        wait_until(lambda: processed(admin, topic) >= RECORDS, timeout=60, what="the input to be processed")
        second.kill()
    assert admin.describe_group(topic).is_live, "the coordinator can't know yet"
    assert admin.remove_members(topic) == ()
    assert admin.describe_group(topic).state == "Empty"
    admin.delete_group(topic)
    assert admin.describe_group(topic).state == "Dead"


@pytest.fixture
def hanging(client: dict[str, str], topic: str) -> str:
    """A transaction whose producer has vanished. Its coordinator waits for a quarter of an hour."""
    settings = {"transactional.id": f"{topic}-1", "transaction.timeout.ms": 900_000, "message.timeout.ms": 60_000}
    producer = Producer({**client, **settings})
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce(topic, b"v", b"k", 1)
    assert producer.flush(20) == 0
    return f"{topic}-1"


def test_a_transaction_that_stays_open_is_named(admin: ClusterAdmin, topic: str, hanging: str) -> None:
    [found] = open_transactions(admin, [topic])
    assert (found.transactional_id, found.state, found.hangs) == (hanging, "Ongoing", False)
    assert (found.topic, found.partition, found.offset) == (topic, 1, RECORDS // PARTITIONS)
    with pytest.raises(Outage) as error:
        wait_until_complete(admin, [topic], seconds=0.1)
    assert str(error.value) == (
        f"topics {topic}: found transaction '{hanging}' (Ongoing at coordinator {found.coordinator}, producer id "
        f"{found.producer_id}, epoch {found.producer_epoch}) on {topic}-1 since offset {found.offset}; expected "
        "no transaction that is open for 0 s. Stop its producer; the coordinator aborts it after the producer's "
        "transaction.timeout.ms."
    )
    assert open_transactions(admin, [f"{topic}-counts"]) == []


# In `make test`, a group of the streams protocol; the next test has one of the classic protocol.
@pytest.mark.parametrize(
    "settings",
    [pytest.param(CLASSIC, id="classic", marks=pytest.mark.slow), pytest.param(STREAMS, id="streams")],
)
def test_an_over_partitioned_internal_topic_keeps_the_application_from_running(
    admin: ClusterAdmin, client: dict[str, str], topic: str, tmp_path: Path, settings: dict[str, str]
) -> None:
    """This is why preflight refuses it, and why internal topics of a running generation never grow."""
    admin.ensure_topic(f"{topic}-counts-changelog", PARTITIONS + 1, 1, {"cleanup.policy": "compact"})
    with streams_member(client["bootstrap.servers"], topic, topic, tmp_path, settings) as member:
        member.await_state("ERROR", SOON)
        assert "RUNNING" not in member.states
    assert processed(admin, topic) == 0


# In `make test`, a group of the classic protocol; the test before has one of the streams protocol.
@pytest.mark.parametrize(
    "settings",
    [pytest.param(CLASSIC, id="classic"), pytest.param(STREAMS, id="streams", marks=pytest.mark.slow)],
)
def test_growing_what_a_running_application_reads_ends_it(
    admin: ClusterAdmin, client: dict[str, str], topic: str, tmp_path: Path, settings: dict[str, str]
) -> None:
    """This is why inputs grow only after the old generation has stopped, and outputs that it reads never grow."""
    settings = {**settings, "metadata.max.age.ms": "500"}
    with streams_member(client["bootstrap.servers"], topic, topic, tmp_path, settings) as member:
        member.await_state("RUNNING", SOON)
        wait_until(lambda: processed(admin, topic) >= RECORDS, timeout=60, what="the input to be processed")
        admin.grow_topic(topic, PARTITIONS + 1)
        member.await_state("ERROR", SOON)


@contextmanager
def share_member(servers: str, group: str, topic: str) -> Iterator[None]:
    """A consumer of a share group (KIP-932)."""
    words = ["--bootstrap-server", servers, "--topic", topic, "--group", group]
    program = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
    process = subprocess.Popen(
        java_command(program, *words),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.kill()
        process.wait()


def test_a_share_group_would_be_taken_for_one_that_is_gone(
    admin: ClusterAdmin, client: dict[str, str], unique: str
) -> None:
    """confluent-kafka says that the group is dead. Its members would be taken for stopped."""
    admin.ensure_topic(unique, 1, 1, {})
    assert admin.describe_group(unique).state == "Dead"

    def refusal() -> str:
        try:
            admin.describe_group(unique)
        except UnsafeState as error:
            return str(error)
        return ""

    with share_member(client["bootstrap.servers"], unique, unique):
        wait_until(lambda: refusal() != "", timeout=60, what="the share group")
        assert refusal() == (
            f"group '{unique}': found a group of the share protocol; expected a group of the classic, the "
            "consumer or the streams protocol. Choose another application.id, or delete that group."
        )
        confluent = AdminClient(client)
        seen = confluent.describe_consumer_groups([unique])[unique].result(20)
        assert (seen.state.name, seen.members) == ("DEAD", [])
