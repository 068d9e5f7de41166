"""The journal of one expansion: a state machine. Every step of it can be killed and continued.

``PROMOTED`` is the point of no return. Before it, a rollback starts blue as it was. After it, the expansion can
only go forward. Inputs are grown after it: a grown input kills blue at its next rebalance, and can't shrink again.
"""

from __future__ import annotations

import json
from enum import StrEnum
from hashlib import sha256

from pydantic import Field

from kafka_rescale.core.control.warmth import Warmth
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.core.plan.prediction import Prediction
from kafka_rescale.core.values import Value


class Phase(StrEnum):
    """The phase of an expansion; the members are in the order of a run without failures."""

    WARMING = "warming"
    QUIESCING = "quiescing"
    QUIESCED = "quiesced"
    CAUGHT_UP = "caught_up"
    PROMOTED = "promoted"
    STARTED = "started"
    VERIFIED = "verified"
    COMPLETE = "complete"
    ROLLING_BACK = "rolling_back"
    ROLLED_BACK = "rolled_back"


FORWARD: dict[Phase, tuple[Phase, ...]] = {
    Phase.WARMING: (Phase.QUIESCING, Phase.ROLLING_BACK),
    Phase.QUIESCING: (Phase.QUIESCED, Phase.ROLLING_BACK),
    Phase.QUIESCED: (Phase.CAUGHT_UP, Phase.ROLLING_BACK),
    Phase.CAUGHT_UP: (Phase.PROMOTED, Phase.ROLLING_BACK),
    Phase.PROMOTED: (Phase.STARTED,),
    Phase.STARTED: (Phase.VERIFIED,),
    Phase.VERIFIED: (Phase.COMPLETE,),
    Phase.COMPLETE: (),
    Phase.ROLLING_BACK: (Phase.ROLLED_BACK,),
    Phase.ROLLED_BACK: (),
}
"""The phases that may follow. What has ended stays so, whatever wakes up late: ``plan`` begins another journal."""

BLUE_STOPPED = (Phase.QUIESCING, Phase.QUIESCED, Phase.CAUGHT_UP)
AFTER_PROMOTION = (Phase.PROMOTED, Phase.STARTED, Phase.VERIFIED, Phase.COMPLETE)

PartitionOffsets = dict[str, dict[int, int]]
"""Topic → partition → offset. An end is exclusive; a position is the next offset to read."""


class Captured(Value):
    """Offsets captured once blue was proven gone.

    :param committed: the fence, which is also green's start: blue's committed offsets of external inputs, or the
        log start if retention was faster.
    :param changelog_ends: end of every blue changelog partition (``read_committed``).
    :param in_flight: per blue repartition topic and partition, ``(committed, end)``.
    """

    committed: PartitionOffsets = Field(default_factory=dict)
    changelog_ends: PartitionOffsets = Field(default_factory=dict)
    in_flight: dict[str, dict[int, tuple[int, int]]] = Field(default_factory=dict)

    @property
    def in_flight_starts(self) -> PartitionOffsets:
        """Where blue stopped reading its repartition topics."""
        return {topic: {p: start for p, (start, _) in of.items()} for topic, of in self.in_flight.items()}

    @property
    def ends(self) -> PartitionOffsets:
        """The end of every partition of an internal topic: the application's own records lie below it."""
        carried = {topic: {p: end for p, (_, end) in of.items()} for topic, of in self.in_flight.items()}
        return {**self.changelog_ends, **carried}

    def passed(self, committed: PartitionOffsets) -> dict[str, int]:
        """Return the partitions that blue's group has committed beyond where blue was stopped.

        :param committed: the group's present offsets.
        :returns: where it was stopped, by ``<topic>-<partition>``.
        """
        stopped = {**self.committed, **self.in_flight_starts}
        return {
            f"{topic}-{p}": offset
            for topic, offsets in stopped.items()
            for p, offset in offsets.items()
            if committed.get(topic, {}).get(p, -1) > offset
        }


