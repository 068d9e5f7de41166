"""A person says that a program has been stopped, so its group doesn't have to find out by itself.

The word often comes late: the task goes on as soon as the group is empty. Then the same group may have live
members again, or another generation may be the running one. So this acts only while a step waits for a stop.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass

from kafka_rescale.core.application.lifecycles import ManualLifecycle
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import InvalidInput, UnsafeState
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.admin.group_members import REJOIN_SECONDS
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.operations.cutover.start_green import lacking
from kafka_rescale.operations.expansion import producers

log = logging.getLogger(__name__)
_POLL_SECONDS = 0.5


@dataclass(frozen=True)
class Word:
    """What came of a person's word.

    :param group: the group that a step waits for; empty if nothing waits for a stop, and nothing was touched.
    :param removed: number of members that were removed; 0 if the group was empty already.
    :param told: the same in a sentence or two.
    """

    group: str
    removed: int
    told: str


def say_stopped(application: Application, connection: KafkaConnection) -> Word:
    """Remove the members of the instance set that a person was asked to stop, and check that no member comes back.

    When members of a classic Kafka Streams group close, they stay in it until ``session.timeout.ms`` is over. The
    task that waits for an empty group would wait as long. If a removed member still lives, it comes back with its
    next heartbeat, after a rebalance. If no step waits for a stop, this touches nothing.

    :raises InvalidInput: this application is not stopped by a person.
    :raises UnsafeState: an instance is alive.
    """
    if not isinstance(application.lifecycle, ManualLifecycle):
        raise InvalidInput(
            f"lifecycle of {application.application_id}",
            found=f"type {application.lifecycle.type}",
            expected="type manual, where a person stops the program",
            remedy="You need not say anything: the members are removed as soon as `stop` has returned.",
        )
    control, admin = ControlTopic(connection, application.application_id), ClusterAdmin(connection)
    state = control.read()
    group = _awaited(application, admin, state)
    if not group:
        return Word("", 0, _nothing(application, state.journal))
    members = admin.describe_group(group).members
    left = admin.remove_members(group) if members else ()
    deadline = time.monotonic() + REJOIN_SECONDS
    while members and not left and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
        left = admin.describe_group(group).members
    if left and _awaited(application, admin, state := control.read()) != group:
        # The step has gone on meanwhile, and may have started what is found here.
        return Word("", 0, _nothing(application, state.journal))
    if left:
        raise UnsafeState(
            f"group {group}",
            found=f"{len(left)} of its members again after they were removed ({', '.join(left[:3])})",
            expected="no member: every instance has ended",
            remedy="An instance is alive. If the log still waits for its stop, stop it, make sure that nothing "
            "starts it again, and say so once more. If the log has asked for its start since, let it run.",
        )
    log.info("group %s: %s members removed, and no member has come back", group, len(members))
    said = f"{len(members)} members removed, and no member has come back" if members else "it has no members"
    return Word(group, len(members), f"group {group}: {said}")


def _awaited(application: Application, admin: ClusterAdmin, state: ControlState) -> str:
    """Return the group of the instance set whose stop a step waits for; empty if none does.

    That step is one of this application's expansion, or of another application's that holds it as a producer.
    """
    journal = state.journal
    if journal is None or not journal.in_progress:
        name = application.application_id
        running = state.generations.running if state.generations else name
        return running if producers.holder(admin.connection, name) else ""
    plan = journal.plan
    if journal.phase is Phase.QUIESCING:
        return plan.blue if journal.stop_asked else ""
    # A rollback stops blue once more before it starts it: the cutover's stop may not have been reported. Only then
    # it asks for the stop of a green that waits behind a gate.
    if journal.phase is Phase.ROLLING_BACK and journal.stop_asked and not journal.stopped_again:
        return plan.blue
    if journal.phase in {Phase.WARMING, Phase.ROLLING_BACK}:
        return plan.green if journal.gate_ends or journal.held else ""
    # After the promotion, green runs. It is stopped only if something has started it ahead of its start offsets.
    if journal.phase is Phase.PROMOTED and lacking(admin, plan, journal.green_start):
        return plan.green
    return ""


def _nothing(application: Application, journal: Journal | None) -> str:
    seen = (
        "The task has seen that already: start and stop nothing before its log asks for it. No group was touched."
    )
    if journal is not None and journal.in_progress:
        at = f"its expansion is in phase {journal.told}, and no step waits for a stop"
        return f"{application.application_id}: {at}. {seen}"
    return (
        f"{application.application_id}: no expansion of it is in progress, and by the application files here no "
        f"cutover of another application is about to hold it. {seen} If the log of such a cutover waits for this "
        "stop, say so where that application's file is."
    )
