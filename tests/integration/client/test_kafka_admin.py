"""Administration on a real broker: every change is idempotent, and an error says what prevents it."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, Producer
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.control.generations import Generations
from kafka_rescale.core.errors import ClusterOutage, InvalidInput, UnsafeState
from kafka_rescale.core.topology.topology import SubTopology, Topology
from kafka_rescale.kafka.admin import growing_topics, offsets, topic_reader
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.admin.describe import describe
from kafka_rescale.kafka.client.connection import KafkaConnection

from tests.support.cluster.lapses import forget

pytestmark = pytest.mark.integration


@pytest.fixture
def admin(client: dict[str, str]) -> ClusterAdmin:
    return ClusterAdmin(KafkaConnection(client))


def test_a_topic_is_created_with_all_its_overrides_and_only_once(admin: ClusterAdmin, unique: str) -> None:
    configs = {"cleanup.policy": "compact,delete", "retention.ms": "5000"}
    assert admin.ensure_topic(unique, 3, 1, configs)
    assert not admin.ensure_topic(unique, 3, 1, configs)

    found = admin.describe_topics([unique])[unique]
    assert (found.partitions, found.replication_factor, found.overrides) == (3, 1, configs)
    assert found.cleanup_policy == ("compact", "delete")
    assert found.configs["min.insync.replicas"] == "1"
    assert found.topic_id


def test_an_existing_topic_is_brought_in_line_and_keeps_its_other_overrides(
    admin: ClusterAdmin, unique: str
) -> None:
    admin.ensure_topic(unique, 1, 1, {"retention.ms": "5000", "segment.ms": "600000"})
    assert not admin.ensure_topic(unique, 1, 1, {"retention.ms": "7000"})
    assert admin.describe_topics([unique])[unique].overrides == {"retention.ms": "7000", "segment.ms": "600000"}
    admin.alter_configs(unique, {"segment.ms": None, "retention.ms": "8000"})
    assert admin.describe_topics([unique])[unique].overrides == {"retention.ms": "8000"}


def test_a_topic_with_another_count_is_unsafe(admin: ClusterAdmin, unique: str) -> None:
    admin.ensure_topic(unique, 3, 1, {})
    with pytest.raises(UnsafeState, match=r"found 3 partitions; expected 4 partitions.*delete it"):
        admin.ensure_topic(unique, 4, 1, {})


def test_a_creation_that_was_carried_out_without_an_answer_is_not_an_error(
    admin: ClusterAdmin, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _lose_the_answer(admin, monkeypatch, {unique})
    assert admin.ensure_topic(unique, 2, 1, {"retention.ms": "5000"})
    assert admin.describe_topics([unique])[unique].overrides == {"retention.ms": "5000"}


def test_a_growth_that_was_carried_out_without_an_answer_is_not_an_error(
    admin: ClusterAdmin, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin.ensure_topic(unique, 2, 1, {})
    _lose_the_answer(admin, monkeypatch, {unique})
    assert admin.grow_topic(unique, 4)
    assert admin.describe_topics([unique])[unique].partitions == 4


@pytest.mark.parametrize(
    ("replicas", "configs", "reason"),
    [(5, {}, "INVALID_REPLICATION_FACTOR"), (1, {"no.such.config": "1"}, "INVALID_CONFIG")],
)
def test_what_the_brokers_refuse_is_passed_on(
    admin: ClusterAdmin, unique: str, replicas: int, configs: dict[str, str], reason: str
) -> None:
    with pytest.raises(UnsafeState, match=reason):
        admin.ensure_topic(unique, 1, replicas, configs)


def test_growing_is_idempotent_and_never_shrinks(
    admin: ClusterAdmin, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growing_topics, "SETTLE_SECONDS", 0.5)
    admin.ensure_topic(unique, 2, 1, {})
    admin.validate_growth({unique: 4})
    assert admin.describe_topics([unique])[unique].partitions == 2
    assert admin.grow_topic(unique, 4)
    assert not admin.grow_topic(unique, 4)
    with pytest.raises(UnsafeState, match="No topic can shrink"):
        admin.grow_topic(unique, 3)
    with pytest.raises(InvalidInput, match="no such topic"):
        admin.grow_topic(f"{unique}-absent", 3)


def test_offsets_are_there_at_once_for_partitions_that_were_just_added(admin: ClusterAdmin, unique: str) -> None:
    admin.ensure_topic(unique, 1, 1, {})
    admin.grow_topic(unique, 8)
    assert admin.end_offsets([unique]) == {unique: dict.fromkeys(range(8), 0)}


def test_offsets_of_more_partitions_than_one_request_asks_for_are_all_there(
    admin: ClusterAdmin, client: dict[str, str], unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafka_rescale.kafka.admin.offsets.PARTITIONS_AT_ONCE", 3)
    other = f"{unique}-other"
    for topic, partitions in ((unique, 7), (other, 1)):
        admin.ensure_topic(topic, partitions, 1, {})
    producer = Producer(client)
    for partition in range(7):
        for _ in range(partition):
            producer.produce(unique, b"v", partition=partition)
    producer.flush()
    found = admin.end_offsets([unique, other])
    assert found == {unique: dict(enumerate(range(7))), other: {0: 0}}
    assert admin.ends_of([(unique, 3), (other, 0)]) == {(unique, 3): 3, (other, 0): 0}
    assert admin.ends_of([]) == {}


class TestATopicThatABrokerDoesNotKnow:
    """A broker that has just started may not know an existing topic.

    So an answer without the topic is not believed.
    """

    def test_it_is_asked_again_until_a_broker_knows_it(
        self, admin: ClusterAdmin, unique: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        admin.ensure_topic(unique, 2, 1, {})
        forget(monkeypatch, "partition_counts", times=2)
        assert admin.end_offsets([unique]) == {unique: {0: 0, 1: 0}}
        forget(monkeypatch, "describe_topics", times=2)
        assert admin.existing_topics([unique])[unique].partitions == 2

    def test_one_that_is_gone_is_an_outage_that_names_it(
        self, admin: ClusterAdmin, unique: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        admin.ensure_topic(unique, 2, 1, {})
        for module in (offsets, topic_reader):
            monkeypatch.setattr(module, "SETTLE_SECONDS", 0.3)
        gone = f"{unique}-gone"
        for ask in (admin.begin_offsets, admin.end_offsets, admin.existing_topics):
            with pytest.raises(ClusterOutage, match=f"^topic {gone}: found brokers that have not known it"):
                ask([unique, gone])
        assert admin.end_offsets([unique, gone], if_present=True) == {unique: {0: 0, 1: 0}}
        assert admin.absent_of([unique, gone]) == {gone}


def test_deleting_is_idempotent(admin: ClusterAdmin, unique: str) -> None:
    admin.ensure_topic(unique, 1, 1, {})
    admin.delete_topics([unique, f"{unique}-absent"])
    assert admin.describe_topics([unique]) == {}
    assert unique not in admin.list_topics()
    admin.delete_topics([unique])


def test_records_are_deleted_up_to_an_offset(admin: ClusterAdmin, client: dict[str, str], unique: str) -> None:
    admin.ensure_topic(unique, 1, 1, {"cleanup.policy": "delete"})
    _produce(client, unique, 5)
    admin.delete_records({unique: {0: 3}})
    assert admin.begin_offsets([unique]) == {unique: {0: 3}}
    with pytest.raises(UnsafeState, match=f"{unique}-0.*OFFSET_OUT_OF_RANGE"):
        admin.delete_records({unique: {0: 9}})


def test_a_description_covers_every_topic_of_a_generation(
    admin: ClusterAdmin, client: dict[str, str], unique: str
) -> None:
    topology = Topology(
        (
            SubTopology(0, (f"{unique}-in",), (), ("by-key-repartition",)),
            SubTopology(1, ("by-key-repartition",), ("totals",), (f"{unique}-out",)),
        )
    )
    application = Application.model_validate(
        {
            "application_id": unique,
            "partitions": 4,
            "inputs": [{"topic": f"{unique}-in", "policy": "unkeyed"}],
            "outputs": [{"topic": f"{unique}-out"}, {"topic": f"{unique}-missing"}],
            "topology": "…",
            "lifecycle": {"type": "manual"},
        }
    )
    internal = (f"{unique}-by-key-repartition", f"{unique}-totals-changelog")
    for name in (f"{unique}-in", f"{unique}-out", *internal):
        admin.ensure_topic(name, 2, 1, {})
    _produce(client, f"{unique}-in", 3)
    admin.commit(unique, {f"{unique}-in": {0: 2}})

    found = describe(admin, application, topology, Generations(running=unique))

    assert set(found.topics) == {f"{unique}-in", f"{unique}-out", *internal}
    assert (found.brokers, found.group.state, found.committed) == (1, "Empty", {(f"{unique}-in", 0): 2})
    assert found.ends[f"{unique}-in", 0] == 3
    assert found.begins.keys() == found.ends.keys()
    assert len(found.ends) == 8


def _produce(client: dict[str, str], topic: str, count: int) -> None:
    producer = Producer(client)
    for number in range(count):
        producer.produce(topic, str(number).encode(), partition=0)
    producer.flush(20)


def _lose_the_answer(admin: ClusterAdmin, monkeypatch: pytest.MonkeyPatch, keys: set[str]) -> None:
    """Let the broker carry out the next change of these topics, but let the answer be a timeout."""
    real, left = admin._once, set(keys)

    def once(ask, *limit):
        answers = real(ask, *limit)
        for key in left & answers.keys():
            if answers[key] is None:
                left.discard(key)
                answers[key] = KafkaError(KafkaError._TIMED_OUT)
        return answers

    monkeypatch.setattr(admin, "_once", once)
