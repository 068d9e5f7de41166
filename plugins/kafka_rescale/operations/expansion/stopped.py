"""A person says that a program has been stopped, so its group doesn't have to find out by itself."""

from __future__ import annotations

import logging
import time

from kafka_rescale.core.application.lifecycles import ManualLifecycle
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import InvalidInput, Refused, UnsafeState
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.admin.group_members import REJOIN_SECONDS
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.control_topic import ControlTopic

log = logging.getLogger(__name__)
_POLL_SECONDS = 0.5


def say_stopped(application: Application, connection: KafkaConnection) -> tuple[str, int]:
    """Remove the members of the instance set that a person was asked to stop, and check that no member comes back.

    When members of a classic Kafka Streams group close, they stay in it until ``session.timeout.ms`` is over. The
    task that waits for an empty group would wait as long. If a removed member still lives, it comes back with its
    next heartbeat, after a rebalance.

    :returns: the group, and how many members were removed; 0 if it was empty already.
    :raises InvalidInput: this application is not stopped by a person.
    :raises Refused: an expansion is in progress, and no stop has been asked for.
    :raises UnsafeState: an instance is alive.
    """
    if not isinstance(application.lifecycle, ManualLifecycle):
        raise InvalidInput(
            f"lifecycle of {application.application_id}",
            found=f"type {application.lifecycle.type}",
            expected="type manual, where a person stops the program",
            remedy="You need not say anything: the members are removed as soon as `stop` has returned.",
        )
    group = _asked_to_stop(application, ControlTopic(connection, application.application_id).read())
    admin = ClusterAdmin(connection)
    members = admin.describe_group(group).members
    left = admin.remove_members(group) if members else ()
    deadline = time.monotonic() + REJOIN_SECONDS
    while members and not left and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
        left = admin.describe_group(group).members
    if left:
        raise UnsafeState(
            f"group {group}",
            found=f"{len(left)} of its members again after they were removed ({', '.join(left[:3])})",
            expected="no member: every instance has ended",
            remedy="An instance is alive. Stop it, make sure that nothing starts it again, and say so once more.",
        )
    log.info("group %s: %s members removed, and no member has come back", group, len(members))
    return group, len(members)


def _asked_to_stop(application: Application, state: ControlState) -> str:
    """Return the group of the instance set that a step waits for, or that another application holds."""
    journal = state.journal
    if journal is None or not journal.in_progress:
        return state.generations.running if state.generations else application.application_id
    if journal.stop_asked and _waits_for_blue(journal):
        return journal.plan.blue
    if journal.gate_ends or journal.held or journal.phase in {Phase.ROLLING_BACK, Phase.PROMOTED}:
        return journal.plan.green
    raise Refused(
        f"application {application.application_id!r}",
        found=f"an expansion in phase {journal.told}, which has asked for no stop",
        expected="an expansion whose log says PLEASE STOP",
        remedy="Let the program run until the log asks for it; if it is down, start it.",
    )


def _waits_for_blue(journal: Journal) -> bool:
    # A rollback stops blue once more before it starts it: the cutover's stop may not have been reported. If green
    # is still behind the gate then, the rollback asks for green's stop after it has started blue.
    if journal.phase is Phase.ROLLING_BACK:
        return not journal.gate_ends
    return journal.phase is Phase.QUIESCING
