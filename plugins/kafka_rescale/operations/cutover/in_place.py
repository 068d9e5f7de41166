"""Growing an application's own topics between its stop and its start, within one cutover.

1. The internal topics grow, the most downstream stage first. They can't shrink again. The promotion has happened
   by now, so the cutover can only go forward.
2. The ``move`` job has been ready since before the stop. It copies the records that move, leaves tombstones where
   they were, and writes the records in flight again.
3. The cutover proves that everything was moved, and notes the offsets that the application has to start from.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Mapping

from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.errors import Outage, UnsafeState
from kafka_rescale.core.verify.start_offsets import carried_starts, input_starts
from kafka_rescale.kafka.admin.topic_reader import assert_all_listed
from kafka_rescale.kafka.admin.transactions import wait_until_complete
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.copy.reset import fence
from kafka_rescale.operations.cutover.copies import is_copied
from kafka_rescale.operations.cutover.first_output import all_outputs_now
from kafka_rescale.operations.cutover.growing import assert_still_stopped, assert_untouched, grow_own_topics
from kafka_rescale.operations.cutover.jobs_beside import OVER
from kafka_rescale.operations.cutover.persistence import TELL_SECONDS, state_of_pause
from kafka_rescale.operations.expansion.rescale import Rescale
from kafka_rescale.operations.expansion.timings import Timings

log = logging.getLogger(__name__)

SILENT_SECONDS = 300.0
"""Airflow tries a job that has died again within a minute; if not, a person has to clear it."""
POLL_SECONDS = 0.1


def grow_and_move(rescale: Rescale, journal: Journal, timings: Timings) -> Journal:
    """Grow the application's topics and let ``move`` move their records.

    This may be killed at any instruction and called again.

    :param journal: in phase ``PROMOTED``.
    :param timings: the parts so far; this adds its own.
    :returns: the journal with the ends of the topics, and the offsets to start from.
    :raises Outage: the ``move`` job has been silent for too long.
    :raises UnsafeState: a record has not been moved, or the application has run meanwhile.
    """
    if journal.green_start:
        return journal
    assert_still_stopped(rescale, journal)
    # Before the first growth it can still be told what the application has written.
    assert_untouched(rescale, journal)
    with timings.part("expand"):
        grow_own_topics(rescale.admin, journal.plan)
    with timings.part("move"):
        if journal.plan.growing:
            _await_moved(rescale, journal)
        return _record_ends(rescale, journal, timings)


def _await_moved(rescale: Rescale, journal: Journal) -> None:
    """Wait for as long as the job takes: only its silence is an error. If the job has failed, log that at once."""
    with rescale.control.follow() as follower:
        (heard, last), since, told = follower.heard("move"), time.monotonic(), -math.inf
        while not is_copied(last, journal):
            if time.monotonic() - since > SILENT_SECONDS:
                # This read fails if the cluster does not answer: then the silence is the cluster's, not the job's.
                rescale.control.read()
                raise _silent(journal, last)
            if last is not None and last.state in OVER and time.monotonic() - told > TELL_SECONDS:
                _tell_over(journal, last)
                told = time.monotonic()
            time.sleep(POLL_SECONDS)
            before, (heard, last) = heard, follower.heard("move")
            if heard != before:
                since = time.monotonic()


def _silent(journal: Journal, last: JobResult | None) -> Outage:
    return Outage(
        f"move job of {journal.plan.application}",
        found=f"nothing of it for {SILENT_SECONDS:.0f} s ({last.state if last else 'no result'})",
        expected="a job at work: the application is down until the job has moved the records",
        remedy="CLEAR THE MOVE TASK NOW, then this one; its log says why it has failed.",
    )


def _tell_over(journal: Journal, last: JobResult) -> None:
    waited = state_of_pause(journal.plan.application, journal, "the move job to move the records")
    remedy = "CLEAR THE MOVE TASK NOW, unless Airflow tries it again by itself."
    log.error("%s; it has %s: %s. %s", waited, last.state, last.detail, remedy)


def _record_ends(rescale: Rescale, journal: Journal, timings: Mapping[str, float]) -> Journal:
    """Note the ends of all topics and the offsets to start from: once, before the application can write again.

    :returns: the journal. If another try has noted both meanwhile, its journal.
    """
    plan, admin = journal.plan, rescale.admin
    assert journal.captured is not None
    assert_still_stopped(rescale, journal)
    assert_untouched(rescale, journal)
    # A worker of a killed attempt may still be alive. The fence keeps it from committing anything from now on.
    fence(rescale.connection, plan, plan.moves)
    _assert_moved(rescale, journal)
    targets = [m.target for m in plan.moves]
    ends = wait_until_complete(admin, targets)
    assert_all_listed(ends, {m.target: m.target_partitions for m in plan.moves})
    outputs = all_outputs_now(rescale)
    starts = input_starts(plan.inputs, journal.captured.committed)
    start = {**starts, **carried_starts(plan.repartitions, journal.captured)}

    def recorded(present: Journal) -> Journal:
        # If this try was frozen, another try may have started the application, which writes behind its ends.
        if present.green_start:
            return present
        return present.advanced(
            Phase.PROMOTED,
            now_ms=now_ms(),
            green_ends=ends,
            output_ends=outputs,
            green_start=start,
            timings=dict(timings),
        )

    return rescale.change(recorded)


def _assert_moved(rescale: Rescale, journal: Journal) -> None:
    assert journal.captured is not None
    positions, ends = rescale.admin.committed(journal.plan.copy_group), journal.captured.ends
    left = [
        f"{move.source}-{p}"
        for stage in journal.plan.stages
        for move in stage.growing
        for p, end in ends[move.source].items()
        if positions.get(move.source, {}).get(p, -1) < end
    ]
    if left:
        raise UnsafeState(
            f"expansion of {journal.plan.application}",
            found=f"records that have not been moved, in {', '.join(left)}",
            expected="every partition moved to its end",
            remedy="Clear the move task, then this one.",
        )
