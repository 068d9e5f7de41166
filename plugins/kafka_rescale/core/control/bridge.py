"""When the bridge of a ``repartitioned`` input has work, and when it may end."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from pydantic import Field

from kafka_rescale.core.cluster import TopicPartition
from kafka_rescale.core.control.added_partitions import Added, layouts
from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.journal import BLUE_STOPPED, Captured, Journal, PartitionOffsets, Phase
from kafka_rescale.core.errors import Finding
from kafka_rescale.core.plan.plan import Move, Plan, Stage
from kafka_rescale.core.values import Value


@dataclass(frozen=True)
class Reading:
    """One look at the old topics and at the bridge's progress.

    :param at_ms: wall clock before the look.
    :param ends: as a ``read_committed`` reader sees them (exclusive).
    :param last: ends that include open transactions.
    :param positions: next offset to bridge; partitions without a position are left out.
    """

    at_ms: int
    ends: PartitionOffsets
    last: PartitionOffsets
    positions: Mapping[TopicPartition, int]

    @property
    def is_settled(self) -> bool:
        """Whether everything has been bridged and no transaction is open."""
        return self.ends == self.last and all(
            self.positions.get((topic, partition), -1) >= end
            for topic, partitions in self.last.items()
            for partition, end in partitions.items()
        )


class Bridge(Value):
    """The record of the bridges of an expansion.

    :param plan: fingerprint of the expansion's plan.
    :param begun: whether positions have been committed: from then on a missing position is a lost one.
    :param ends: ends of the old topics at the last look, open transactions included.
    :param ids: ids of the old topics whose records are carried on. A topic that was deleted and made anew has
        another id, and other offsets. Empty in a record of an earlier version.
    :param quiet_since_ms: since when the ends have not moved.
    :param ended_at_ms: when the silence of the old topics was proven; 0 before.
    :param added: growths of the old topics since the plan, in the order in which they were noticed.
    """

    plan: str
    begun: bool = False
    ends: PartitionOffsets = Field(default_factory=dict)
    ids: dict[str, str] = Field(default_factory=dict, exclude_if=lambda ids: not ids)
    quiet_since_ms: int = 0
    ended_at_ms: int = 0
    added: tuple[Added, ...] = ()

    @classmethod
    def of(cls, plan: Plan, found: Bridge | None, ids: Mapping[str, str] | None = None) -> Bridge:
        """Return the record of an expansion's bridges; a record of an earlier expansion doesn't count.

        :param ids: ids of the old topics now. The ends of a topic that was made anew since are left out: all its
            records are late, and nothing of them is proven.
        """
        fingerprint = plan.fingerprint
        known = found if found and found.plan == fingerprint else cls(plan=fingerprint)
        anew = known.made_anew(ids or {})
        kept = {topic: ends for topic, ends in known.ends.items() if topic not in anew}
        return known.model_copy(update={"ends": kept}) if anew else known

    def made_anew(self, ids: Mapping[str, str]) -> frozenset[str]:
        """Return the old topics that were deleted and made anew since their records were carried on.

        :param ids: ids of the old topics now.
        """
        return frozenset(topic for topic, found in ids.items() if self.ids.get(topic, found) != found)

    @property
    def proven(self) -> PartitionOffsets:
        """The positions of a bridge that has ended: every partition was at its end. Empty while it is at work.

        Brokers delete the offsets of a group that commits nothing for ``offsets.retention.minutes``. This proof
        stays.
        """
        return self.ends if self.ended_at_ms else {}

    def widened(self, moves: Iterable[Move]) -> tuple[Move, ...]:
        """Return the plan's bridges with all partitions that are copied."""
        return tuple(layout.move for layout in layouts(moves, self.added).values())

    def noticed(self, moves: Iterable[Move], last: PartitionOffsets) -> Bridge:
        """Return the record after a check whether an old topic has grown.

        :param moves: the plan's bridges.
        :param last: ends of all partitions that the old topics have now, open transactions included.
        """
        grown = tuple(
            Added(topic=topic, count=len(last[topic]), ends={p: last[topic][p] for p in range(known)})
            for topic, known in _counts(self.widened(moves)).items()
            if len(last.get(topic, {})) > known
        )
        return self.model_copy(update={"added": (*self.added, *grown), "ended_at_ms": 0}) if grown else self

    def with_positions(self, ids: Mapping[str, str]) -> Bridge:
        """Return the record after every known partition has got a position.

        :param ids: ids of the old topics that the positions are of.
        """
        added = tuple(a.model_copy(update={"begun": True}) for a in self.added)
        return self.model_copy(update={"begun": True, "added": added, "ids": {**self.ids, **ids}})

    def lost(self, moves: Iterable[Move], found: Collection[TopicPartition]) -> list[TopicPartition]:
        """Return the partitions that had a position and have lost it.

        :param moves: the plan's bridges.
        :param found: the partitions that have a position, or a proven one.
        """
        counts = {**_counts(moves), **{a.topic: a.count for a in self.added if a.begun}}
        had = [(topic, p) for topic, count in counts.items() for p in range(count)] if self.begun else []
        return [source for source in had if source not in found]

    def looked(self, reading: Reading, silent_ms: int) -> Bridge:
        """Return the record after another look.

        :param silent_ms: how long no record must have come in for the proof of silence.
        """
        if reading.last != self.ends:
            return self.model_copy(
                update={"ends": reading.last, "quiet_since_ms": reading.at_ms, "ended_at_ms": 0}
            )
        silent = reading.is_settled and reading.at_ms - self.quiet_since_ms >= silent_ms
        return self.model_copy(update={"ended_at_ms": reading.at_ms}) if silent else self

    def ended_without_topics(self, at_ms: int) -> Bridge:
        """Return the record after all old topics were deleted.

        It has no ends. If a topic is made anew, all its records count as late. And its bridge does not go on from
        offsets of the deleted log, but asks a person for positions.
        """
        return self.model_copy(update={"begun": True, "ends": {}, "quiet_since_ms": 0, "ended_at_ms": at_ms})

    def late(self, last: PartitionOffsets) -> PartitionOffsets:
        """Return the partitions of the old topics whose ends have moved since the last look, with their ends.

        :param last: ends now, open transactions included; without topics that were deleted since.
        """
        moved = {
            topic: {p: end for p, end in ends.items() if end and end != self.ends.get(topic, {}).get(p)}
            for topic, ends in last.items()
        }
        return {topic: ends for topic, ends in moved.items() if ends}


