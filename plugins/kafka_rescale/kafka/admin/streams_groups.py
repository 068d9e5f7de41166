"""Groups of the streams protocol (KIP-1071), which neither confluent-kafka nor kafka-python knows.

kafka-python finds coordinators, encodes and sends; the messages are described in ``messages/``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kafka.protocol.api_message import ApiMessage

from kafka_rescale.core.cluster import GroupDescription
from kafka_rescale.kafka.admin.consumer_groups import MESSAGES, ask_coordinator, described, raise_unless_done

LEAVE = -1
"""The member epoch with which a member of the streams protocol leaves."""

GROUP_ID_NOT_FOUND, UNKNOWN_MEMBER_ID = 69, 25


class StreamsGroupDescribeRequest(ApiMessage, load_json=MESSAGES):  # type: ignore[call-arg]
    """Asks for state and members."""


class StreamsGroupDescribeResponse(ApiMessage, load_json=MESSAGES):  # type: ignore[call-arg]
    """State and members."""


class StreamsGroupHeartbeatRequest(ApiMessage, load_json=MESSAGES):  # type: ignore[call-arg]
    """The message that a member sends regularly, and when it leaves."""


class StreamsGroupHeartbeatResponse(ApiMessage, load_json=MESSAGES):  # type: ignore[call-arg]
    """The coordinator's answer."""


def describe(client: Any, group: str) -> GroupDescription:
    """Return the state and the members of a group of the streams protocol.

    :param client: kafka-python's admin client.
    :returns: state ``Dead`` and no members for a group that doesn't exist.
    :raises KafkaError: the coordinator answers with this error.
    """
    found = described(client, group, StreamsGroupDescribeRequest)
    if found is None:
        return GroupDescription(group_id=group, state="Dead")
    members = tuple(sorted(member.member_id for member in found.members))
    processes = len({member.process_id for member in found.members})
    return GroupDescription(
        group_id=group, state=found.group_state, members=members, protocol="streams", processes=processes
    )


def leave(client: Any, group: str, members: Iterable[str]) -> None:
    """Let members leave a group of the streams protocol, whether or not their process still lives.

    The protocol has no request for an administrator. This sends the last heartbeat that the member itself would
    send.

    :param client: kafka-python's admin client.
    :param members: member ids. It is no error if a member has left meanwhile.
    :raises KafkaError: the coordinator answers with this error.
    """
    for member in members:
        request = StreamsGroupHeartbeatRequest(group_id=group, member_id=member, member_epoch=LEAVE)
        answer = ask_coordinator(client, group, request)
        if answer.error_code not in {GROUP_ID_NOT_FOUND, UNKNOWN_MEMBER_ID}:
            raise_unless_done(answer)
