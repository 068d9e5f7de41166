"""The bridge of ``repartitioned`` inputs: it copies from blue's stop offsets on, until old topics are silent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import uuid4

from kafka_rescale.core.control.bridge import Bridge, Reading, bridging
from kafka_rescale.core.control.journal import Journal, PartitionOffsets
from kafka_rescale.core.control.keys import Concern
from kafka_rescale.core.control.records import Change
from kafka_rescale.core.errors import Outage
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.control.journal_follower import JournalFollower
from kafka_rescale.kafka.copy.bridging import ends_of_bridged, ids_of_bridged, prepare, verdict_now
from kafka_rescale.kafka.copy.harm import Harm
from kafka_rescale.kafka.copy.progress import CopyProgress
from kafka_rescale.kafka.copy.units import CopyUnit, divided, units_of
from kafka_rescale.kafka.reading.progress import Snapshot
from kafka_rescale.spark.copy.bridge_tasks import CarryOn
from kafka_rescale.spark.copy.pacer import Pacer
from kafka_rescale.spark.jobs.job import Job, say

BEAT_SECONDS = 2.0
CARRYING = "carrying"
RECORD_MS = 30_000
"""How often a bridge writes its record if only offsets have changed. A bridge runs for weeks."""
NOTHING = Snapshot((), 0, 0.0)
SETTLED = ("begun", "ended_at_ms", "added")
"""Fields whose changes are recorded at once."""


def bridge(job: Job) -> None:
    """Be ready before the promotion, copy records after it, and end when the old topics are silent.

    :raises UnsafeState: a position was lost, or a record can't be copied as it is.
    :raises Fenced: a newer run has taken over.
    """
    state = job.control.read()
    found, journal = verdict_now(job.connection, state), state.bridging
    say(f"{job.key}: {found.reason}")
    if not found.due or journal is None:
        job.put("done", detail=found.reason)
        return
    job.put("running")
    gone = _deleted(job, journal)
    if len(gone) == len(journal.plan.bridges):
        detail = f"{', '.join(sorted(gone))} was deleted: nothing is left to carry on"
        ended = Bridge.of(journal.plan, state.bridge_of(journal)).ended_without_topics(now_ms())
        job.put("done", detail=detail, records={Concern.BRIDGE: ended})
        say(f"{job.key}: ended; {detail}")
        return
    known = _prepare(job, journal, state.bridge_of(journal), gone)
    watch = _carry_on(job, journal, known, state.replaced_promotion, gone)
    records: Change = {Concern.BRIDGE: watch.known}
    if watch.has_ended():
        job.put("done", detail="the old topic is silent, and every record of it carried on", records=records)
        say(f"{job.key}: ended; the old topic has been silent for {job.arguments.silent_seconds} s")
    elif watch.deleted:
        names = ", ".join(watch.deleted)
        detail = f"somebody has deleted {names}; the next run goes on without it, unless it was made anew"
        job.put("stopped", detail=detail, records=records)
        say(f"{job.key}: {detail}")
    elif watch.has_grown():
        grown = ", ".join(f"{a.topic} to {a.count} partitions" for a in watch.known.added if not a.begun)
        detail = f"somebody has grown {grown}; the next run carries them all on"
        job.put("stopped", detail=detail, records=records)
        say(f"{job.key}: {detail}")
    else:
        attempt = f"attempt {journal.attempt} was rolled back"
        job.put("stopped", detail=f"{attempt}, or another expansion has begun")


def _deleted(job: Job, journal: Journal) -> frozenset[str]:
    """Return the old topics that were deleted since the promotion: their bridges have nothing left to do.

    Before the promotion they are the application's inputs, and a bridge can't be prepared without them.
    """
    sources = [move.source for move in journal.plan.bridges]
    return frozenset(ClusterAdmin(job.connection).absent_of(sources)) if journal.is_promoted else frozenset()


def _prepare(job: Job, journal: Journal, found: Bridge | None, gone: frozenset[str] = frozenset()) -> Bridge:
    """Give every partition of the old topics a position, and return the record of the bridge."""
    plan = journal.plan
    admin = ClusterAdmin(job.connection)
    ids = ids_of_bridged(admin, journal) if journal.is_promoted else {}
    ended = Bridge.of(plan, found, ids)
    # A bridge that had ended works again, because records have come since.
    known = ended.model_copy(update={"ended_at_ms": 0})
    if not journal.is_promoted:
        prepare(job.connection, plan, known)
        return known
    known = known.noticed(plan.bridges, ends_of_bridged(admin, journal))
    prepare(job.connection, plan, known, ended, gone=gone, anew=known.made_anew(ids))
    known = known.with_positions(ids)
    # Write this before any record is copied, because a later run must find the growth at the same ends. Write it
    # after all positions are committed, because it drops the proof that stands for lost ones.
    job.put("running", records={Concern.BRIDGE: known})
    return known


def _carry_on(job: Job, journal: Journal, known: Bridge, replaced: Journal | None, gone: frozenset[str]) -> _Watch:
    """Copy until this run has nothing left to do, and return what the driver has seen meanwhile.

    :param replaced: as in ``bridging``.
    :param gone: the old topics that were deleted before this run.
    """
    plan, moves = journal.plan, [m for m in known.widened(journal.plan.bridges) if m.source not in gone]
    carry = CarryOn(
        job.connection, plan, journal.attempt, uuid4().hex, added=known.added, replaced=replaced, gone=gone
    )
    progress = CopyProgress(job.connection, plan, moves, group=plan.bridge_group)
    spark = job.spark()
    units = units_of(moves)
    lists = divided(units, job.parallelism(spark))
    spread = spark.sparkContext.parallelize(lists, max(1, len(lists)))
    with JournalFollower(job.connection, plan.application, job.key) as follower:
        follower.first()
        harm = Harm(job.connection, plan, plan.green if journal.is_promoted else plan.blue, progress)
        pacer = Pacer(job, plan.fingerprint, follower, harm, len(lists))
        paced = replace(carry, paced=pacer.begin())
        admin = ClusterAdmin(job.connection)
        watch = _Watch(job, admin, progress, carry.session, units, known, follower, pacer, replaced)
        job.run_beside(
            lambda: spread.mapPartitions(paced).collect(),
            watch.beat,
            until=watch.is_over,
            seconds=BEAT_SECONDS,
            is_paused=follower.is_paused,
        )
    return watch


@dataclass
class _Watch:
    """What the driver does every few seconds beside its tasks."""

    job: Job
    admin: ClusterAdmin
    progress: CopyProgress
    session: str
    units: Sequence[CopyUnit]
    known: Bridge
    follower: JournalFollower
    pacer: Pacer
    replaced: Journal | None
    recorded_ms: int = 0
    state: str = "running"
    snapshot: Snapshot = NOTHING
    deleted: Sequence[str] = ()

    def beat(self) -> None:
        """Read the state, report it, and decide whether the old topics are silent.

        :raises Outage: the state could not be read, or not be reported.
        """
        try:
            self._look()
        except Outage:
            # The tasks learn of a person's pause or limit by this record alone.
            self.job.put(self.state, records=self.pacer.adapted(self.snapshot))
            raise

    def _look(self) -> None:
        journal = bridging(self.follower.first(), self.replaced)
        if journal is None or journal.plan.fingerprint != self.known.plan:
            return  # another expansion has begun; the tasks end by themselves
        at_ms = now_ms()
        ids, last = ids_of_bridged(self.admin, journal), ends_of_bridged(self.admin, journal)
        deleted = ({unit.source[0] for unit in self.units} - last.keys()) | self.known.made_anew(ids)
        if journal.is_promoted and deleted:
            self.deleted = sorted(deleted)
            return
        # The cutover waits for this heartbeat, so its time is now. The age of the copy means nothing before the
        # promotion.
        self.snapshot = snapshot = replace(self.progress.read(), as_of_ms=at_ms)
        say(f"{self.job.key}: {snapshot}")
        before, rate = self.known, self.pacer.adapted(snapshot)
        self.progress.note_rest(self.pacer.is_paused)
        if journal.is_promoted:
            self.known = self._looked(snapshot, at_ms, last, ids).noticed(journal.plan.bridges, last)
        self.state = state = self._state(journal)
        settled = all(getattr(before, name) == getattr(self.known, name) for name in SETTLED)
        settled = settled and not self.pacer.has_news
        if state == CARRYING and settled and at_ms - self.recorded_ms < RECORD_MS:
            return
        self.recorded_ms = at_ms
        self.job.put(state, snapshot, records={**rate, Concern.BRIDGE: self.known} if self.known.begun else rate)

    def has_ended(self) -> bool:
        """Whether the silence has been proven."""
        return bool(self.known.ended_at_ms)

    def has_grown(self) -> bool:
        """Whether an old topic has partitions that this run does not copy."""
        return any(not added.begun for added in self.known.added)

    def is_over(self) -> bool:
        """Whether this run has done all it can."""
        return self.has_ended() or self.has_grown() or bool(self.deleted)

    def _state(self, journal: Journal) -> str:
        if journal.is_promoted:
            return CARRYING
        return "ready" if self.progress.all_follow(self.session, self.units) else "running"

    def _looked(self, snapshot: Snapshot, at_ms: int, last: PartitionOffsets, ids: Mapping[str, str]) -> Bridge:
        ends: PartitionOffsets = {}
        for p in snapshot.partitions:
            ends.setdefault(p.topic, {})[p.partition] = p.end
        reading = Reading(at_ms, ends, last, {(p.topic, p.partition): p.position for p in snapshot.partitions})
        begun = self.known.model_copy(update={"begun": True, "ids": {**ids, **self.known.ids}})
        return begun.looked(reading, self.job.arguments.silent_seconds * 1000)