class ReplacedBridges(Value):
    """The bridges of a promotion, once another expansion has replaced its journal.

    If that expansion is rolled back, a producer may still write to the old topics. Only the controller that begins
    an expansion writes this record; jobs write the record of the bridge at any time.

    :param journal: the part of the replaced journal that its bridges need.
    :param bridge: the record of its bridges as it was then.
    """

    journal: Journal
    bridge: Bridge

    @classmethod
    def of(cls, journal: Journal, found: Bridge | None) -> ReplacedBridges | None:
        """Return what is kept of a complete expansion; None if it has no bridges."""
        if not journal.plan.bridges:
            return None
        committed = journal.captured.committed if journal.captured is not None else {}
        kept = Journal(
            plan=journal.plan,
            phase=journal.phase,
            attempt=journal.attempt,
            owner=journal.owner,
            captured=Captured(committed=committed),
            input_ends=journal.input_ends,
            pause_started_ms=journal.pause_started_ms,
            changed_at_ms=journal.changed_at_ms,
        )
        return cls(journal=kept, bridge=Bridge.of(journal.plan, found))


def bridging(present: Journal | None, replaced: Journal | None) -> Journal | None:
    """Return the journal whose bridges may have work.

    :param replaced: journal of the running generation's promotion, if another expansion has begun since.
    """
    is_rolled_back = present is not None and present.phase is Phase.ROLLED_BACK
    return replaced if is_rolled_back and replaced is not None else present


def _counts(moves: Iterable[Move]) -> dict[str, int]:
    return {m.source: m.source_partitions for m in moves}


@dataclass(frozen=True)
class Verdict:
    """Whether a bridge has to run, and why."""

    due: bool
    reason: str


