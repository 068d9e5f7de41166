"""The bridge's work within Spark's Python workers."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass

from kafka_rescale.core.control.added_partitions import Added, Layout, Step, layouts, steps
from kafka_rescale.core.control.bridge import bridging
from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.control.journal_follower import JournalFollower
from kafka_rescale.kafka.copy.bridging import fence_of, wait_for_positions
from kafka_rescale.kafka.copy.loop import CopyWorker
from kafka_rescale.kafka.copy.settings import live
from kafka_rescale.kafka.copy.units import CopyUnit
from kafka_rescale.spark.copy.journal_task import JournalTask
from kafka_rescale.spark.copy.tasks import LIVE_STEP_SECONDS, STOPPED

WAIT, CARRY = "wait", "carry"


@dataclass(frozen=True)
class CarryOn(JournalTask):
    """Waits for the promotion, then copies old partitions for as long as the driver lives.

    :param added: known growths of the old topics; the units include all of their partitions.
    :param replaced: journal of the expansion, if another expansion has begun since; see ``bridging``.
    :param gone: old topics that were deleted; there are no units of them.
    """

    added: tuple[Added, ...] = ()
    replaced: Journal | None = None
    gone: frozenset[str] = frozenset()

    def work(self, units: list[CopyUnit], follower: JournalFollower) -> str:
        """Copy until the work must not go on, and return ``stopped``."""
        # Open the clients before the promotion, so that finding coordinators does not lengthen the pause.
        with closing(self._worker(units, layouts(self.plan.bridges, self.added), follower)) as worker:
            worker.announce(self.session)
            journal = bridging(follower.first(), self.replaced)
            while (verdict := self.verdict(journal)) == WAIT:
                # Not while blue stops: that would lengthen the pause.
                if journal is not None and journal.phase is Phase.WARMING:
                    worker.announce_again()
                time.sleep(LIVE_STEP_SECONDS)
                journal = bridging(follower.latest(), self.replaced)
            if verdict != CARRY or journal is None:
                return verdict
            first = list(steps(journal, self.added, self.gone))
            if not first:
                return self._carry_on(worker, journal, follower)
        for step in first:
            self._carry_first(step, units, journal, follower)
        with closing(self._worker(units, layouts(self.plan.bridges, self.added), follower)) as worker:
            return self._carry_on(worker, journal, follower)

    def _carry_on(self, worker: CopyWorker, journal: Journal, follower: JournalFollower) -> str:
        worker.begin(fence_of(journal, self.added))
        known: Journal | None = journal
        while True:
            worker.step(LIVE_STEP_SECONDS)
            newest = bridging(follower.latest(), self.replaced)
            if newest is not known and (verdict := self.verdict(newest)) != CARRY:
                return verdict
            known = newest

    def _worker(
        self, units: list[CopyUnit], by_topic: Mapping[str, Layout], follower: JournalFollower
    ) -> CopyWorker:
        placed = [CopyUnit(**vars(by_topic[unit.move.source]), partition=unit.partition) for unit in units]
        group, share = self.plan.bridge_group, self.paced.by(follower)
        settings = live(sum(move.source_partitions for move in self.plan.bridges))
        return CopyWorker(self.connection, self.plan, placed, settings, group=group, share=share)

    def _carry_first(self, step: Step, units: list[CopyUnit], journal: Journal, follower: JournalFollower) -> None:
        """Copy this worker's part of a step, and wait until all other workers are done with their parts.

        If a growth has moved a key, its earlier records are in an old partition, and its later records in a new
        partition. So the old partitions have to be copied first.
        """
        own = [unit for unit in units if unit.source in step.ends]
        with closing(self._worker(own, step.layouts, follower)) as worker:
            worker.begin(fence_of(journal, self.added))
            worker.run_to({unit.source: step.ends[unit.source] for unit in own}, now_ms(), exactly=True)
        wait_for_positions(self.connection, self.plan, step.ends)

    def verdict(self, journal: Journal | None) -> str:
        """Return what to do: ``wait`` for the promotion, ``carry`` on copying, or ``stopped``."""
        if journal is None or journal.plan.fingerprint != self.plan.fingerprint:
            return STOPPED
        if journal.is_promoted:
            return CARRY
        over = journal.attempt != self.attempt or journal.phase in {Phase.ROLLING_BACK, Phase.ROLLED_BACK}
        return STOPPED if over else WAIT
