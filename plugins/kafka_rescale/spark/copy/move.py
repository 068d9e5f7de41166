"""In place: records move to their new partitions and leave a tombstone; one job moves stage by stage.

The application is down meanwhile, and starting a driver and its workers takes longer than most moves. So driver
and workers start before the application is stopped, and wait until the journal tells them to move.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from kafka_rescale.core.control.journal import Captured, Journal, Phase
from kafka_rescale.core.errors import Outage, UnsafeState
from kafka_rescale.core.plan.plan import Move, Plan
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.admin.transactions import wait_until_complete
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.control.journal_follower import JournalFollower
from kafka_rescale.kafka.copy.in_flight import prove, starts_and_ends
from kafka_rescale.kafka.copy.progress import CopyProgress
from kafka_rescale.kafka.copy.reset import fence
from kafka_rescale.kafka.copy.units import buckets_of, units_of
from kafka_rescale.kafka.reading.progress import Snapshot
from kafka_rescale.spark.copy.tasks import CopyToEnds
from kafka_rescale.spark.jobs.job import SIGN_SECONDS, Job, say

if TYPE_CHECKING:
    from pyspark import SparkContext

log = logging.getLogger("kafka_rescale.job")

BEAT_SECONDS = 2.0
POLL_SECONDS = 0.05
BREATH_SECONDS = 0.05


def move(job: Job) -> None:
    """Be ready before the application is stopped; then move the keys of all stages and the records in flight.

    The most downstream stage comes first. Every stage leaves a result of its own, ``move/<stage>``. If an
    attempt was killed, the next attempt recognises finished stages by their positions, and continues there.

    :raises UnsafeState: the application runs although its topics are growing, or the attempt was rolled back.
    :raises Fenced: another run holds the lease.
    """
    journal = job.own_journal()
    _require_in_place(journal)
    journal.assert_not_rolled_back()
    if not journal.plan.growing:
        say(f"{job.key}: nothing of {journal.plan.application} has to be moved")
        job.put("done", detail=_attempt(journal))
        return
    job.put("running")
    with JournalFollower(job.connection, journal.plan.application) as follower:
        follower.first()
        due = _Waiting(job, journal, follower).until_due()
    if due is None or due.captured is None:
        job.put("stopped", detail=_attempt(journal))
        say(f"{job.key}: stopped, the attempt was rolled back")
        return
    if due.phase is not Phase.PROMOTED or due.green_start:
        say(f"{job.key}: nothing to move in phase {due.phase}")
        job.put("done", detail=_attempt(due))
        return
    _require_stopped(job, due.plan)
    context = job.spark().sparkContext
    stages = [stage for stage in due.plan.stages if stage.growing]
    moved = [_move(job.part(s.index), context, due, due.captured, s.growing) for s in stages]
    job.put("done", Snapshot.of_all(moved), detail=_attempt(due))


class _Waiting:
    """Waits beside the cutover and keeps the workers up."""

    def __init__(self, job: Job, journal: Journal, follower: JournalFollower) -> None:
        self._job, self._begun, self._follower = job, journal, follower
        self._admin = ClusterAdmin(job.connection)
        self._beaten, self._signed, self._slots = 0.0, 0.0, 0

    def until_due(self) -> Journal | None:
        """Return the journal when the topics have grown or nothing is left to do; None after a rollback.

        :raises Fenced: another run has taken over. Its own job moves.
        """
        while True:
            # The holder first: a rollback writes both at once, and then the journal says that the attempt is over.
            holder = self._follower.holder()
            if (journal := self._latest()) is None:
                return None
            if self._job.is_taken_over(holder):
                raise self._job.superseded(holder)
            try:
                if journal.is_promoted and (journal.phase is not Phase.PROMOTED or self._have_grown(journal.plan)):
                    return journal
                self._live(journal)
            except Outage as outage:
                # No harm is done yet: the cutover also waits for the brokers.
                log.warning("no report: %s", outage)
            time.sleep(POLL_SECONDS)

    def _live(self, journal: Journal) -> None:
        if time.monotonic() - self._beaten > BEAT_SECONDS:
            self._beat(journal)
        elif journal.is_paused and time.monotonic() - self._signed > SIGN_SECONDS:
            # Before its point of no return, the cutover ends the pause if a job is silent.
            self._job.sign()
            self._signed = time.monotonic()

    def _latest(self) -> Journal | None:
        journal = self._follower.latest()
        if journal is None or journal.plan.fingerprint != self._begun.plan.fingerprint:
            return None
        over = journal.phase in {Phase.ROLLING_BACK, Phase.ROLLED_BACK} or journal.attempt != self._begun.attempt
        return None if over else journal

    def _have_grown(self, plan: Plan) -> bool:
        wanted = {m.target: m.target_partitions for m in plan.growing}
        found = self._admin.end_offsets(wanted)
        return all(len(found[topic]) >= count for topic, count in wanted.items())

    def _beat(self, journal: Journal) -> None:
        """Keep one worker per slot busy, because idle workers end, and give a sign of life."""
        spark = self._job.spark()
        self._slots = self._slots or self._job.parallelism(spark)
        spark.sparkContext.parallelize(range(self._slots), self._slots).mapPartitions(_breathe).collect()
        state = "ready" if journal.phase is Phase.WARMING else "running"
        self._job.put(state, Snapshot((), now_ms(), 0.0))
        self._beaten = self._signed = time.monotonic()


def _breathe(_: Iterable[int]) -> Iterator[int]:
    """Occupy a worker, which has imported this module by then, for so long that every slot needs a worker."""
    time.sleep(BREATH_SECONDS)
    yield 0


def _attempt(journal: Journal) -> str:
    return f"attempt {journal.attempt}"


def _move(
    job: Job, context: SparkContext, journal: Journal, captured: Captured, moves: Sequence[Move]
) -> Snapshot:
    """Move one stage; one task per producer.

    Tasks read up to the ends that the topics had when the application stopped. So they never read the records that
    they append themselves.
    """
    if job.key in job.control.read().results:
        # If an attempt was killed within a commit, brokers don't tell its positions until it is fenced.
        fence(job.connection, journal.plan, moves)
    job.put("running")
    units = units_of(moves)
    ends = {u.source: captured.ends[u.source[0]][u.source[1]] for u in units}
    starts, _ = starts_and_ends(captured, [u.source for u in units if not u.is_changelog])
    task = CopyToEnds(job.connection, journal.plan, ends, now_ms(), starts, exactly=True)
    progress = CopyProgress(job.connection, journal.plan, moves, fixed_ends=ends, begins=starts)
    job.report(progress, lambda _: "running")
    buckets = buckets_of(units)
    lists = context.parallelize(buckets, len(buckets))
    job.run_reported(lambda: lists.mapPartitions(task).collect(), progress)
    wait_until_complete(ClusterAdmin(job.connection), [m.target for m in moves])
    for carried in (m for m in moves if m.source in captured.in_flight):
        count = prove(job.connection, carried, captured.in_flight[carried.source])
        say(f"{job.key}: {count:,} records in flight are in {carried.target}, per key and in order")
    snapshot = progress.read()
    say(f"{job.key} done: {snapshot}")
    job.put("done", snapshot)
    return snapshot


def _require_in_place(journal: Journal) -> None:
    if not journal.plan.is_in_place:
        raise UnsafeState(
            f"expansion of {journal.plan.application}",
            found=f"an expansion with mode blue_green, in phase {journal.phase}",
            expected="an expansion in place",
            remedy="Trigger the expansion again, so that all of its tasks have the same mode.",
        )


def _require_stopped(job: Job, plan: Plan) -> None:
    if ClusterAdmin(job.connection).describe_group(plan.green).is_live:
        raise UnsafeState(
            f"group {plan.green}",
            found="members, while its topics are being re-partitioned",
            expected="a stopped application",
            remedy="Stop the application, and whatever has started it. Then run this again.",
        )
