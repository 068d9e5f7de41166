"""Green behind the warm-up gate: it is started there, restores its stores, and is stopped again.

The gate reports the restore consumer's position in every changelog. If an instance ends meanwhile, or joins late,
the restored state is not on the disk where it is needed: begin anew. If blue's group uses the streams protocol,
each instance restores the stores of all tasks. Then an instance may join late.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from kafka_rescale.core.application.lifecycles import ManualLifecycle
from kafka_rescale.core.cluster import GroupDescription
from kafka_rescale.core.control.journal import Journal, PartitionOffsets, Phase
from kafka_rescale.core.errors import Fenced, Outage, TimedOut
from kafka_rescale.core.expansion.prewarming import (
    GIVEN_UP,
    gate_group,
    restored_anew,
    shown_inputs,
    shown_texts,
)
from kafka_rescale.core.plan.instances import green
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.waiting import poll_until
from kafka_rescale.lifecycle.factory import Start, gated_start
from kafka_rescale.operations.expansion.opening import Opening
from kafka_rescale.operations.expansion.rescale import Rescale
from kafka_rescale.operations.expansion.restoring import Changed, Restoring
from kafka_rescale.operations.expansion.restoring_everything import RestoringEverything
from kafka_rescale.operations.expansion.timings import Timings
from kafka_rescale.operations.expansion.warm_up_gate import close_or_refuse, cool_down

log = logging.getLogger(__name__)

Watch = Restoring | RestoringEverything

POLL_SECONDS = 1.0
TELL_SECONDS = 10.0
TRIES = 2
ROLLED = frozenset({Phase.ROLLING_BACK, Phase.ROLLED_BACK})


class GivenUp(Exception):
    """Nobody waits any more for what green would restore. It has been stopped, and what it has restored stays."""


@dataclass(frozen=True)
class Restored:
    """What came of it.

    :param timings: seconds per part.
    :param ends: the ends of green's topics when it was started: it has restored up to them.
    :param keeps: whether all instances can go on with their local state the next time.
    """

    timings: Timings
    ends: PartitionOffsets
    keeps: bool


def restore_behind_gate(
    opening: Opening,
    start: Start,
    open_gate: Callable[[], Journal],
    *,
    keep: bool,
    is_given_up: Callable[[], bool] = lambda: False,
) -> Restored:
    """Let green restore its stores. Its instances must stay the same to the end.

    :param opening: the right of this try to do so.
    :param start: starts green behind the gate.
    :param open_gate: prepares what the gate needs, and returns the journal, which says that green may run.
    :param keep: whether green goes on with its local state. Otherwise the gate deletes it.
    :param is_given_up: whether nobody waits for it any more; asked about once a second.
    :raises GivenUp: ``is_given_up`` has said so.
    :raises Outage: green could not be started, did not restore in time, or its members have changed in every try.
    :raises UnsafeState: green committed or wrote something. That has been undone, and blue was never touched.
    :raises Fenced: a later try has taken over. This one has stopped nothing since.
    """
    given_up = 0.0
    rescale, plan = opening.rescale, opening.assert_held().plan
    blue = rescale.admin.describe_group(plan.blue)
    for left in reversed(range(TRIES)):
        timings = Timings({GIVEN_UP: round(given_up, 3)} if given_up else {})
        if rescale.lifecycle.is_running(green(plan)):
            # The journal does not know of it: a start may have ended behind the stop of a rollback.
            opening.assert_held()
            cool_down(rescale, plan, opening)
        journal = open_gate()
        began = time.monotonic()
        try:
            # A process that has slept must neither tell the gate nor start anything beside a later try.
            opening.assert_held()
            _show_inputs(rescale, plan, blue, keep=keep)
            with timings.part("restore"):
                opening.assert_held()
                start(green(plan))
                watch = _await_restored(rescale, journal, blue, is_given_up)
            timings.split("restore", "start", watch.first_at - began)
        except Changed as error:
            if not left:
                raise _not_the_same(plan, str(error)) from None
            log.warning("%s: %s; it restores its stores again", plan.green, error)
        else:
            return Restored(timings, journal.gate_ends, watch.keeps)
        finally:
            with timings.part("stop"):
                _close(opening)
        given_up += time.monotonic() - began
    raise AssertionError(TRIES)


def _close(opening: Opening) -> None:
    """Stop green, and undo what it has done, if the right still holds.

    :raises Fenced: it does not. If that is because of a rollback, green is stopped: its start may have ended
        behind the rollback's own stop, and green owns nothing then.
    """
    rescale = opening.rescale
    try:
        journal = opening.assert_held()
    except Fenced:
        present = rescale.control.read().journal
        if present is not None and present.attempt == opening.attempt and present.phase in ROLLED:
            rescale.lifecycle.stop(green(present.plan))
        raise
    close_or_refuse(rescale, journal)


def unattended_start(rescale: Rescale) -> Start | None:
    """Return what starts green behind the gate; None if nothing does, or if a person would be asked at night."""
    if isinstance(rescale.application.lifecycle, ManualLifecycle):
        return None
    return gated_start(rescale.application, rescale.lifecycle)


def changelog_ends(rescale: Rescale, journal: Journal) -> PartitionOffsets:
    """Return the ends of green's changelogs, as its restore consumers see them."""
    return rescale.admin.end_offsets([move.target for move in journal.plan.changelogs])


def total(offsets: PartitionOffsets) -> int:
    """Return the sum of some offsets."""
    return sum(sum(by_partition.values()) for by_partition in offsets.values())


def _show_inputs(rescale: Rescale, plan: Plan, blue: GroupDescription, *, keep: bool) -> None:
    texts = shown_texts(plan.inputs, everything=blue.protocol == "streams", keep=keep)
    rescale.admin.commit(gate_group(plan.green), shown_inputs(plan.inputs), texts)


def _not_the_same(plan: Plan, found: str) -> Outage:
    return Outage(
        f"pre-warming of {plan.green}",
        found=f"{found}, {TRIES} times",
        expected="the members and tasks of the first assignment until everything is restored",
        remedy="The restored state is not on the instances where the start will need it, so green would restore "
        "it again within the pause. Look in the instances' logs for why an instance has ended. If the instances "
        "are started one after the other, start all of them within the brokers' group.initial.rebalance.delay.ms. "
        "If the run has failed by then, trigger the expansion again.",
    )


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


def _await_restored(
    rescale: Rescale, journal: Journal, blue: GroupDescription, is_given_up: Callable[[], bool]
) -> Watch:
    """Wait until green has restored everything, and return what was seen of its instances."""
    plan, admin, seconds = journal.plan, rescale.admin, rescale.application.max_restore_seconds
    ends: PartitionOffsets = {m.target: journal.gate_ends[m.target] for m in plan.changelogs}
    told = time.monotonic()
    watch = _watch(admin, plan, ends, blue)

    def restored() -> bool:
        nonlocal told
        decision = watch.look()
        # The group keeps the members of an ended instance until their session times out. So ask the deployment.
        _assert_alive(rescale, plan)
        if is_given_up():
            raise GivenUp
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
    return watch


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
