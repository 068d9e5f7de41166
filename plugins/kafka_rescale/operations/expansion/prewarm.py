"""Pre-warming: green is started behind the warm-up gate, restores its stores, and is stopped again.

At the cutover, green then only has to restore the records that were copied since.

1. Stop whatever an earlier attempt left behind the gate, and fence every writer of the copies. From here on, the
   ends of green's topics move only if green itself writes. The journal keeps these ends.
2. Start green by ``start_gated``. The gate reports the restore consumer's position in every changelog. If an
   instance ends meanwhile, or joins late, the restored state is not on the disk where it is needed: begin anew.
   If blue's group uses the streams protocol, each instance restores the stores of all tasks. Then an instance may
   join late.
3. Stop green, and remove its members from its group, so that no start waits for a session timeout.
4. Prove that green committed nothing and wrote nothing. If it did, undo that: blue was never touched.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.cluster import GroupDescription
from kafka_rescale.core.control.journal import Journal, PartitionOffsets, Phase
from kafka_rescale.core.errors import Outage, Refused, TimedOut, UnsafeState
from kafka_rescale.core.expansion.prewarming import (
    GIVEN_UP,
    everything_shown,
    gate_group,
    restored_anew,
    shown_inputs,
)
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.admin.transactions import wait_until_complete
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import poll_until
from kafka_rescale.kafka.copy.reset import fence
from kafka_rescale.lifecycle.factory import gated_start
from kafka_rescale.lifecycle.instance import Instance
from kafka_rescale.operations.expansion.compaction import hold_compaction
from kafka_rescale.operations.expansion.rescale import Rescale, green
from kafka_rescale.operations.expansion.restoring import Changed, Restoring
from kafka_rescale.operations.expansion.restoring_everything import RestoringEverything
from kafka_rescale.operations.expansion.timings import Timings
from kafka_rescale.operations.expansion.warm_up_gate import assert_nothing_committed, close_gate

log = logging.getLogger(__name__)

Watch = Restoring | RestoringEverything

POLL_SECONDS = 1.0
TELL_SECONDS = 10.0
TRIES = 2
NOT_DECLARED = "the application file declares no `start_gated` in its `lifecycle:`"
NO_STORES = "the application has no store of its own to restore"


def prewarm(
    application: Application, connection: KafkaConnection, *, owner: str, local_state_deleted: bool = False
) -> dict[str, float] | None:
    """Let green restore its stores ahead of the cutover.

    The process may be killed at any instruction. Then this can be called again.

    :param owner: the run that holds the lease.
    :param local_state_deleted: whether a person says that no local state of an earlier pre-warming is left.
    :returns: seconds per part; None if green can't be pre-warmed. The log says why.
    :raises Refused: green can't be pre-warmed, and an earlier pre-warming has left local state.
    :raises Outage: green could not be started, or did not restore in time.
    :raises UnsafeState: green committed or wrote something. That has been undone, and blue was never touched.
    """
    rescale = Rescale.open(application, connection, owner)
    journal = rescale.journal()
    start = gated_start(application, rescale.lifecycle)
    if not journal.plan.changelogs:
        log.info("not pre-warmed: %s", NO_STORES)
        return None
    if start is None:
        _assert_cold(rescale, journal, deleted=local_state_deleted)
        log.warning("not pre-warmed, so green will restore its stores within the pause: %s", NOT_DECLARED)
        return None
    if journal.phase is not Phase.WARMING:
        log.info("nothing to pre-warm in phase %s", journal.phase)
        return dict(journal.prewarmed)
    _close(rescale, journal)
    timings = _restore(rescale, journal, start)
    rescale.advance(Phase.WARMING, prewarmed=dict(timings))
    log.info("green has restored its stores ahead of the pause: %s", timings)
    return dict(timings)


def _restore(rescale: Rescale, journal: Journal, start: Callable[[Instance], object]) -> Timings:
    """Let green restore its stores, and return the seconds per part. Its instances must stay the same to the end.

    :raises Outage: the members have changed in every try.
    """
    given_up = 0.0
    blue = rescale.admin.describe_group(journal.plan.blue)
    for left in reversed(range(TRIES)):
        timings = Timings({GIVEN_UP: round(given_up, 3)} if given_up else {})
        journal = _open_gate(rescale, journal, blue)
        began = time.monotonic()
        try:
            with timings.part("restore"):
                start(green(journal.plan))
                stable_at = _await_restored(rescale, journal, blue)
            timings.split("restore", "start", stable_at - began)
        except Changed as error:
            if not left:
                raise _not_the_same(journal.plan, str(error)) from None
            log.warning("%s: %s; it restores all its stores again", journal.plan.green, error)
        else:
            return timings
        finally:
            with timings.part("stop"):
                _close(rescale, journal)
        given_up += time.monotonic() - began
    raise AssertionError(TRIES)


def _not_the_same(plan: Plan, found: str) -> Outage:
    return Outage(
        f"pre-warming of {plan.green}",
        found=f"{found}, {TRIES} times",
        expected="the members and tasks of the first assignment until everything is restored",
        remedy="The restored state is not on the instances where the start will need it, so green would restore "
        "it again within the pause. Look in the instances' logs for why an instance has ended. If the instances "
        "are started one after the other, start all of them within the brokers' group.initial.rebalance.delay.ms. "
        "Then clear the `prewarm` task.",
    )


def _assert_cold(rescale: Rescale, journal: Journal, *, deleted: bool) -> None:
    """Refuse local state of an earlier pre-warming, unless a person says that it is deleted.

    This run does not pre-warm, so the gate will not delete that state. The copies may have been made anew since.
    Then they may lack the deletions of entries that this state still has.
    Green would restore on top of this state and keep the deleted entries. ``verify`` would not notice, because it
    reads only changelogs.
    """
    if not journal.was_warm or journal.phase is not Phase.WARMING:
        return
    if not deleted:
        raise Refused(
            f"local state of {journal.was_warm}",
            found="what an earlier pre-warming has restored, while this run does not pre-warm",
            expected="no such state, or a pre-warming: at its start, the gate deletes the state",
            remedy=f"Delete the directory `{journal.was_warm}` below `state.dir` of every instance, and trigger "
            "the expansion again with `local_state_deleted` on; its copies stay. Or declare `start_gated` again.",
        )
    rescale.advance(journal.phase, was_warm="", prewarmed={})


def _close(rescale: Rescale, journal: Journal) -> None:
    """Close the gate.

    :raises UnsafeState: green has done more than restore.
    """
    trespass = close_gate(rescale, journal)
    if trespass:
        raise UnsafeState(
            f"pre-warming of {journal.plan.green}",
            found=trespass,
            expected="neither offsets nor records of it: behind the gate it only restores its stores",
            remedy="Its offsets are deleted now, and the copies that it wrote to are empty. Blue was not touched. "
            "If the gate has refused a write, the application writes by itself, as a wall-clock punctuator does, "
            "and can't be pre-warmed: remove `start_gated`, delete its local state, and trigger the expansion "
            "again with `local_state_deleted` on. If the gate has refused nothing, let `start_gated` set "
            "default.client.supplier to the warm-up gate, and look for what the application may have written to "
            "output topics.",
        )


def _open_gate(rescale: Rescale, journal: Journal, blue: GroupDescription) -> Journal:
    """Prepare everything that the gate and the proof need, and note in the journal that green may run."""
    plan, admin = journal.plan, rescale.admin
    targets = [m.target for m in plan.moves]
    assert_nothing_committed(rescale, plan)
    fence(rescale.connection, plan, plan.moves)
    wait_until_complete(admin, targets)
    # Green restores later deletions only when it starts after the promotion. If compaction removed a deletion
    # before that, the entry would live on in green's store.
    hold_compaction(rescale, journal)
    ends = admin.end_offsets(targets, read_committed=False)
    journal = rescale.advance(Phase.WARMING, gate_ends=ends, prewarmed={}, was_warm=plan.green)
    texts = everything_shown(plan.inputs) if blue.protocol == "streams" else None
    admin.commit(gate_group(plan.green), shown_inputs(plan.inputs), texts)
    return journal


def _watch(admin: ClusterAdmin, plan: Plan, ends: PartitionOffsets, blue: GroupDescription) -> Watch:
    begins = admin.begin_offsets(ends)
    if again := restored_anew(plan, begins, ends):
        log.warning(
            "with exactly-once, tasks %s will restore again within the pause: some of their windowed stores are "
            "empty",
            again,
        )
    if blue.protocol == "streams":
        return RestoringEverything(admin, plan.green, begins, ends, blue.processes)
    return Restoring(admin, plan.green, begins, ends)


def _await_restored(rescale: Rescale, journal: Journal, blue: GroupDescription) -> float:
    """Wait until green has restored everything, and return when its instances were complete (monotonic clock)."""
    plan, admin, seconds = journal.plan, rescale.admin, rescale.application.max_restore_seconds
    ends: PartitionOffsets = {m.target: journal.gate_ends[m.target] for m in plan.changelogs}
    told = time.monotonic()
    watch = _watch(admin, plan, ends, blue)

    def restored() -> bool:
        nonlocal told
        decision = watch.look()
        # The group keeps the members of an ended instance until their session times out. So ask the deployment.
        _assert_alive(rescale, plan)
        if decision.is_open and watch.is_stable:
            return watch.all_live()
        if time.monotonic() - told > TELL_SECONDS:
            told = time.monotonic()
            log.info("restoring: %s", ", ".join(map(str, decision.holding[:5])) or "the group is not stable yet")
        return False

    poll_until(
        restored,
        seconds=seconds,
        otherwise=lambda: TimedOut(
            f"{plan.green} to restore its stores: its restore consumers have to commit the ends of its changelogs "
            f"in group {gate_group(plan.green)}",
            seconds=seconds,
            remedy="Look at its log. Is the warm-up gate of this version on its class path, and is it set as "
            "default.client.supplier? May the application use all groups whose names begin with that group's? "
            "If all of this is so, raise max_restore_seconds.",
        ),
        longest_pause=POLL_SECONDS,
    )
    return watch.first_at


def _assert_alive(rescale: Rescale, plan: Plan) -> None:
    if not rescale.lifecycle.is_running(green(plan)):
        raise Outage(
            f"pre-warming of {plan.green}",
            found="an application that has ended by itself",
            expected="an application that restores its stores behind the warm-up gate",
            remedy="Look at its log. If it says that group.protocol has to be classic, let `start_gated` set "
            "that. If it writes by itself, as a wall-clock punctuator does, it can't be pre-warmed: remove "
            "`start_gated`, delete its local state, and trigger the expansion again with `local_state_deleted` "
            "on.",
        )
