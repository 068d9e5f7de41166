"""After the promotion: grow the inputs, give green its offsets, start it. There is only forward."""

from __future__ import annotations

from contextlib import suppress

from kafka_rescale.core.control.journal import Journal, PartitionOffsets
from kafka_rescale.core.errors import RescaleError
from kafka_rescale.core.expansion.offset_metadata import start_metadata
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.operations.cutover.first_output import outputs_now, watch_first_output
from kafka_rescale.operations.cutover.persistence import start, state_of_pause
from kafka_rescale.operations.expansion import producers
from kafka_rescale.operations.expansion.rescale import Rescale, green
from kafka_rescale.operations.expansion.timings import Timings
from kafka_rescale.operations.modes.choice import mode_of


def start_green(rescale: Rescale, journal: Journal, timings: Timings) -> Journal:
    """Grow the inputs, commit the offsets that green starts from, start it and release the producers.

    The producers are released even if green does not start. Every step may be killed at any instruction and called
    again until it succeeds.

    :param journal: in phase ``PROMOTED``.
    :param timings: the parts so far.
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
                _commit_start(rescale, plan, journal.green_start)
            with timings.part("start"):
                start(rescale.lifecycle, green(plan), lambda: _starting(journal))
    except Exception:
        # The inputs have grown, so the producers may go on. This task still fails, as green is down.
        with suppress(RescaleError):
            producers.release(rescale)
        raise
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
    if not rescale.lifecycle.is_running(green(plan)):
        return False
    if not _lacking(rescale, plan, journal.green_start):
        return True
    # This step commits the offsets first, so something else has started green.
    mode_of(plan).stop_unprepared(rescale, plan)
    return False


def _measured(rescale: Rescale, journal: Journal, timings: Timings, outputs: PartitionOffsets) -> Timings:
    """Return the parts of the downtime, once green works.

    :param outputs: ends of the output topics before green was started.
    """
    parts = watch_first_output(rescale, journal, outputs)
    if "restore" not in parts:
        # Green may restore for hours. If it is not there at all, however, neither generation runs.
        rescale.assert_up(green(journal.plan))
    total = (now_ms() - journal.pause_started_ms) / 1000 - parts.pop("watched_in_vain", 0.0)
    return Timings({**timings, **parts, "total": round(total, 3)})


def _commit_start(rescale: Rescale, plan: Plan, start: PartitionOffsets) -> None:
    """Commit the offsets that green starts from, unless green works already (after a crash the step is repeated).

    Green's members are removed before anything is read. If this try freezes after that, another try may start
    green. This try then finds either all offsets committed, or members, and brokers refuse commits from outside a
    group that has members.
    """
    rescale.admin.remove_members(plan.green)
    wanted = _lacking(rescale, plan, start)
    if wanted:
        metadata = start_metadata(plan, rescale.admin.committed_metadata(plan.blue))
        rescale.admin.commit(plan.green, wanted, metadata)


def _lacking(rescale: Rescale, plan: Plan, start: PartitionOffsets) -> PartitionOffsets:
    """Return the offsets to start from that are ahead of the group's. An offset is never set back."""
    committed = rescale.admin.committed(plan.green)
    missing = {
        topic: {p: o for p, o in partitions.items() if committed.get(topic, {}).get(p, -1) < o}
        for topic, partitions in start.items()
    }
    return {topic: partitions for topic, partitions in missing.items() if partitions}
