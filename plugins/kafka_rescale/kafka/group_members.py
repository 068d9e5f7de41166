"""Removing members that are gone but still counted.

A Kafka Streams instance of the classic protocol doesn't leave its group when it closes, so the next start waits
for the session timeout (45 s by default). confluent-kafka has no call for it, hence kafka-python's.
"""

from __future__ import annotations

from typing import Any

from kafka.admin import KafkaAdminClient, MemberToRemove
from kafka.errors import KafkaError

from kafka_rescale.core.errors import InvalidInput, Outage
from kafka_rescale.kafka.connection import KafkaConnection

REASON = "kafka-rescale: the instance has been stopped"
TIMEOUT_MS = 10_000


def leave_group(connection: KafkaConnection, group: str, members: tuple[str, ...]) -> None:
    """Let members leave a group at once, whether or not their process still lives.

    Members that the coordinator doesn't know, or can't remove, stay as they are: describe the group afterwards.

    :param members: member ids.
    :raises Outage: the coordinator doesn't answer.
    """
    if not members:
        return
    try:
        with _client(connection) as client:
            client.remove_group_members(group, [MemberToRemove(member_id=m, reason=REASON) for m in members])
    except KafkaError as error:
        raise _failed(f"members of group {group!r}", error) from None


def group_type(connection: KafkaConnection, group: str) -> str | None:
    """Return ``classic``, ``consumer``, ``streams`` or ``share``; None if the brokers list no such group.

    :raises Outage: the brokers don't answer.
    """
    try:
        with _client(connection) as client:
            listed = client.list_groups()
    except KafkaError as error:
        raise _failed(f"group {group!r}", error) from None
    return next((str(g.get("group_type") or "classic") for g in listed if g["group_id"] == group), None)


def _client(connection: KafkaConnection) -> Any:
    timeouts = {"request_timeout_ms": TIMEOUT_MS, "bootstrap_timeout_ms": TIMEOUT_MS}
    return KafkaAdminClient(client_id="kafka-rescale", **timeouts, **connection.kafka_python())


def _failed(what: str, error: KafkaError) -> InvalidInput | Outage:
    found = type(error).__name__
    if "Authentication" in found or "Authorization" in found:
        return InvalidInput(
            what,
            found=found,
            expected="credentials and ACLs that allow it",
            remedy="Correct the Kafka connection, or grant READ on the group.",
        )
    return Outage(what, found=found, expected="an answer of the group's coordinator", remedy="Run again.")
