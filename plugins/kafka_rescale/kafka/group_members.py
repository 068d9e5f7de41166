"""Members that are gone but still counted, of every protocol that Kafka Streams can speak.

A Kafka Streams instance of the classic protocol doesn't leave its group when it closes, so the next start waits
for the session timeout (45 s by default); one of the streams protocol does, unless it was killed. confluent-kafka
has no call to remove members, hence kafka-python.
"""

from __future__ import annotations

from typing import Any

from kafka.admin import KafkaAdminClient, MemberToRemove
from kafka.errors import KafkaError

from kafka_rescale.core.cluster import GroupDescription
from kafka_rescale.core.errors import InvalidInput, Outage, UnsafeState
from kafka_rescale.kafka import streams_groups
from kafka_rescale.kafka.connection import KafkaConnection

STREAMS = "streams"
REASON = "kafka-rescale: the instance has been stopped"
TIMEOUT_MS = 10_000


def leave_group(
    connection: KafkaConnection, group: str, members: tuple[str, ...], protocol: str = "classic"
) -> None:
    """Let members leave a group at once, whether or not their process still lives.

    Members that the coordinator doesn't know, or can't remove, stay as they are: describe the group afterwards.

    :param members: member ids; for static members (``group.instance.id``) too.
    :param protocol: of the group.
    :raises Outage: the coordinator doesn't answer.
    """
    if not members:
        return
    try:
        with admin_client(connection) as client:
            if protocol == STREAMS:
                streams_groups.leave(client, group, members)
            else:
                leaving = [MemberToRemove(member_id=m, reason=REASON) for m in members]
                client.remove_group_members(group, leaving)
    except KafkaError as error:
        raise _failed(f"members of group {group!r}", error) from None


def describe_unseen(connection: KafkaConnection, group: str) -> GroupDescription:
    """Describe a group of which confluent-kafka says that it is dead.

    It says so of groups of the streams (KIP-1071) and share protocols, too, whatever lives in them.

    :returns: state ``Dead`` and no members for a group that doesn't exist.
    :raises UnsafeState: a group of another kind, whose members can't be seen here.
    :raises Outage: the brokers don't answer.
    """
    try:
        with admin_client(connection) as client:
            listed = {g["group_id"]: str(g.get("group_type") or "classic") for g in client.list_groups()}
            protocol = listed.get(group, "classic")
            if protocol == STREAMS:
                return streams_groups.describe(client, group)
    except KafkaError as error:
        raise _failed(f"group {group!r}", error) from None
    if protocol not in {"classic", "consumer"}:
        raise UnsafeState(
            f"group {group!r}",
            found=f"a group of the {protocol} protocol",
            expected="a group of the classic, the consumer or the streams protocol",
            remedy="Choose another application.id, or delete that group.",
        )
    return GroupDescription(group_id=group, state="Dead")


def admin_client(connection: KafkaConnection) -> Any:
    """Return kafka-python's admin client, for what confluent-kafka can't ask."""
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
