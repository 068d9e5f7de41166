"""The work in Spark's Python workers. All its parameters come in the closure, not in Spark's properties."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field

from kafka_rescale.core.cluster import TopicPartition
from kafka_rescale.core.control.journal import Captured, Journal, Phase
from kafka_rescale.core.errors import ClusterOutage, Fenced, UnsafeState
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import again_after_outage, now_ms
from kafka_rescale.kafka.control.journal_follower import JournalFollower
from kafka_rescale.kafka.copy import in_flight
from kafka_rescale.kafka.copy.loop import CopyWorker
from kafka_rescale.kafka.copy.marks import read_positions
from kafka_rescale.kafka.copy.seeding import Begun, Seeding
from kafka_rescale.kafka.copy.settings import BULK, CopySettings, live
from kafka_rescale.kafka.copy.throttle import unlimited
from kafka_rescale.kafka.copy.units import CopyUnit
from kafka_rescale.kafka.reading.committed import AT_ONCE, closing_consumer
from kafka_rescale.spark.copy.journal_task import JournalTask
from kafka_rescale.spark.copy.paced import Paced
from kafka_rescale.spark.jobs.begin import begin_process
from kafka_rescale.spark.jobs.task_errors import as_text
from kafka_rescale.spark.snapshots.seed import SnapshotSeed, seeding_of

log = logging.getLogger(__name__)

CARRIED_AGAIN = 3
"""How often the records in flight are copied once more, before the task begins again with new clients."""
FINAL, FINISHED, STOPPED = "final", "finished", "stopped"
LIVE_STEP_SECONDS = 0.05


@dataclass(frozen=True)
class CopyToEnds:
    """Copies lists of units up to captured ends; one element of the RDD is one list.

    :param ends: exclusive.
    :param asked_ms: wall clock before the ends were captured.
    :param starts: where records in flight begin; see ``CopyWorker.begin``.
    :param exactly: whether to copy no record behind the ends.
    :param seeds: snapshots, the newest first. Copies that have not begun yet may begin with them.
    :param paced: how fast the tasks may copy; None without a limit.
    """

    connection: KafkaConnection
    plan: Plan
    ends: Mapping[TopicPartition, int]
    asked_ms: int
    starts: Mapping[TopicPartition, int] = field(default_factory=dict)
    exactly: bool = False
    seeds: Mapping[TopicPartition, Sequence[SnapshotSeed]] = field(default_factory=dict)
    paced: Paced | None = None

    def __call__(self, lists: Iterable[list[CopyUnit]]) -> Iterator[Begun]:
        """Copy each list, and yield how its copies were begun."""
        begin_process()
        share = self.paced.here(self.connection, self.plan.application) if self.paced else unlimited
        for units in lists:
            with as_text():
                worker = CopyWorker(self.connection, self.plan, units, BULK, share=share)
                try:
                    seeding = self._seeding(units)
                    seeded = worker.begin(self.starts, seeding)
                    ends = {u.source: self.ends[u.source] for u in units}
                    worker.run_to(ends, self.asked_ms, exactly=self.exactly)
                finally:
                    worker.close()
            yield Begun(sum(seeded.values()), seeding.refused if seeding else ())

    def _seeding(self, units: Sequence[CopyUnit]) -> Seeding | None:
        ours = {u.source: self.seeds[u.source] for u in units if u.source in self.seeds}
        return seeding_of(self.connection, ours, self.ends) if ours else None


class Follow(JournalTask):
    """Follows blue's changelogs until the journal gives the final ends, and finishes the copies up to there."""

    @property
    def live(self) -> CopySettings:
        """How it copies what blue writes."""
        return live(sum(move.source_partitions for move in self.plan.moves))

    def work(self, units: list[CopyUnit], follower: JournalFollower) -> str:
        """Follow until the end, and return ``finished`` or ``stopped``.

        If brokers fail a request, this begins again by itself, because a new job would make the pause longer.
        """
        announced: list[str] = []

        def follow() -> str:
            if announced:
                self._require_newest(units)
            return self._follow(units, follower, announced)

        return again_after_outage(follow)

    def _follow(self, units: list[CopyUnit], follower: JournalFollower, announced: list[str]) -> str:
        if (verdict := self.verdict(follower.first())) in {FINISHED, STOPPED}:
            return verdict
        logs = [u for u in units if u.is_changelog]
        carried = [u for u in units if not u.is_changelog]
        with ExitStack() as clients:
            paced = CopyWorker(self.connection, self.plan, logs, self.live, share=self.paced.by(follower))
            worker = clients.enter_context(closing(paced))
            self._prepare(carried)
            # Open the client before blue stops, so that finding coordinators does not lengthen the pause.
            carrier = clients.enter_context(closing(CopyWorker(self.connection, self.plan, carried, self.live)))
            worker.begin()
            worker.announce(self.session)
            carrier.announce(self.session)
            announced.append(self.session)
            while not (verdict := self.verdict(journal := follower.latest())):
                # Not while blue stops: that would lengthen the pause.
                if journal is not None and journal.phase is Phase.WARMING:
                    carrier.announce_again()
                worker.step(LIVE_STEP_SECONDS)
            if journal is None or journal.captured is None or verdict in {FINISHED, STOPPED}:
                return verdict
            log.info("blue is stopped: the last delta of %d partitions", len(units))
            self._finish(worker, journal.captured)
            self._carry(carried, carrier, journal.captured)
            log.info("the last delta is copied")
            return FINISHED

    def _require_newest(self, units: Sequence[CopyUnit]) -> None:
        """Refuse to begin again if tasks of a newer job follow these units: new clients here would fence them."""
        with closing_consumer(self.connection, self.plan.copy_group, **AT_ONCE) as consumer:
            found = read_positions(consumer, [unit.source for unit in units])
        others = {position.mark.session for position in found.values()} - {"", self.session}
        if others:
            raise Fenced(
                f"copy of {', '.join(map(str, units))}",
                found="positions that another job follows",
                expected="to be the newest attempt",
                remedy="Nothing to do here: the newer attempt goes on.",
            )

    def verdict(self, journal: Journal | None) -> str:
        """Return what to do: empty to go on, ``FINAL`` for the last delta, ``finished`` or ``stopped``."""
        if journal is None or journal.attempt != self.attempt or journal.plan.fingerprint != self.plan.fingerprint:
            return STOPPED
        if journal.phase in {Phase.WARMING, Phase.QUIESCING}:
            return ""
        if journal.phase is Phase.QUIESCED:
            return FINAL
        return STOPPED if journal.phase in {Phase.ROLLING_BACK, Phase.ROLLED_BACK} else FINISHED

    @staticmethod
    def _finish(worker: CopyWorker, captured: Captured) -> None:
        ends = {source: captured.changelog_ends[source[0]][source[1]] for source in worker.writers}
        worker.run_to(ends, now_ms(), is_last=True)
        beyond = [str(w.unit) for s, w in worker.writers.items() if w.position > ends[s]]
        if beyond:
            raise UnsafeState(
                f"changelogs {', '.join(beyond)}",
                found="records behind the captured end",
                expected="no such records, because blue was proven gone",
                remedy="Another instance of blue is alive. Find it first: the rollback starts blue again.",
            )

    def _carry(self, units: Sequence[CopyUnit], carrier: CopyWorker, captured: Captured) -> None:
        """Copy the records in flight. If a transaction was aborted, empty the topics and copy them once more.

        :raises ClusterOutage: transactions are aborted again and again.
        """
        is_whole = self._carry_once(carrier, captured)
        for _ in range(CARRIED_AGAIN):
            if is_whole:
                return
            log.warning("records in flight of %d partitions are copied once more", len(units))
            self._prepare(units)
            with closing(CopyWorker(self.connection, self.plan, units, self.live)) as another:
                is_whole = self._carry_once(another, captured)
        if not is_whole:
            raise ClusterOutage(
                f"records in flight of {units[0]} and {len(units) - 1} more partitions",
                found="transactions that were aborted again and again",
                expected="a copy without an aborted transaction",
                remedy="Look at the brokers; the copy begins again by itself.",
            )

    @staticmethod
    def _carry_once(carrier: CopyWorker, captured: Captured) -> bool:
        """Copy the records in flight, and return whether no transaction was aborted meanwhile."""
        starts, ends = in_flight.starts_and_ends(captured, carrier.writers)
        carrier.begin(starts)
        carrier.run_to(ends, now_ms(), exactly=True)
        return not carrier.commits.has_rewound

    def _prepare(self, units: Sequence[CopyUnit]) -> None:
        in_flight.prepare(self.connection, self.plan, dict.fromkeys(u.move for u in units), self.attempt)
