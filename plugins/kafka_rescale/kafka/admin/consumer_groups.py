"""Groups of the classic and of the consumer protocol (KIP-848), by kafka-python.

kafka-python finds coordinators, encodes and sends. It does not know how to describe a group of the consumer
protocol; the messages are described in ``messages/``.
"""

from __future__ import annotations

import struct
from contextlib import suppress
from typing import Any

from kafka.errors import GroupIdNotFoundError, for_code
from kafka.protocol.admin import DeleteGroupsRequest, DescribeGroupsRequest
from kafka.protocol.api_message import ApiMessage
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment

from kafka_rescale.core.cluster import GroupDescription, TopicPartition

MESSAGES = "kafka_rescale.kafka.admin.messages"
DEAD_IS_AN_ANSWER = 5
"""The newest version of DescribeGroups that answers ``Dead`` for a group that doesn't exist, and tells the rights
on it. Later versions answer with an error (KIP-1043)."""


class ConsumerGroupDescribeRequest(ApiMessage, load_json=MESSAGES):  # type: ignore[call-arg]
    """Asks for state and members."""


class ConsumerGroupDescribeResponse(ApiMessage, load_json=MESSAGES):  # type: ignore[call-arg]
    """State and members."""


def describe_classic(client: Any, group: str) -> GroupDescription:
    """Return the state and the members of a group of the classic protocol.

    :param client: kafka-python's admin client.
    :returns: state ``Dead`` and no members for a group that doesn't exist, or that has another protocol.
    :raises KafkaError: the coordinator answers with this error.
    """
    found = _classic(client, group)
    # A member has no assignment while the group rebalances.
    assigned = {m.member_id: _assigned(m.member_assignment) for m in found.members}
    return GroupDescription(
        group_id=group, state=found.group_state, members=tuple(sorted(assigned)), assigned=assigned
    )


def describe(client: Any, group: str) -> GroupDescription:
    """Return the state and the members of a group of the consumer protocol.

    :param client: kafka-python's admin client.
    :returns: state ``Dead`` and no members for a group that doesn't exist.
    :raises KafkaError: the coordinator answers with this error.
    """
    found = described(client, group, ConsumerGroupDescribeRequest)
    if found is None:
        return GroupDescription(group_id=group, state="Dead")
    assigned = {
        m.member_id: frozenset((of.topic_name, p) for of in m.assignment.topic_partitions for p in of.partitions)
        for m in found.members
    }
    return GroupDescription(
        group_id=group, state=found.group_state, members=tuple(sorted(assigned)), assigned=assigned
    )


def operations(client: Any, group: str) -> frozenset[int]:
    """Return the codes of the operations on a group that are allowed (KIP-430).

    :param client: kafka-python's admin client.
    :raises KafkaError: the coordinator answers with this error, such as that describing is not allowed.
    """
    return frozenset(_classic(client, group).authorized_operations)


def delete(client: Any, group: str) -> None:
    """Delete a group.

    :param client: kafka-python's admin client.
    :raises KafkaError: the coordinator answers with this error, such as that the group doesn't exist.
    """
    raise_unless_done(ask_coordinator(client, group, DeleteGroupsRequest(groups_names=[group])).results[0])


def ask_coordinator(client: Any, group: str, request: Any) -> Any:
    """Return the answer of a group's coordinator.

    :param client: kafka-python's admin client.
    """
    return client._manager.run(_ask, client, group, request)


def described(client: Any, group: str, request: type[ApiMessage]) -> Any:
    """Return what the coordinator tells of a group; None if there is no such group.

    :param client: kafka-python's admin client.
    :param request: the request for the group's protocol.
    :raises KafkaError: the coordinator answers with this error.
    """
    asked = request(group_ids=[group], include_authorized_operations=False)
    found = ask_coordinator(client, group, asked).groups[0]
    if found.error_code == GroupIdNotFoundError.errno:
        return None
    raise_unless_done(found)
    return found


def raise_unless_done(answer: Any) -> None:
    """Raise the error of an answer.

    :raises KafkaError: the answer has this error.
    """
    if answer.error_code:
        raise for_code(answer.error_code)(getattr(answer, "error_message", None))


async def _ask(client: Any, group: str, request: Any) -> Any:
    coordinator = await client._find_coordinator_id(group)
    return await client._manager.send(request, node_id=coordinator)


def _classic(client: Any, group: str) -> Any:
    request = DescribeGroupsRequest(
        groups=[group], include_authorized_operations=True, max_version=DEAD_IS_AN_ANSWER
    )
    found = ask_coordinator(client, group, request).groups[0]
    raise_unless_done(found)
    return found


def _assigned(assignment: bytes | None) -> frozenset[TopicPartition]:
    if not assignment:
        return frozenset()
    # Members of another kind, such as workers of Kafka Connect, have other bytes there. They count all the same.
    with suppress(ValueError, TypeError, struct.error):
        found = ConsumerProtocolAssignment.decode(assignment).partitions()
        return frozenset((at.topic, at.partition) for at in found)
    return frozenset()
