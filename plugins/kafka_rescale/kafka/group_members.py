"""Members that are gone but still counted, of every protocol that Kafka Streams can speak.

A Kafka Streams instance of the classic protocol doesn't leave its group when it closes, so the next start waits
for the session timeout (45 s by default); one of the streams protocol does, unless it was killed. confluent-kafka
has no call to remove members, hence kafka-python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from kafka.admin import KafkaAdminClient, MemberToRemove
from kafka.errors import KafkaError

from kafka_rescale.core.cluster import GroupDescription
from kafka_rescale.core.errors import InvalidInput, Outage, UnsafeState
from kafka_rescale.kafka import streams_groups
from kafka_rescale.kafka.admin_calls import SETTLE_SECONDS
from kafka_rescale.kafka.connection import KafkaConnection
from kafka_rescale.kafka.waiting import poll_until

STREAMS = "streams"
REASON = "kafka-rescale: the instance has been stopped"
TIMEOUT_MS = 10_000
REJOIN_SECONDS = 6.0
"""A member that was removed comes back with its next heartbeat: of the classic protocol after 3 s, else 5 s."""

T = TypeVar("T")


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

    def remove(client: Any) -> None:
        if protocol == STREAMS:
            streams_groups.leave(client, group, members)
        else:
            leaving = [MemberToRemove(member_id=m, reason=REASON) for m in members]
            client.remove_group_members(group, leaving)

    asked(connection, f"members of group {group!r}", remove)


def describe_unseen(connection: KafkaConnection, group: str) -> GroupDescription:
    """Describe a group of which confluent-kafka says that it is dead.

    It says so of groups of the streams (KIP-1071) and share protocols, too, whatever lives in them.

    :returns: state ``Dead`` and no members for a group that doesn't exist.
    :raises UnsafeState: a group of another kind, whose members can't be seen here.
    :raises Outage: the brokers don't answer.
    """

    def describe(client: Any) -> GroupDescription:
        listed = {g["group_id"]: str(g.get("group_type") or "classic") for g in client.list_groups()}
        protocol = listed.get(group, "classic")
        if protocol == STREAMS:
            return streams_groups.describe(client, group)
        if protocol not in {"classic", "consumer"}:
            raise UnsafeState(
                f"group {group!r}",
                found=f"a group of the {protocol} protocol",
                expected="a group of the classic, the consumer or the streams protocol",
                remedy="Choose another application.id, or delete that group.",
            )
        return GroupDescription(group_id=group, state="Dead")

    return asked(connection, f"group {group!r}", describe)


def admin_client(connection: KafkaConnection) -> Any:
    """Return kafka-python's admin client, for what confluent-kafka can't ask."""
    timeouts = {"request_timeout_ms": TIMEOUT_MS, "bootstrap_timeout_ms": TIMEOUT_MS}
    settings = connection.kafka_python()
    if (provider := settings.get("sasl_oauth_token_provider")) is not None:
        provider.token()  # within the client a failure would only show as a timeout
    return KafkaAdminClient(client_id="kafka-rescale", **timeouts, **settings)


def asked(connection: KafkaConnection, what: str, ask: Callable[[Any], T]) -> T:
    """Return the answer to requests that may be repeated; asked again while an error says so: coordinators move.

    :param ask: is given kafka-python's admin client.
    :raises InvalidInput: the brokers don't let us.
    :raises Outage: they don't answer.
    """
    answers: list[T] = []
    failures: list[KafkaError] = []

    def answered() -> bool:
        try:
            with admin_client(connection) as client:
                answers.append(ask(client))
        except KafkaError as error:
            if not error.retriable:
                raise _failed(what, error) from None
            failures.append(error)
        return bool(answers)

    poll_until(answered, seconds=SETTLE_SECONDS, otherwise=lambda: _failed(what, failures[-1]))
    return answers[0]


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
