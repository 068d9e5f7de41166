"""Retirement on a real broker deletes everything of the earlier generations, and nothing else."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, TopicPartition
from kafka_rescale.core.errors import Refused
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.operations.expansion.retire import retire

from tests.support.expansion.retired_world import after, chain, internal_topics, plan_of
from tests.support.group_member import group_member

pytestmark = pytest.mark.integration

STOPPED = {"type": "shell", "start": "false", "stop": "false", "status": "sh -c 'exit 3'"}


def commit(client: dict[str, str], group: str, topic: str) -> None:
    consumer = Consumer({**client, "group.id": group})
    consumer.commit(offsets=[TopicPartition(topic, 0, 0)], asynchronous=False)
    consumer.close()


def test_all_earlier_generations_are_deleted_unless_one_of_them_lives(client: dict[str, str], unique: str) -> None:
    connection = KafkaConnection(client)
    admin, application = ClusterAdmin(connection), chain(unique, lifecycle=STOPPED)
    first, second, running = unique, f"{unique}-g2", f"{unique}-g3"
    others = {f"{unique}-orders", f"{unique}-other-changelog"}
    for topic in (*others, *(t for name in (first, second, running) for t in internal_topics(name))):
        admin.ensure_topic(topic, 1, 1, {})
    groups = (first, second, running, f"{unique}-rescale-2", f"{unique}-rescale-3")
    for group in groups:
        commit(client, group, f"{unique}-orders")
    state = after(plan_of(application, 2), plan_of(application, 3))
    ControlTopic(connection, unique).update(lambda _: {"journal": state.journal, "generations": state.generations})
    before = admin.list_topics()

    with group_member(client, first, f"{unique}-orders"), pytest.raises(Refused, match="a running instance"):
        retire(application, connection, owner="test")
    assert admin.list_topics() == before
    admin.remove_members(first)

    expected = {name: internal_topics(name) for name in (first, second)}
    assert retire(application, connection, owner="test", dry_run=True) == expected
    assert admin.list_topics() == before
    assert retire(application, connection, owner="test") == expected
    assert before - admin.list_topics() == {*internal_topics(first), *internal_topics(second)}
    assert [group for group in groups if admin.committed(group)] == [running]
    generations = ControlTopic(connection, unique).read().generations
    assert generations is not None
    assert (generations.retired, generations.left) == ((first, second), {})
    assert retire(application, connection, owner="test") == {}
