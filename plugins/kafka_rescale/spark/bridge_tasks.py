"""The bridge's work within Spark's Python workers."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import replace

from kafka_rescale.core.journal import Journal, Phase
from kafka_rescale.kafka.bridging import fence_of, one_layout, wait_for_old_partitions
from kafka_rescale.kafka.copy_loop import CopyWorker
from kafka_rescale.kafka.copy_settings import LIVE
from kafka_rescale.kafka.copy_units import CopyUnit
from kafka_rescale.kafka.journal_follower import JournalFollower
from kafka_rescale.kafka.waiting import now_ms
from kafka_rescale.spark.copy_tasks import LIVE_STEP_SECONDS, STOPPED
from kafka_rescale.spark.journal_task import JournalTask

WAIT, CARRY = "wait", "carry"


class CarryOn(JournalTask):
    """Waits for the promotion, then carries old partitions on for as long as the driver lives."""

    def work(self, units: list[CopyUnit], follower: JournalFollower) -> str:
        """Return ``stopped``, once it is not to go on."""
        # Opened before the promotion: finding coordinators is no part of the pause.
        with closing(self._worker(units)) as worker:
            worker.announce(self.session)
            journal = follower.first()
            while (verdict := self.verdict(journal)) == WAIT:
                time.sleep(LIVE_STEP_SECONDS)
                journal = follower.latest()
            if verdict != CARRY or journal is None:
                return verdict
            if not any(unit.move.earlier_partitions for unit in units):
                return self._carry_on(worker, journal, follower)
        self._carry_two_layouts(units, journal)
        with closing(self._worker([replace(unit, move=one_layout(unit.move)) for unit in units])) as worker:
            return self._carry_on(worker, journal, follower)

    def _carry_on(self, worker: CopyWorker, journal: Journal, follower: JournalFollower) -> str:
        worker.begin(fence_of(journal))
        known: Journal | None = journal
        while True:
            worker.step(LIVE_STEP_SECONDS)
            newest = follower.latest()
            if newest is not known and (verdict := self.verdict(newest)) != CARRY:
                return verdict
            known = newest

    def _worker(self, units: list[CopyUnit]) -> CopyWorker:
        return CopyWorker(self.connection, self.plan, units, LIVE, group=self.plan.bridge_group)

    def _carry_two_layouts(self, units: list[CopyUnit], journal: Journal) -> None:
        """Carry on what old partitions held at the promotion, and wait until all of them are done with that.

        A key that the growth by hand has moved has its earlier records in an old partition and its later ones in a
        new one. A producer that still writes by the old count after this is refused by the router.
        """
        old = [unit for unit in units if unit.partition < unit.move.earlier_partitions]
        ends = {unit.source: journal.input_ends[unit.move.source][unit.partition] for unit in old}
        with closing(self._worker(old)) as worker:
            worker.begin(fence_of(journal))
            worker.run_to(ends, now_ms(), exactly=True)
        wait_for_old_partitions(self.connection, journal)

    def verdict(self, journal: Journal | None) -> str:
        """Return what to do: ``wait`` for the promotion, ``carry`` on, or ``stopped``."""
        if journal is None or journal.plan.fingerprint != self.plan.fingerprint:
            return STOPPED
        if journal.is_promoted:
            return CARRY
        over = journal.attempt != self.attempt or journal.phase in {Phase.ROLLING_BACK, Phase.ROLLED_BACK}
        return STOPPED if over else WAIT