class Journal(Value):
    """One expansion.

    :param attempt: number of the attempt at the cutover; a rollback starts the next one.
    :param green_ends: ends of green's topics just before it was started: verify compares up to here.
    :param green_start: the offsets that green was given to start from. Every application has an input, so this is
        empty only as long as the offsets are not known.
    :param input_ends: end of every input partition just before it was grown, to find misrouted records.
    :param output_ends: ends of the output topics before green was started. What green aborts there lies behind
        them. Empty in a journal of an earlier version.
    :param timings: seconds per part of the downtime, of the attempt that was promoted.
    :param pause_started_ms: wall clock when blue was asked to stop, 0 before.
    :param stop_asked: whether blue's ``stop`` has been called in this attempt; it may still be at work after the
        process that called it was killed.
    :param stopped_again: whether a rollback of this attempt has completely stopped blue before starting it. When
        the rollback is tried again, blue may run already: it is then only started, not stopped.
    :param blue_ran: whether blue ran when it was about to be stopped; if not, no rollback waits for it to run.
    :param gate_ends: ends of green's topics when it was started behind the warm-up gate; empty when it is known to
        be stopped again.
    :param opening: number of the try that may open and close that gate; 0 before the first.
    :param beside_copy: whether the copying goes on while green is behind the gate. Then ends that have moved do
        not say that green has written.
    :param gate_copied: digest of the copies' marks when a pre-warming had stopped the copying and started green.
        If it is another by now, the copying has gone on: a person has marked ``prewarm`` as success. Empty in a
        journal of an earlier version.
    :param warmth: how far green has restored its stores; None if it was not pre-warmed, or by a person's hand.
    :param prewarmed: seconds per part of the pre-warming of this attempt; empty without a pre-warming.
    :param was_warm: green's id, if a pre-warming of this or an earlier attempt may have left local state of green.
        Rollbacks keep it until a person says that the state is deleted.
    :param held: number of the pass of green's processes that wait at the door of their group; 0 if there are none.
    :param compaction_lags: ``min.compaction.lag.ms`` overrides of green's changelogs as they were before every
        record had to be kept; an empty string stands for no override.
    :param max_compaction_lags: the same for ``max.compaction.lag.ms``. Brokers refuse a maximum below the minimum.
    :param deletion_retentions: the same for ``delete.retention.ms``, before every deletion had to be kept.
    :param deletions_kept_until_ms: wall clock up to which green can go on with a pre-warming's local state. No
        deletion that was copied since is removed before. 0 if compaction removes none, or without a pre-warming.
    :param callback_begun_ms: wall clock when ``on_partition_expansion`` was about to be called, 0 before.
    :param rollback_reason: why this attempt is rolled back, in a sentence; empty if it isn't.
    :param stopped_by: the person who has ended this attempt, or the approval that was not given; empty if it has
        failed by itself, or if an earlier version has ended it.
    :param begun_ms: wall clock when this attempt began; 0 if an earlier version has begun it.
    :param triggered_by: the person who has triggered the run that has begun it; empty if that is not known.
    :param predicted: what was predicted for it; None if an earlier version has begun it.
    """

    plan: Plan
    phase: Phase = Phase.WARMING
    attempt: int = 1
    owner: str = ""
    captured: Captured | None = None
    green_ends: PartitionOffsets = Field(default_factory=dict)
    green_start: PartitionOffsets = Field(default_factory=dict)
    input_ends: PartitionOffsets = Field(default_factory=dict)
    output_ends: PartitionOffsets = Field(default_factory=dict, exclude_if=lambda ends: not ends)
    timings: dict[str, float] = Field(default_factory=dict)
    changed_at_ms: int = 0
    pause_started_ms: int = 0
    stop_asked: bool = False
    stopped_again: bool = False
    blue_ran: bool = True
    gate_ends: PartitionOffsets = Field(default_factory=dict)
    opening: int = 0
    beside_copy: bool = False
    gate_copied: str = Field(default="", exclude_if=lambda digest: not digest)
    warmth: Warmth | None = None
    prewarmed: dict[str, float] = Field(default_factory=dict)
    was_warm: str = ""
    held: int = 0
    compaction_lags: dict[str, str] = Field(default_factory=dict)
    max_compaction_lags: dict[str, str] = Field(default_factory=dict)
    deletion_retentions: dict[str, str] = Field(default_factory=dict, exclude_if=lambda found: not found)
    deletions_kept_until_ms: int = Field(default=0, exclude_if=lambda ms: not ms)
    callback_begun_ms: int = 0
    rollback_reason: str = ""
    stopped_by: str = Field(default="", exclude_if=lambda text: not text)
    begun_ms: int = 0
    triggered_by: str = ""
    predicted: Prediction | None = None

    def advanced(self, phase: Phase, *, now_ms: int, **changes: object) -> Journal:
        """Return the journal in its next phase; a repeated step may set the same phase again.

        :raises UnsafeState: this step can't follow the present phase.
        """
        if phase is not self.phase and phase not in FORWARD[self.phase]:
            raise UnsafeState(
                f"expansion of {self.plan.application}",
                found=f"phase {self.told}",
                expected=f"a phase before {phase}",
                remedy="Look at `python -m kafka_rescale status FILE`; another run may have gone on meanwhile.",
            )
        return self.model_copy(update={**changes, "phase": phase, "changed_at_ms": now_ms})

    def assert_not_rolled_back(self) -> None:
        """Refuse an attempt that a rollback has closed, or is closing. A task of its run may have been cleared.

        :raises UnsafeState: it is rolled back; only a new run begins the next attempt.
        """
        if self.phase in {Phase.ROLLING_BACK, Phase.ROLLED_BACK}:
            raise UnsafeState(
                f"expansion of {self.plan.application}",
                found=self.told,
                expected="an attempt in progress",
                remedy="Trigger the expansion again: it continues with the copies that exist.",
            )

    @property
    def told(self) -> str:
        """The phase for a person; if the attempt is rolled back, with the reason."""
        return f"{self.phase}, because: {self.rollback_reason}" if self.rollback_reason else self.phase.value

    @property
    def way_on(self) -> str:
        """How a person gets past an expansion in progress, in order to begin another one."""
        finish = f"Finish it by a run with target {self.plan.partitions} and the settings that it was begun with"
        if self.is_promoted:
            return f"{finish}, then ask again: after its promotion it can't be rolled back."
        return f"{finish}, or roll it back; then ask again."

    @property
    def is_promoted(self) -> bool:
        """Whether green owns the inputs."""
        return self.phase in AFTER_PROMOTION

    @property
    def is_verified(self) -> bool:
        """Whether green's state has been proven; since then, compaction may remove records of the promotion."""
        return self.phase in {Phase.VERIFIED, Phase.COMPLETE}

    @property
    def is_paused(self) -> bool:
        """Whether no generation works on the inputs. The pause gets its total as soon as green works."""
        return self.phase in BLUE_STOPPED or (self.phase is Phase.PROMOTED and "total" not in self.timings)

    @property
    def promotion(self) -> str:
        """A hash of what was promoted. A report carries it, because clocks of two machines can't be compared."""
        promoted = self.model_dump(mode="json", include={"attempt", "captured", "green_ends", "green_start"})
        text = json.dumps([self.plan.fingerprint, promoted], sort_keys=True)
        return sha256(text.encode()).hexdigest()[:16]

    def is_same_attempt(self, other: Journal) -> bool:
        """Whether both are the same attempt at the same expansion.

        A rollback raises the number of the attempt. After an expansion that is complete, the numbers begin anew,
        but the generation is another one.
        """
        return (self.plan.generation, self.attempt) == (other.plan.generation, other.attempt)

    @property
    def in_progress(self) -> bool:
        """Whether an expansion has begun and neither ended nor been rolled back."""
        return self.phase not in {Phase.COMPLETE, Phase.ROLLED_BACK}
