"""Groups and their members, for every protocol that Kafka Streams can speak.

With the classic protocol, a Kafka Streams instance doesn't leave its group when it closes, so the next start waits
for the session timeout (45 s by default). With the streams protocol it leaves, unless it was killed.

What an administrator asks the coordinator of a group is asked by kafka-python. confluent-kafka has no call to
remove members. And its librdkafka (2.16, and before) kills the process if the coordinator has moved, or if the
connection to it breaks as such a request is sent: ``rd_kafka_enq_once_del_source_return: Assertion `eonce->refcnt
> 0'``. Its issues 3663, 4605 and 5040 are about that, and its pull request 5397 has the reason. It has ended a
cutover within the pause.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import confluent_kafka as librdkafka
from kafka.admin import MemberToRemove
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
from kafka_rescale.kafka.admin import consumer_groups, streams_groups
from kafka_rescale.kafka.admin.calls import SETTLE_SECONDS
from kafka_rescale.kafka.admin.kept_clients import (
    FIRST_SECONDS,
    REQUEST_SECONDS,
    admin_client,
    kept_client,
)
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.error_class import ErrorClass
from kafka_rescale.kafka.client.error_classes import OUTAGES, class_of_code
from kafka_rescale.kafka.client.failures import not_let_in, to_error
from kafka_rescale.kafka.client.waiting import poll_until

CLASSIC, CONSUMER, STREAMS = "classic", "consumer", "streams"
"""Protocols of groups, as brokers name them."""
DEAD = "Dead"
READ_GROUP, DESCRIBE_GROUP = "READ on the group", "DESCRIBE on the group"
REASON = "kafka-rescale: the instance has been stopped"
REJOIN_SECONDS = 6.0
"""How soon a removed member that still lives is certainly back. It comes back with its next heartbeat: after 3 s
in the classic protocol, after 5 s in the other protocols."""

T = TypeVar("T")


def leave_group(
    connection: KafkaConnection, group: str, members: tuple[str, ...], protocol: str = CLASSIC
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

    asked(connection, f"members of group {group!r}", remove, of_coordinator=True)


def describe_group(connection: KafkaConnection, group: str, *, seconds: float | None = None) -> GroupDescription:
    """Describe a group of the classic, the consumer or the streams protocol.

    :param seconds: how long a coordinator that doesn't answer is asked again; None for as long as others.
    :returns: state ``Dead`` and no members for a group that doesn't exist.
    :raises UnsafeState: the group is of another kind, whose members can't be seen here.
    :raises ClusterOutage: the coordinator doesn't answer.
    """

    def describe(client: Any) -> GroupDescription:
        found = consumer_groups.describe_classic(client, group)
        if found.state != DEAD:
            return found
        # A group of another protocol looks dead to this request.
        protocol = _protocol_of(client, group)
        if protocol == STREAMS:
            return streams_groups.describe(client, group)
        if protocol == CONSUMER:
            return consumer_groups.describe(client, group)
        if protocol != CLASSIC:
            raise UnsafeState(
                f"group {group!r}",
                found=f"a group of the {protocol} protocol",
                expected="a group of the classic, the consumer or the streams protocol",
                remedy="Choose another application.id, or delete that group.",
            )
        return found

    return asked(connection, f"group {group!r}", describe, DESCRIBE_GROUP, of_coordinator=True, seconds=seconds)


def delete_group(connection: KafkaConnection, group: str) -> None:
    """Delete a group and its offsets, if it exists.

    :raises UnsafeState: the group has members.
    :raises ClusterOutage: the coordinator doesn't answer.
    """

    def delete(client: Any) -> None:
        # If the first answer is lost, the second one says that there is no such group.
        with suppress(GroupIdNotFoundError):
            consumer_groups.delete(client, group)

    asked(connection, f"group {group!r}", delete, "DELETE on the group", of_coordinator=True)


def all_groups(connection: KafkaConnection) -> set[str]:
    """Return the names of all groups that the connection may describe.

    :raises ClusterOutage: the brokers don't answer.
    """
    return set(asked(connection, "the list of groups", _listed))


def _listed(client: Any, broker_ids: list[int] | None = None) -> dict[str, str]:
    """Return the protocol of each group, by its name.

    :param broker_ids: the brokers to ask; None asks all of them.
    """
    return {g["group_id"]: str(g.get("group_type") or CLASSIC) for g in client.list_groups(broker_ids)}


def _protocol_of(client: Any, group: str) -> str:
    """Return the protocol of a group; the classic one if the group doesn't exist.

    Its coordinator lists the group. No other broker is asked, because that broker may be frozen.
    """
    return _listed(client, [client._manager.run(client._find_coordinator_id, group)]).get(group, CLASSIC)


def asked(
    connection: KafkaConnection,
    what: str,
    ask: Callable[[Any], T],
    right: str = READ_GROUP,
    *,
    of_coordinator: bool = False,
    seconds: float | None = None,
) -> T:
    """Return the answer to requests that may be repeated; repeat them while brokers are away.

    Each time a new client asks. It looks for a living broker anew, and waits twice as long.

    :param ask: gets kafka-python's admin client.
    :param right: the permission that the requests need.
    :param of_coordinator: whether only a group's coordinator is asked. Then a client that has answered before asks
        first. It may not know all of the brokers that are up.
    :param seconds: how long requests are repeated; None for as long as others.
    :raises InvalidInput: a permission is missing.
    :raises UnsafeState: the brokers refuse it for another reason.
    :raises ClusterOutage: the brokers don't answer.
    """
    answers: list[T] = []
    failures: list[KafkaError] = []

    def answered() -> bool:
        timeout = min(REQUEST_SECONDS, FIRST_SECONDS * 2 ** len(failures))
        try:
            is_kept = of_coordinator and not failures
            with kept_client(connection) if is_kept else admin_client(connection, timeout) as client:
                answers.append(ask(client))
        except KafkaError as error:
            if not is_passing(error):
                raise refused(what, error, right) from None
            failures.append(error)
        return bool(answers)

    poll_until(
        answered,
        seconds=SETTLE_SECONDS if seconds is None else seconds,
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
