"""The job beside the cutover: it keeps the lag near zero, and finishes the copies when blue has stopped."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from uuid import uuid4

from kafka_rescale.core.control.journal import Captured, Journal
from kafka_rescale.core.control.keys import Concern
from kafka_rescale.core.control.records import Change
from kafka_rescale.core.plan.plan import Move
from kafka_rescale.core.verify.proof import needs_proof
from kafka_rescale.core.verify.rolling_proof import RollingProof, compared_by
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.admin.transactions import wait_until_complete
from kafka_rescale.kafka.client.waiting import again_after_outage, now_ms
from kafka_rescale.kafka.control.journal_follower import JournalFollower
from kafka_rescale.kafka.copy.disk_watch import DiskWatch
from kafka_rescale.kafka.copy.harm import Harm
from kafka_rescale.kafka.copy.in_flight import prove
from kafka_rescale.kafka.copy.progress import CopyProgress
from kafka_rescale.kafka.copy.reset import restart_stale
from kafka_rescale.kafka.copy.units import divided, units_of
from kafka_rescale.kafka.reading.progress import Snapshot
from kafka_rescale.kafka.verify.rolling import RollingComparison
from kafka_rescale.spark.copy.pacer import Pacer
from kafka_rescale.spark.copy.tasks import FINAL, FINISHED, STOPPED, Follow
from kafka_rescale.spark.jobs.job import Job, say

BEAT_SECONDS = 2.0
PROVED_AT_ONCE = 8
"""How many repartition topics are proven at a time."""


def catch_up(job: Job) -> None:
    """Follow all changelogs. When the journal says so, copy the last delta and the records in flight.

    The job compares what it copies meanwhile. It compares the last delta and the records in flight before it is
    done.

    :raises UnsafeState: a record did not arrive as it was, or the attempt was rolled back before this began.
    :raises Fenced: another run holds the lease.
    """
    journal = job.own_journal()
    journal.assert_not_rolled_back()
    plan = journal.plan
    follow = Follow(job.connection, plan, journal.attempt, session=uuid4().hex)
    if _report_if_over(job, follow.verdict(journal)):
        return
    job.put("running")
    changelogs = plan.changelogs
    stale = restart_stale(
        job.connection, plan, changelogs, now_ms(), attempt=journal.attempt, prewarmed=bool(journal.was_warm)
    )
    for line in stale:
        say(line)
    spark = job.spark()
    units = units_of(plan.moves)
    # An application without internal topics has no units. A task with an empty list also waits for the journal.
    lists = divided(units, job.parallelism(spark)) or [[]]
    spread = spark.sparkContext.parallelize(lists, len(lists))
    # The first job of a driver loads what tells it of the end: 0.17 s instead of 0.07 s, within the pause.
    spread.count()
    with ExitStack() as at_end, JournalFollower(job.connection, plan.application, job.key) as follower:
        at_end.enter_context(_without_garbage_search())
        follower.first()
        progress = CopyProgress(job.connection, plan, plan.changelogs)
        harm = Harm(job.connection, plan, plan.blue, progress)
        disks = DiskWatch(job.connection, plan)
        pacer = Pacer(job, plan.fingerprint, follower, harm, len(lists), disks=disks)
        paced = replace(follow, paced=pacer.begin())
        beside = _Beside(job, journal, follow, follower, progress, pacer)
        at_end.callback(beside.end)
        verdicts: list[str] | None = job.run_beside(
            lambda: spread.mapPartitions(paced).collect(),
            lambda: job.report(beside.progress, beside.state_of, beside.newest),
            until=beside.is_taken_over,
            seconds=BEAT_SECONDS,
            is_paused=beside.is_paused,
        )
        if verdicts is None:
            # Without a result: the next one is that of the run that has taken over.
            raise job.superseded(follower.holder())
        journal = _captured(job, follow, follower)
        if STOPPED in verdicts or _report_if_over(job, follow.verdict(journal)):
            job.put("stopped", detail=f"attempt {follow.attempt}")
            return
        # Give signs of life meanwhile: this may take a while, and the cutover gives up if the job is silent.
        proofs = job.run_beside(lambda: beside.conclude(journal), lambda: None, is_paused=beside.is_paused)
        # Before the clients are closed: this is within the pause.
        _conclude(job, follow, proofs[0] if proofs else None)
    try:
        # Behind the word that the cutover waits for, because to count thousands of partitions takes long.
        job.put("done", progress.read(), detail=f"attempt {follow.attempt}")
    except Exception as error:
        # Whatever it is: a job that fails now would take back its word while the cutover reads it.
        say(f"{job.key}: the last delta is not counted: {error}")


def _captured(job: Job, follow: Follow, follower: JournalFollower) -> Journal:
    """Return the journal with blue's captured ends, or what it has become. The follower mostly has it already."""
    known = follower.latest()
    return known if known is not None and follow.verdict(known) == FINAL else again_after_outage(job.journal)


