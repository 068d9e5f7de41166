"""After the promotion: grow the inputs, give green its offsets, let it in or start it. There is no way back."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress

from kafka_rescale.core.control.journal import Journal, PartitionOffsets
from kafka_rescale.core.errors import RescaleError, UnsafeState
from kafka_rescale.core.expansion.offset_metadata import OffsetTexts, start_metadata
from kafka_rescale.core.plan.instances import green
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.operations.cutover.first_output import outputs_now, watch_first_output
from kafka_rescale.operations.cutover.held import is_waiting
from kafka_rescale.operations.cutover.persistence import start, state_of_pause
from kafka_rescale.operations.expansion import producers
from kafka_rescale.operations.expansion.rescale import Rescale
from kafka_rescale.operations.expansion.timings import Timings
from kafka_rescale.operations.modes.choice import mode_of

log = logging.getLogger(__name__)

REVIVE_SECONDS, JOIN_SECONDS = 1.0, 30.0
"""How often to look whether the processes that were let in still run, and how long they may take to join."""


def start_green(rescale: Rescale, journal: Journal, timings: Timings, note_start: Callable[[], object]) -> Journal:
    """Grow the inputs, commit the offsets that green starts from, start it and release the producers.

    The producers are released even if green does not start. Every step may be killed at any instruction and called
    again until it succeeds.

    :param journal: in phase ``PROMOTED``.
    :param timings: the parts so far.
    :param note_start: called once green was started, or let in.
    :returns: the journal in phase ``STARTED``, with the parts of the downtime.
    :raises Outage: green has not come up.
    :raises UnsafeState: blue has come back beside it.
    """
    plan = journal.plan
    outputs = outputs_now(rescale)
    running = _is_started(rescale, journal)
    with timings.part("grow"):
        rescale.admin.grow_topics({i.topic: i.target for i in plan.inputs if i.grows})
    try:
        if not running:
            with timings.part("offsets"):
                _commit_start(rescale, journal)
            if is_waiting(rescale, journal):
                log.info("%s is let in: its processes have waited at the door", plan.green)
            else:
                with timings.part("start"):
                    start(rescale.lifecycle, green(plan), lambda: _starting(journal))
    except Exception:
        # The inputs have grown, so the producers may go on. This task still fails, as green is down.
        with suppress(RescaleError):
            producers.release(rescale)
        raise
    note_start()
    producers.release(rescale)
    return mode_of(plan).confirm_start(
        rescale,
        journal,
        timings,
        was_running=running,
        measure=lambda: _measured(rescale, journal, timings, outputs),
    )


def _starting(journal: Journal) -> str:
    return state_of_pause(journal.plan.application, journal, f"{journal.plan.green} to be started")


def _is_started(rescale: Rescale, journal: Journal) -> bool:
    """Whether an earlier try has started green. If green runs without its offsets, stop it."""
    plan = journal.plan
    is_lacking = bool(lacking(rescale.admin, plan, journal.green_start))
    if journal.held and is_lacking and not rescale.admin.describe_group(plan.green).is_live:
        return False  # it waits at the door for these offsets; whether it still waits is asked once they are there
    if not rescale.lifecycle.is_running(green(plan)):
        return False
    # Asked once more: another try of the task may have committed them since, and started green. Green must not be
    # stopped then, because that try may have ended.
    if not is_lacking or not lacking(rescale.admin, plan, journal.green_start):
        return True
    # This step commits the offsets first, so something else has started green.
    mode_of(plan).stop_unprepared(rescale, plan)
    return False


def _measured(rescale: Rescale, journal: Journal, timings: Timings, outputs: PartitionOffsets) -> Timings:
    """Return the parts of the downtime, once green works.

    :param outputs: ends of the output topics before green was started.
    """
    parts = watch_first_output(rescale, journal, outputs, _reviving(rescale, journal, timings))
    part = "release" if journal.held and "start" not in timings else "start"
    timings = Timings({**timings, part: round(timings.get(part, 0.0) + parts.pop("joined", 0.0), 3)})
    if "restore" not in parts:
        # Green may restore for hours. If it is not there at all, however, neither generation runs.
        rescale.assert_up(green(journal.plan))
    total = (now_ms() - journal.pause_started_ms) / 1000 - parts.pop("watched_in_vain", 0.0)
    return Timings({**timings, **parts, "total": round(total, 3)})


def _reviving(rescale: Rescale, journal: Journal, timings: Timings) -> Callable[[], None]:
    """Return a function that starts green if its held processes have ended, or have not joined in time."""
    asked_at = joined_by = time.monotonic()

    def revive() -> None:
        nonlocal asked_at, joined_by
        now = time.monotonic()
        if not journal.held or now - asked_at < REVIVE_SECONDS:
            return
        asked_at = now
        if is_waiting(rescale, journal) and now - joined_by < JOIN_SECONDS:
            return
        joined_by = now
        log.error(
            "the held processes of %s have not joined their group: calling start again. It leaves what runs: "
            "if processes hang, stop them by hand, and the next call starts others",
            journal.plan.green,
        )
        with timings.part("start"):
            start(rescale.lifecycle, green(journal.plan), lambda: _starting(journal))

    return revive


def _commit_start(rescale: Rescale, journal: Journal) -> None:
    """Commit the offsets that green starts from, unless green works already (after a crash the step is repeated).

    Green's members are removed before anything is read. If this try freezes after that, another try may start
    green. This try then finds either all offsets committed, or members, and brokers refuse commits from outside a
    group that has members.
    """
    plan = journal.plan
    rescale.admin.remove_members(plan.green)
    metadata = start_metadata(plan, rescale.admin.committed_metadata(plan.blue))
    committed = rescale.admin.committed(plan.green)
    missing = _behind(committed, journal.green_start)
    others = _with_other_metadata(rescale.admin, journal, committed, metadata)
    if not missing and not others:
        return
    wanted = {t: {**missing.get(t, {}), **others.get(t, {})} for t in {**missing, **others}}
    try:
        rescale.admin.commit(plan.green, wanted, metadata)
    except UnsafeState:
        # A group with members works: it has gone on from these offsets. Held processes that were let in may have
        # done so before this looked at them.
        if missing and (not journal.held or lacking(rescale.admin, plan, journal.green_start)):
            raise


def _with_other_metadata(
    admin: ClusterAdmin, journal: Journal, committed: PartitionOffsets, metadata: OffsetTexts
) -> PartitionOffsets:
    """Return the offsets to start from at which the group is, but with other metadata beside them.

    In place, most old partitions start from where they are. But such a partition may get keys of another one that
    has emitted fewer windows: with its own, later times, the windows of these keys would be left out. An offset
    that has gone on is left out, so its times are never set back.

    :param committed: the group's offsets.
    :param metadata: what the offsets to start from have beside them.
    """
    at_start = {
        topic: {p: o for p, o in partitions.items() if committed.get(topic, {}).get(p) == o}
        for topic, partitions in journal.green_start.items()
    }
    if not any(at_start.values()):
        return {}
    present = admin.committed_metadata(journal.plan.green)
    found = {
        topic: {
            p: o
            for p, o in partitions.items()
            if present.get(topic, {}).get(p, "") != metadata.get(topic, {}).get(p, "")
        }
        for topic, partitions in at_start.items()
    }
    return {topic: partitions for topic, partitions in found.items() if partitions}


def lacking(admin: ClusterAdmin, plan: Plan, start: PartitionOffsets) -> PartitionOffsets:
    """Return the offsets to start from that are ahead of the group's. An offset is never set back."""
    return _behind(admin.committed(plan.green), start)


def _behind(committed: PartitionOffsets, start: PartitionOffsets) -> PartitionOffsets:
    missing = {
        topic: {p: o for p, o in partitions.items() if committed.get(topic, {}).get(p, -1) < o}
        for topic, partitions in start.items()
    }
    return {topic: partitions for topic, partitions in missing.items() if partitions}
