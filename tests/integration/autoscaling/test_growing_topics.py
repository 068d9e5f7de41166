"""KIP-878 on a real broker: a request for several topics may succeed only for some of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from kafka_rescale.core.errors import InvalidInput, UnsafeState
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection

from testbed.broker import EmbeddedBroker
from testbed.processes import wait_until
from tests.support.secured import authorizing_broker

pytestmark = pytest.mark.integration
TOPICS = ("a", "b", "c")
DESCRIBE, DESCRIBE_CONFIGS = AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS


class Recorded(ClusterAdmin):
    """Records its requests. The answers for the topics in ``lose`` get lost."""

    def __init__(self, connection: KafkaConnection, lose: set[str] | None = None) -> None:
        super().__init__(connection)
        self.requests: list[dict[str, int]] = []
        self.lose = lose or set()

    def _ask(self, targets: Mapping[str, int], **arguments: Any) -> dict[str, Any]:
        self.requests.append(dict(targets))
        answers = super()._ask(targets, **arguments)
        return {t: KafkaError(KafkaError._TIMED_OUT) if t in self.lose else a for t, a in answers.items()}


@pytest.fixture
def topics(client: dict[str, str], unique: str) -> list[str]:
    """Three topics of one partition."""
    return made(client, [f"{unique}-{short}" for short in TOPICS])


def made(client: Mapping[str, str], names: list[str]) -> list[str]:
    """Make topics of one partition."""
    admin = ClusterAdmin(KafkaConnection(dict(client)))
    for name in names:
        admin.ensure_topic(name, 1, 1, {})
    return names


def counts(client: Mapping[str, str], names: list[str]) -> list[int]:
    """The partition counts of the topics."""
    found = ClusterAdmin(KafkaConnection(dict(client))).describe_topics(names)
    return [found[name].partitions for name in names]


def test_what_has_grown_without_an_answer_is_found_and_not_asked_for_again(
    client: dict[str, str], topics: list[str]
) -> None:
    admin = Recorded(KafkaConnection(client), lose={topics[1]})
    assert admin.grow_topics(dict.fromkeys(topics, 4)) == dict.fromkeys(topics, 1)
    assert admin.requests == [dict.fromkeys(topics, 4)]
    assert counts(client, topics) == [4, 4, 4]


def test_a_topic_that_has_too_many_partitions_is_an_error_and_no_other_grows(
    client: dict[str, str], topics: list[str]
) -> None:
    admin = Recorded(KafkaConnection(client))
    admin.grow_topic(topics[1], 8)
    with pytest.raises(UnsafeState, match=r"found 8 partitions; expected at most 4.*No topic can shrink"):
        admin.grow_topics(dict.fromkeys(topics, 4))
    assert counts(client, topics) == [1, 8, 1]


@pytest.fixture
def locked_down(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    """A broker on which a user needs permissions."""
    with authorizing_broker(tmp_path / "broker") as running:
        yield running


def allow(root: Mapping[str, str], topics: list[str], *operations: AclOperation) -> None:
    """Allow the user ``grower`` some operations on topics."""
    admin = AdminClient(dict(root))
    literal, allowed = ResourcePatternType.LITERAL, AclPermissionType.ALLOW
    acls = [
        AclBinding(ResourceType.TOPIC, topic, literal, "User:grower", "*", operation, allowed)
        for topic in topics
        for operation in operations
    ]
    for future in admin.create_acls(acls).values():
        future.result(20)


def may_grow(admin: ClusterAdmin, topic: str) -> bool:
    """Whether the user of a connection may grow a topic.

    A permission takes effect a moment after it was granted.
    """
    try:
        admin.validate_growth({topic: 4})
    except InvalidInput:
        return False
    return True


def restricted(broker: EmbeddedBroker) -> tuple[dict[str, str], Recorded]:
    """Three topics, and a user who may see all of them but grow only two."""
    root = broker.client_config("root")
    allow(root, made(root, [*TOPICS]), DESCRIBE, DESCRIBE_CONFIGS)
    allow(root, ["a", "c"], AclOperation.ALTER)
    return root, Recorded(KafkaConnection(broker.client_config("grower")))


def test_what_the_brokers_would_refuse_is_named_and_nothing_grows(locked_down: EmbeddedBroker) -> None:
    root, admin = restricted(locked_down)
    with pytest.raises(
        InvalidInput, match="growth of topic 'b' to 4 partitions: found TOPIC_AUTHORIZATION_FAILED"
    ):
        admin.validate_growth(dict.fromkeys(TOPICS, 4))
    allow(root, ["b"], AclOperation.ALTER)
    wait_until(lambda: may_grow(admin, "b"), timeout=30, what="the right to grow b")
    admin.validate_growth(dict.fromkeys(TOPICS, 4))
    assert counts(root, [*TOPICS]) == [1, 1, 1]


def test_a_request_that_fails_for_one_topic_is_repeated_for_that_one_alone(locked_down: EmbeddedBroker) -> None:
    root, admin = restricted(locked_down)
    topics = [*TOPICS]
    with pytest.raises(InvalidInput, match=r"topic 'b': found TOPIC_AUTHORIZATION_FAILED.*; a, c grown"):
        admin.grow_topics(dict.fromkeys(topics, 4))
    assert counts(root, topics) == [4, 1, 4]

    allow(root, ["b"], AclOperation.ALTER)
    other = ClusterAdmin(admin.connection)
    wait_until(lambda: may_grow(other, "b"), timeout=30, what="the right to grow b")
    assert admin.grow_topics(dict.fromkeys(topics, 4)) == {"b": 1}
    assert admin.requests == [dict.fromkeys(topics, 4), {"b": 4}]
    assert counts(root, topics) == [4, 4, 4]
