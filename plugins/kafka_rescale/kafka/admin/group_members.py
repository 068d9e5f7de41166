"""Members that are gone but still count, for every protocol that Kafka Streams can speak.

With the classic protocol, a Kafka Streams instance doesn't leave its group when it closes, so the next start waits
for the session timeout (45 s by default). With the streams protocol it leaves, unless it was killed.
confluent-kafka has no call to remove members, so this uses kafka-python.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import confluent_kafka as librdkafka
from kafka.admin import KafkaAdminClient, MemberToRemove
from kafka.errors import (
    GroupIdNotFoundError,
    IllegalArgumentError,
    IllegalStateError,
    KafkaConfigurationError,
    KafkaError,
    UnknownMemberIdError,
)

from kafka_rescale.core.cluster import GroupDescription
from kafka_rescale.core.errors import ClusterOutage, InvalidInput, RescaleError, UnsafeState
from kafka_rescale.kafka.admin import streams_groups
from kafka_rescale.kafka.admin.calls import SETTLE_SECONDS
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.error_class import ErrorClass
from kafka_rescale.kafka.client.error_classes import OUTAGES, class_of_code
from kafka_rescale.kafka.client.failures import not_let_in, to_error
from kafka_rescale.kafka.client.waiting import poll_until

STREAMS = "streams"
REASON = "kafka-rescale: the instance has been stopped"
FIRST_SECONDS, REQUEST_SECONDS = 2.5, 10.0
"""How long the first client has for an answer, and how long later clients have at most."""

REJOIN_SECONDS = 6.0
"""How soon a removed member that still lives is certainly back. It comes back with its next heartbeat: after 3 s
in the classic protocol, after 5 s in the other protocols."""

T = TypeVar("T")


def leave_group(
    connection: KafkaConnection, group: str, members: tuple[str, ...], protocol: str = "classic"
) -> None:
    """Let members leave a group at once, whether or not their process still lives.

    A member that the coordinator doesn't know, or can't remove, stays as it is. Describe the group afterwards to
    see which members are left.

    :param members: member ids. Static members (``group.instance.id``) are named by their member ids too.
    :param protocol: the group's protocol.
    :raises ClusterOutage: the coordinator doesn't answer.
    """
    if not members:
        return

    def remove(client: Any) -> None:
        if protocol == STREAMS:
            streams_groups.leave(client, group, members)
        else:
            leaving = [MemberToRemove(member_id=m, reason=REASON) for m in members]
            # These errors say that the member is gone already, as wanted.
            with suppress(GroupIdNotFoundError, UnknownMemberIdError):
                client.remove_group_members(group, leaving)

    asked(connection, f"members of group {group!r}", remove)


def describe_unseen(connection: KafkaConnection, group: str) -> GroupDescription:
    """Describe a group that confluent-kafka reports as dead.

    It also reports groups of the streams (KIP-1071) and share protocols as dead, even if members live in them.

    :returns: state ``Dead`` and no members for a group that doesn't exist.
    :raises UnsafeState: the group is of another kind, whose members can't be seen here.
    :raises ClusterOutage: the brokers don't answer.
    """

    def describe(client: Any) -> GroupDescription:
        protocol = _listed(client).get(group, "classic")
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


def all_groups(connection: KafkaConnection) -> set[str]:
    """Return the names of all groups that the connection may describe.

    :raises ClusterOutage: the brokers don't answer.
    """
    return set(asked(connection, "the list of groups", _listed))


def _listed(client: Any) -> dict[str, str]:
    """Return the protocol of each group, by its name."""
    return {g["group_id"]: str(g.get("group_type") or "classic") for g in client.list_groups()}


def admin_client(connection: KafkaConnection, seconds: float = REQUEST_SECONDS) -> Any:
    """Return kafka-python's admin client, for what confluent-kafka can't ask.

    :param seconds: how long it waits for an answer.
    """
    timeout_ms = round(seconds * 1000)
    timeouts = {"request_timeout_ms": timeout_ms, "bootstrap_timeout_ms": timeout_ms}
    settings = connection.kafka_python()
    if (provider := settings.get("sasl_oauth_token_provider")) is not None:
        provider.token()  # within the client a failure would only show as a timeout
    return KafkaAdminClient(client_id="kafka-rescale", **timeouts, **settings)


def asked(connection: KafkaConnection, what: str, ask: Callable[[Any], T]) -> T:
    """Return the answer to requests that may be repeated; repeat them while brokers are away.

    Each time a new client asks. It looks for a living broker anew, and waits twice as long.

    :param ask: gets kafka-python's admin client.
    :raises InvalidInput: a permission is missing.
    :raises UnsafeState: the brokers refuse it for another reason.
    :raises ClusterOutage: the brokers don't answer.
    """
    answers: list[T] = []
    failures: list[KafkaError] = []

    def answered() -> bool:
        seconds = min(REQUEST_SECONDS, FIRST_SECONDS * 2 ** len(failures))
        try:
            with admin_client(connection, seconds) as client:
                answers.append(ask(client))
        except KafkaError as error:
            if not is_passing(error):
                raise refused(what, error, "READ on the group") from None
            failures.append(error)
        return bool(answers)

    poll_until(
        answered,
        seconds=SETTLE_SECONDS,
        otherwise=lambda: outage(what, failures[-1], "the group's coordinator"),
    )
    return answers[0]


def is_passing(error: KafkaError) -> bool:
    """Return whether the same request may succeed later.

    An error without a code is kafka-python's own. It may pass, unless it says that this program uses the library
    wrongly.
    """
    if _is_forbidden(error):
        return False
    code = getattr(error, "errno", None)
    if code is None:
        return not isinstance(error, IllegalArgumentError | IllegalStateError | KafkaConfigurationError)
    return bool(error.retriable) or class_of_code(code, repeatable=False) in OUTAGES


def refused(what: str, error: KafkaError, right: str) -> RescaleError:
    """Return the error to raise if the same request can't succeed.

    :param what: what was asked for.
    :param right: the permission that the request needs.
    """
    if _is_forbidden(error):
        return InvalidInput(
            what,
            found=type(error).__name__,
            expected="ACLs that allow it",
            remedy=f"Grant {right}, or correct the Kafka connection.",
        )
    code = getattr(error, "errno", None)
    return to_error(librdkafka.KafkaError(librdkafka.KafkaError._INVALID_ARG if code is None else code), what)


def _is_forbidden(error: KafkaError) -> bool:
    return "Authorization" in type(error).__name__


def outage(what: str, error: KafkaError, asked_of: str) -> ClusterOutage:
    """Return the error to raise if the same request may succeed later.

    :param what: what was asked for.
    :param asked_of: the broker that should have answered.
    """
    code, found = getattr(error, "errno", None), type(error).__name__
    if code is not None and class_of_code(code, repeatable=False) is ErrorClass.CREDENTIALS:
        return not_let_in(what, found)
    return ClusterOutage(what, found=found, expected=f"an answer of {asked_of}", remedy="Run again.")