def _conclude(job: Job, follow: Follow, proof: RollingProof | None) -> None:
    """Say that everything is copied.

    :param proof: the proof up to the last record; None if the expansion needs none.
    :raises UnsafeState: the proof has found something that no person has accepted.
    """
    changes: Change = {Concern.ROLLING_PROOF: proof} if proof else {}
    # Read the acceptances only if there are violations, because this happens within the pause.
    if proof and proof.violations and (unaccepted := proof.unaccepted(job.control.read().acceptances)):
        job.put("running", records=changes)
        raise proof.refused(unaccepted)
    # Without this record the pause would end in a rollback, although everything is copied.
    again_after_outage(lambda: job.put("done", detail=f"attempt {follow.attempt}", records=changes))
    say(f"{job.key}: everything of attempt {follow.attempt} is in green")


@contextmanager
def _without_garbage_search() -> Iterator[None]:
    """Keep Python from looking for garbage in what is there already, within the pause: that is all imports."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


class _Beside:
    """The driver's work beside its tasks: it reports how near the copies are, and compares them."""

    def __init__(
        self,
        job: Job,
        journal: Journal,
        follow: Follow,
        follower: JournalFollower,
        progress: CopyProgress,
        pacer: Pacer,
    ) -> None:
        plan = journal.plan
        self._job, self._follow, self._follower, self._pacer = job, follow, follower, pacer
        self._units = units_of(plan.moves)
        self.progress = progress
        by = compared_by(job.arguments.run, job.arguments.attempt)
        self._rolling = RollingComparison(job.control, journal, by) if needs_proof(plan) else None
        if self._rolling:
            self._rolling.start()

    def state_of(self, snapshot: Snapshot) -> str:
        """Return ``ready`` when the copies are near, all tasks follow, and new records are being compared.

        Python workers take seconds to start. That must not become part of the pause. The run that waits for this
        job may begin a proof next, and the comparison has to continue from the fence of that proof on. A copy that
        a person has paused, or that rests for a disk, is not ready, because a cutover would not wait for it.
        """
        if self._pacer.is_paused:
            return "running"
        near = snapshot.within(self._job.arguments.acceptable_lag)
        near = near and self.progress.all_follow(self._follow.session, self._units)
        return "ready" if near and (self._rolling is None or self._rolling.has_begun) else "running"

    def newest(self, snapshot: Snapshot) -> Change:
        """Return the changes to write with a report: the rate, and the comparison since the last call."""
        found = self._rolling.take() if self._rolling else None
        rate = self._pacer.adapted(snapshot)
        self.progress.note_rest(self._pacer.is_paused)
        return {**rate, Concern.ROLLING_PROOF: found} if found else rate

    def is_paused(self) -> bool:
        """Return whether a cutover has begun. From then on, the comparison takes no rest."""
        if (paused := self._follower.is_paused()) and self._rolling:
            self._rolling.hurry()
        return paused

    def is_taken_over(self) -> bool:
        """Return whether another run goes on with this attempt. After its end, the tasks end by themselves."""
        # The holder first: a rollback writes both at once, and then the journal says that the attempt is over.
        taken = self._job.is_taken_over(self._follower.holder())
        return taken and not self._follow.verdict(self._follower.latest())

    def end(self) -> None:
        """End the comparison, however the job ends."""
        if self._rolling:
            self._rolling.end()

    def conclude(self, journal: Journal) -> list[RollingProof]:
        """Compare the last delta and the records in flight, when everything is copied.

        :returns: the proof up to the last record; nothing if the expansion needs none.
        :raises UnsafeState: records in flight did not arrive as they were.
        """
        captured = journal.captured
        assert captured is not None
        # The application is stopped, and most of this time is spent waiting for brokers. So wait in parallel.
        with ThreadPoolExecutor(PROVED_AT_ONCE) as pool:
            carried = pool.map(
                lambda move: again_after_outage(lambda: self._carried(move, captured)), journal.plan.repartitions
            )
            proofs = [self._rolling.finish(captured.changelog_ends)] if self._rolling else []
            for line in [*(proof.told for proof in proofs), *carried]:
                say(f"{self._job.key}: {line}")
            return proofs

    def _carried(self, move: Move, captured: Captured) -> str:
        wait_until_complete(ClusterAdmin(self._job.connection), [move.target])
        count = prove(self._job.connection, move, captured.in_flight[move.source])
        return f"{count:,} records in flight are in {move.target}, per key and in order"


def _report_if_over(job: Job, verdict: str) -> bool:
    """Return whether there is nothing to do (any more); after a rollback, write a result that says so."""
    if verdict == STOPPED:
        say(f"{job.key}: stopped, the attempt was rolled back")
        job.put("stopped")
    return verdict in {STOPPED, FINISHED}
