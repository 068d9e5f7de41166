"""The parts of a proof in progress: which of them are compared, and which are left."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Self

from kafka_rescale.core.control.journal import Journal
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.core.verify.fences import Fences
from kafka_rescale.core.verify.how_far import PartState, seconds_left, told_of
from kafka_rescale.core.verify.parts import Part, ProofProgress, parts_of, report_of, together
from kafka_rescale.core.verify.report import StoreReport
from kafka_rescale.core.verify.rolling_proof import RollingProof
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.copy.fences import green_now, read_fences
from kafka_rescale.kafka.reading.later_keys import later_keys
from kafka_rescale.kafka.reading.progress import Snapshot
from kafka_rescale.kafka.reading.source_rules import SourceRules
from kafka_rescale.operations.verify.proof_pace import ProofPace
from kafka_rescale.operations.verify.readings import Readings
from kafka_rescale.operations.verify.stores import compare_as_planned, compare_each
from kafka_rescale.spark.verify.live import BesideBlue, prove_stores
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
        self._moves = {move.store: move for move in journal.plan.changelogs}
        self._readings = Readings()
        self._done, self._lock = self._shortened(done), Lock()
        self._began, self._found_done = time.monotonic(), frozenset(self._done)
        self._last_compared = self._began
        self._admin = ClusterAdmin(connection)

    @classmethod
    def begun(cls, connection: KafkaConnection, journal: Journal, state: ControlState) -> Self:
        """Go on with a proof of these copies that has not ended, or begin a proof.

        Three conditions must hold to go on. The copies still have what was compared. The job that copies compares
        what blue has written behind the proof's fences. And blue can't have lost deletions since.
        """
        known = ProofProgress.model_validate(state.proof_progress) if state.proof_progress else None
        plan, rolling = journal.plan, RollingProof.of_record(state.rolling_proof, journal)
        if (
            known is not None
            and (known.plan, known.attempt) == (plan.fingerprint, journal.attempt)
            and rolling is not None
            and rolling.continues(known.fences.fence)
            and not known.fences.lost(*green_now(ClusterAdmin(connection), plan))
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
    def snapshot(self) -> Snapshot:
        """How far green's partitions are read, and how long the comparison of the rest takes, if that is known."""
        states, seconds = self._states, time.monotonic() - self._began
        partitions = [
            each
            for state in states
            for each in state.part.progress(
                self._moves[state.part.store].target, self.fences, state.share, is_ours=state.is_ours
            )
        ]
        return Snapshot(tuple(partitions), 0, seconds, seconds_left=self._seconds_left(states))

    @property
    def told(self) -> str:
        """How far the proof is, in a sentence."""
        states = self._states
        return told_of(states, self._seconds_left(states))

    @property
    def _states(self) -> list[PartState]:
        done = self.done
        return [
            PartState(
                part,
                share=1.0 if part.name in done else self._readings.share(part.name),
                is_compared=part.name in done,
                is_ours=part.name not in self._found_done,
            )
            for part in self.parts
        ]

    def _seconds_left(self, states: Sequence[PartState]) -> float | None:
        seconds = time.monotonic() - self._began
        return seconds_left(states, seconds, self._last_compared - self._began)

    def compare(self, spark: SparkSession, pace: ProofPace | None = None) -> tuple[StoreReport, ...]:
        """Compare the parts that are left, and return the reports of all stores. Small stores share a Spark plan.

        :param pace: each plan waits for its turn before it begins; None to compare as fast as Spark can.
        """
        left = [part for part in self.parts if part.name not in self.done]

        def compared(batch: Sequence[Part]) -> Sequence[StoreReport]:
            reports = self._compared(spark, batch, pace.await_turn() if pace is not None else None)
            with self._lock:
                for part, report in zip(batch, reports, strict=True):
                    self._done[part.name] = part.shortened(report)
                self._last_compared = time.monotonic()
            return reports

        compare_each(together(left, self._moves), compared, lambda: self.told)
        return self.reports

    def _shortened(self, done: Mapping[str, StoreReport]) -> dict[str, StoreReport]:
        """Return reports of parts as this version notes them. An earlier version has noted more."""
        return {
            part.name: part.shortened(part.widened(done[part.name], self._moves[part.store].source_partitions))
            for part in self.parts
            if part.name in done
        }

    def _compared(
        self, spark: SparkSession, batch: Sequence[Part], paced: PacedReading | None
    ) -> Sequence[StoreReport]:
        moves, fences = [self._moves[part.store] for part in batch], self.fences
        described = self._admin.existing_topics([move.source for move in moves])
        beside = [
            self._beside(part, move.source, SourceRules.of(described[move.source]).tombstone_ms)
            for part, move in zip(batch, moves, strict=True)
        ]

        def compare(pairs: Sequence[StorePair]) -> Sequence[StoreReport]:
            narrowed = [part.narrowed(pair) for part, pair in zip(batch, pairs, strict=True)]
            self._readings.begin(spark.sparkContext, [part.name for part in batch], narrowed)
            return prove_stores(spark, self._connection.java(), narrowed, beside, paced)

        return compare_as_planned(
            self._admin,
            moves,
            blue_ends=fences.blue_ends,
            green_ends=fences.green_ends,
            fences=fences.fence,
            clock_ms=now_ms,
            compare=compare,
        )

    def _beside(self, part: Part, source: str, allowed: int | None) -> BesideBlue:
        """Return what the comparison of a part asks about one of blue's topics.

        What blue writes meanwhile is read at least twice for a part with differences, and there may be many parts.

        :param allowed: how long the topic keeps deletions, in ms; None for ever.
        """
        ends, copied_ms = part.own(self.fences.blue_ends[source]), self.fences.copied_as_of_ms[source]
        return BesideBlue(
            later=lambda keys: later_keys(self._connection, source, ends, keys),
            lacks_deletions=lambda: allowed is not None and now_ms() - copied_ms > allowed,
        )


def _is_young(connection: KafkaConnection, plan: Plan, fences: Fences) -> bool:
    """Whether at most half of the time is over in which blue keeps the deletions behind the fences."""
    sources = [move.source for move in plan.changelogs]
    described, now = ClusterAdmin(connection).existing_topics(sources), now_ms()
    kept = {topic: SourceRules.of(described[topic]).tombstone_ms for topic in sources}
    return all(ms is None or 2 * (now - fences.copied_as_of_ms[topic]) < ms for topic, ms in kept.items())
