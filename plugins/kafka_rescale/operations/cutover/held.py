"""Held at the door: green's processes are started while blue runs, and wait for their start offsets.

1. The journal gets the number of a new pass. The pass itself is committed in the gate's group. Then the processes
   are started. They wait within ``new KafkaStreams``, so they are in no group and read nothing.
2. The pause begins once the processes tell that they wait. An application that can't start is found here.
3. The promotion's start offsets let the processes in; nothing else does.
4. A rollback takes the pass back before it stops the processes. A process without its pass ends by itself.
"""

from __future__ import annotations

import logging
import secrets
import time

from kafka_rescale.core.application.lifecycles import ManualLifecycle
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.errors import Outage, TimedOut, UnsafeState
from kafka_rescale.core.expansion.holding import Door, has_pass, pass_of, processes
from kafka_rescale.core.expansion.prewarming import gate_group
from kafka_rescale.core.plan.instances import green
from kafka_rescale.kafka.client.waiting import poll_until
from kafka_rescale.lifecycle.factory import held_start
from kafka_rescale.operations.expansion.opening import Opening
from kafka_rescale.operations.expansion.rescale import Rescale
from kafka_rescale.operations.expansion.warm_up_gate import assert_nothing_committed, cool_down

log = logging.getLogger(__name__)

DOOR_SECONDS = 600.0
"""How long green's processes may take until they wait; blue runs meanwhile."""
POLL_SECONDS = 0.5


def start_held(rescale: Rescale, journal: Journal) -> Journal:
    """Start green's processes so that they wait at the door, unless the application file has no ``start_held``.

    If this is called again, it goes on with the processes of the first call, because their pass is still there.

    :param journal: in phase ``WARMING``, and green in no group.
    :returns: the journal, with the pass.
    """
    start, plan = held_start(rescale.application, rescale.lifecycle), journal.plan
    if start is None:
        return send_away(rescale, journal)
    if not has_pass(plan, journal.held, rescale.admin.committed(gate_group(plan.green))):
        journal = send_away(rescale, journal)
        # The journal first: a rollback has to know which processes may be running.
        journal = rescale.advance(Phase.WARMING, held=1 + secrets.randbits(52))
        rescale.admin.delete_group(gate_group(plan.green))
        rescale.admin.commit(gate_group(plan.green), *pass_of(plan, journal.held))
    # Check the lease once more: a process that has slept since must not start anything beside another attempt.
    journal = rescale.advance(Phase.WARMING)
    start(green(plan))
    return journal


def await_at_door(rescale: Rescale, journal: Journal) -> None:
    """Wait until the processes tell that they wait at the door.

    :raises Outage: they have ended by themselves, or have not told it in time.
    """
    if not journal.held:
        return
    plan, admin = journal.plan, rescale.admin
    door = Door(journal.held, processes(admin.describe_group(plan.blue).members))
    began = time.monotonic()

    def is_complete() -> bool:
        door.look(admin.committed_metadata(gate_group(plan.green)), time.monotonic())
        assert_waiting(rescale, journal)
        return door.is_complete(time.monotonic())

    poll_until(
        is_complete,
        seconds=DOOR_SECONDS,
        otherwise=lambda: TimedOut(
            f"{plan.green} to wait at the door, as its processes tell in group {gate_group(plan.green)}",
            seconds=DOOR_SECONDS,
            remedy="Look at its log: is the gate's jar on its class path, and org.kafkarescale.HoldGate its "
            "default.client.supplier? Blue was not touched.",
        ),
        longest_pause=POLL_SECONDS,
    )
    waiting = door.waiting(time.monotonic())
    if waiting < door.expected:
        log.warning("only %s processes of %s wait, while %s has %s", waiting, plan.green, plan.blue, door.expected)
    log.info(
        "%s processes of %s wait at the door, %.1f s after their start; this time is not part of the pause",
        waiting,
        plan.green,
        time.monotonic() - began,
    )


def assert_waiting(rescale: Rescale, journal: Journal) -> None:
    """Check that the held processes have not ended by themselves.

    :raises Outage: they have ended.
    """
    if not journal.held or is_waiting(rescale, journal):
        return
    raise Outage(
        f"held start of {journal.plan.green}",
        found="an application that has ended by itself",
        expected="an application that waits at the door of its group until the promotion",
        remedy="Its log says why: a setting, a permission, a registry. It would not have started after the "
        f"promotion either; {journal.plan.blue} was not touched. Mend the cause, and trigger the expansion again.",
    )


def is_waiting(rescale: Rescale, journal: Journal) -> bool:
    """Whether held processes are there, as far as their deployment tells.

    Processes that a person starts can't be asked for, so this takes them to be there.
    """
    if not journal.held:
        return False
    if isinstance(rescale.application.lifecycle, ManualLifecycle):
        return True
    return rescale.lifecycle.is_running(green(journal.plan))


def assert_held_back(rescale: Rescale, journal: Journal) -> None:
    """Check right before the promotion that the held processes have not joined their group, nor got another pass.

    :raises UnsafeState: green would not start from where blue has stopped, or the pass is not this cutover's.
    """
    if not journal.held:
        return
    plan = journal.plan
    assert_nothing_committed(rescale, plan)
    members = rescale.admin.describe_group(plan.green).members
    is_ours = has_pass(plan, journal.held, rescale.admin.committed(gate_group(plan.green)))
    if members or not is_ours:
        raise UnsafeState(
            f"application {plan.green}",
            found=f"{len(members)} members of its group" if members else "another pass than this cutover's",
            expected="processes that wait at the door of their group",
            remedy="Something else has started it: find out what, and trigger the expansion again.",
        )


def send_away(rescale: Rescale, journal: Journal) -> Journal:
    """Take the pass back, and stop the held processes. Every step that may follow a killed step calls this.

    :param journal: before the promotion.
    :raises UnsafeState: a process is alive after ``stop``. Without its pass, it ends by itself.
    :raises Fenced: a later try has taken over, or another step has gone on.
    """
    if not journal.held:
        return journal
    opening, present = Opening.shown_by(rescale, journal), rescale.journal()
    if not present.held:
        return present
    opening.check(present)
    rescale.admin.delete_group(gate_group(journal.plan.green))
    cool_down(rescale, journal.plan, opening)
    return opening.advance(held=0)
