"""The parts of a proof that goes on: which are compared, and what is left."""

from __future__ import annotations

import time
from collections.abc import Mapping
from threading import Lock
from typing import TYPE_CHECKING, Self

from kafka_rescale.core.control.journal import Journal
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.plan.plan import Move, Plan
from kafka_rescale.core.verify.fences import Fences
from kafka_rescale.core.verify.parts import Part, ProofProgress, parts_of, report_of
from kafka_rescale.core.verify.report import StoreReport
from kafka_rescale.core.verify.rolling_proof import RollingProof
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.copy.fences import read_fences, topics_now
from kafka_rescale.kafka.reading.later_keys import later_keys
from kafka_rescale.kafka.reading.source_rules import SourceRules
from kafka_rescale.operations.verify.proof_pace import ProofPace
from kafka_rescale.operations.verify.stores import compare_as_planned, compare_each
from kafka_rescale.spark.verify.live import BesideBlue, prove_store
from kafka_rescale.spark.verify.paced import PacedReading

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kafka_rescale.core.verify.pairs import StorePair

NOTHING_DONE: Mapping[str, StoreReport] = {}


class ProofParts:
    """What a proof compares, up to its fences.

    :param done: reports of what is compared already, by the names of the parts.
    """

    def __init__(
        self,
        connection: KafkaConnection,
        journal: Journal,
        fences: Fences,
        done: Mapping[str, StoreReport] = NOTHING_DONE,
    ) -> None:
        self._connection, self._journal, self.fences = connection, journal, fences
        self.parts = parts_of(journal.plan, fences)
        self._done, self._lock = dict(done), Lock()
        self._began, self._found_done = time.monotonic(), frozenset(self._done)
        self._admin = ClusterAdmin(connection)

    @classmethod
    def begun(cls, connection: KafkaConnection, journal: Journal, state: ControlState) -> Self:
        """Go on with a proof of these copies that has not ended, or begin one.

        It can be gone on with if the copies still have what was compared, if what blue has written behind its
        fences is compared by the job that copies, and if blue can't have lost deletions since.
        """
        known = ProofProgress.model_validate(state.proof_progress) if state.proof_progress else None
        plan, rolling = journal.plan, RollingProof.of_record(state.rolling_proof, journal)
        if (
            known is not None
            and (known.plan, known.attempt) == (plan.fingerprint, journal.attempt)
            and rolling is not None
            and rolling.continues(known.fences.fence)
            and not known.fences.lost(*topics_now(ClusterAdmin(connection), known.fences.green_topics))
            and _is_young(connection, plan, known.fences)
        ):
            return cls(connection, journal, known.fences, known.done)
        return cls(connection, journal, read_fences(connection, plan))

    @property
    def done(self) -> dict[str, StoreReport]:
        """The reports of what is compared, by the names of the parts."""
        with self._lock:
            return dict(self._done)

    @property
    def reports(self) -> tuple[StoreReport, ...]:
        """The reports of all stores, when every part is compared."""
        return report_of(self.done, self._journal.plan, self.fences)

    @property
    def progress(self) -> ProofProgress:
        """What the next job goes on from."""
        journal = self._journal
        return ProofProgress(
            plan=journal.plan.fingerprint, attempt=journal.attempt, fences=self.fences, done=self.done
        )

    @property
    def told(self) -> str:
        """How much is compared, and how long the rest takes at the same speed; unknown before the first part."""
        done = self.done
        sizes = {part.name: part.records for part in self.parts}
        total, ended = sum(sizes.values()), sum(sizes[name] for name in done)
        ours = sum(sizes[name] for name in done if name not in self._found_done)
        left = f", {(total - ended) * (time.monotonic() - self._began) / ours:,.0f} s left" if ours else ""
        return f"{len(done)} of {len(self.parts)} parts compared, {ended:,} of {total:,} offsets{left}"

    def compare(self, spark: SparkSession, pace: ProofPace | None = None) -> tuple[StoreReport, ...]:
        """Compare the parts that are left, some at a time, and return the reports of all stores.

        :param pace: each part waits for it before it begins; None to compare as fast as Spark can.
        """
        moves = {move.store: move for move in self._journal.plan.changelogs}
        left = [part for part in self.parts if part.name not in self.done]

        def compared(part: Part) -> StoreReport:
            paced = pace.await_turn() if pace is not None else None
            report = self._compared(spark, moves[part.store], part, paced)
            with self._lock:
                self._done[part.name] = report
            return report

        compare_each(lambda: spark, left, compared)
        return self.reports

    def _compared(self, spark: SparkSession, move: Move, part: Part, paced: PacedReading | None) -> StoreReport:
        source, fences = move.source, self.fences
        allowed = SourceRules.of(self._admin.describe_topics([source])[source]).tombstone_ms
        copied_ms = fences.copied_as_of_ms[source]

        def compare(pair: StorePair) -> StoreReport:
            beside = BesideBlue(
                later=lambda keys: later_keys(self._connection, source, fences.blue_ends[source], keys),
                lacks_deletions=lambda: allowed is not None and now_ms() - copied_ms > allowed,
                paced=paced,
            )
            return prove_store(spark, self._connection.java(), part.narrowed(pair), beside)

        return compare_as_planned(
            self._admin,
            move,
            blue_ends=fences.blue_ends,
            green_ends=fences.green_ends,
            fence=fences.fence[source],
            clock_ms=now_ms,
            compare=compare,
        )


def _is_young(connection: KafkaConnection, plan: Plan, fences: Fences) -> bool:
    """Whether at most half of the time has passed for which blue keeps the deletions behind the fences."""
    sources = [move.source for move in plan.changelogs]
    described, now = ClusterAdmin(connection).describe_topics(sources), now_ms()
    kept = {topic: SourceRules.of(described[topic]).tombstone_ms for topic in sources}
    return all(ms is None or 2 * (now - fences.copied_as_of_ms[topic]) < ms for topic, ms in kept.items())