def verdict(
    journal: Journal | None,
    bridge: Bridge | None,
    *,
    last: PartitionOffsets,
    topics: Collection[str],
    ids: Mapping[str, str] | None = None,
) -> Verdict:
    """Return whether a run of the bridge has anything to do now.

    A bridge that is up before the promotion waits for it: see ``when_restored`` for when it is started.

    :param last: ends of the old topics now, open transactions included.
    :param topics: the existing topics.
    :param ids: ids of the old topics now; see ``Bridge.of``.
    """
    if journal is None or not journal.plan.bridges:
        return Verdict(False, "no expansion with a repartitioned input")
    named = ", ".join(f"{m.source} -> {m.target}" for m in journal.plan.bridges)
    if not journal.is_promoted:
        return _before_promotion(journal, named, topics)
    known = Bridge.of(journal.plan, bridge, ids)
    if not known.ended_at_ms:
        return Verdict(True, f"{named}: carries on")
    if known.late(last):
        return Verdict(True, f"{named}: had ended, and records have come into the old topic since")
    return Verdict(False, f"{named}: ended, the old topic has been silent; nothing to do")


def when_restored(found: Verdict, journal: Journal | None, results: Mapping[str, JobResult]) -> Verdict:
    """Return the verdict on starting a driver: no driver for the hours in which this run restores its stages.

    The driver comes up during ``warm_up``, and the last stage's gate waits for it. It must not come up later: if a
    cluster gives each job all of its cores, none is left for a bridge that is submitted beside ``prove``.

    :param found: whether a bridge has anything to do.
    :param results: results of the jobs, by their names.
    """
    if not found.due or journal is None or journal.phase is not Phase.WARMING:
        return found
    left = [
        stage.index
        for stage in journal.plan.stages
        if stage.changelogs and not _is_restored(stage, journal, results)
    ]
    return Verdict(False, f"the expansion has yet to restore stage {left[0]}") if left else found


def _is_restored(stage: Stage, journal: Journal, results: Mapping[str, JobResult]) -> bool:
    result = results.get(f"restore/{stage.index}")
    return result is not None and (result.run, result.state) == (journal.owner, "done")


def _of(bridge: Bridge, move: Move, last: PartitionOffsets) -> str:
    """Return a remark if the old topic has partitions that no bridge has copied yet."""
    (known,) = bridge.widened([move])
    found = len(last.get(move.source, {}))
    return f", from {known.source_partitions} of its {found} partitions" if found > known.source_partitions else ""


def _before_promotion(journal: Journal, named: str, topics: Collection[str]) -> Verdict:
    missing = ", ".join(m.target for m in journal.plan.bridges if m.target not in topics)
    if journal.phase is Phase.WARMING and missing:
        return Verdict(False, f"{named}: the expansion has not made {missing} yet")
    if journal.phase in {Phase.WARMING, *BLUE_STOPPED}:
        return Verdict(True, f"{named}: waits for the promotion")
    return Verdict(False, f"{named}: {journal.plan.blue} owns the input (phase {journal.phase})")


def unfinished(
    journal: Journal, bridge: Bridge | None, *, last: PartitionOffsets, ids: Mapping[str, str] | None = None
) -> Iterator[Finding]:
    """Yield what a promoted expansion has left to copy: the next expansion does not continue its bridge.

    :param last: ends of the old topics now, open transactions included.
    :param ids: ids of the old topics now; see ``Bridge.of``.
    """
    dag = f"`bridge_{journal.plan.application}`"
    known = Bridge.of(journal.plan, bridge, ids)
    ended = known.ended_at_ms != 0
    late = known.late(last) if ended else {}
    for move in journal.plan.bridges:
        what = f"bridge from {move.source!r} to {move.target!r}"
        if not ended:
            yield Finding(
                what,
                "a bridge that still carries records on" + _of(known, move, last),
                "a bridge that has ended: its old topic is silent, and every producer writes to the new topic",
                f"Let all producers write to {move.target}; {dag} ends after `silent_seconds` without a record.",
            )
        elif move.source in late:
            partitions = ", ".join(f"{p} (end {end})" for p, end in sorted(late[move.source].items()))
            yield Finding(
                what,
                f"records that came into the old topic after the bridge had ended, in partitions {partitions}",
                "no such records: after the next expansion has begun, nothing carries them on",
                f"Find the producer that writes to {move.source}, and let it write to {move.target}. Let {dag} "
                "run: it carries the records on and ends again (is the DAG paused?). Then trigger again.",
            )
