"""The generation whose changelogs give the state as of a point in time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kafka_rescale.core.control.bridge import Bridge
from kafka_rescale.core.control.generations import Generations
from kafka_rescale.core.control.journal import Journal, PartitionOffsets
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import Refused
from kafka_rescale.core.snapshots.day import SnapshotDay


@dataclass(frozen=True)
class SnapshotSource:
    """The generation whose changelogs are read.

    :param generation: ``application.id`` of the generation.
    :param is_running: whether the generation owns the inputs now.
    :param begins: the offsets at which its changelogs begin, if they are not 0.
    :param ends: the offsets (exclusive) at which its changelogs end, if another generation has taken the topics
        over.
    :param until_ms: wall clock when it was asked to stop, if it does not run any more.
    :param stopped_at: the offsets at which it has stopped reading its inputs and repartition topics, if it does
        not run any more.
    :param inputs: by the name of an input in the application file, the topic that the generation reads instead.
    :param bridged: the topics whose records a bridge copies to its inputs.
    :param bridge_group: the group whose offsets tell how far the bridge is.
    :param carried: the ends up to which a bridge that has ended has copied its topics. Its group may have lost its
        offsets since.
    """

    generation: str
    is_running: bool = True
    begins: PartitionOffsets = field(default_factory=dict)
    ends: PartitionOffsets = field(default_factory=dict)
    until_ms: int = 0
    stopped_at: PartitionOffsets = field(default_factory=dict)
    inputs: dict[str, str] = field(default_factory=dict)
    bridged: tuple[str, ...] = ()
    bridge_group: str = ""
    carried: PartitionOffsets = field(default_factory=dict)


def source_at(
    state: ControlState, application: str, day: SnapshotDay, ids: Mapping[str, str] | None = None
) -> SnapshotSource:
    """Return the generation that was at work at the end of a day.

    The running generation has taken over only records that are older than the moment at which its predecessor was
    asked to stop. So its changelogs give every state from this moment on, also the states within the pause.

    :param application: base name of the application.
    :param ids: ids that the topics of its bridges have now; see ``Bridge.of``.
    :raises Refused: the control topic does not tell which generation was at work then.
    """
    known = state.generations
    if known is None:
        return SnapshotSource(application)
    since = known.since_ms or _promoted_since(state.journal, known.running)
    is_first = known.generation == 1
    if day.end_ms >= since and (since or is_first):
        return _running(known, state, ids)
    for past in known.past:
        if past.since_ms <= day.end_ms < past.until_ms and (past.since_ms or past.generation == 1):
            return SnapshotSource(
                past.running,
                is_running=False,
                begins=known.begins,
                ends=past.ends,
                until_ms=past.until_ms,
                stopped_at={**past.committed, **past.in_flight},
            )
    raise _unknown(application, day, known.running, since)


def _running(known: Generations, state: ControlState, ids: Mapping[str, str] | None) -> SnapshotSource:
    journal = state.bridging
    source = SnapshotSource(known.running, begins=known.begins, inputs=dict(known.inputs))
    if journal is None or journal.plan.green != known.running or not journal.plan.bridges:
        return source
    bridged = tuple(move.source for move in journal.plan.bridges)
    carried = Bridge.of(journal.plan, state.bridge_of(journal), ids).proven
    return replace(source, bridged=bridged, bridge_group=journal.plan.bridge_group, carried=carried)


def _promoted_since(journal: Journal | None, running: str) -> int:
    """Return when a promotion began that was recorded before generations had a history. 0 if this is unknown."""
    if journal is None or not journal.is_promoted or journal.plan.green != running:
        return 0
    return journal.pause_started_ms


def _unknown(application: str, day: SnapshotDay, running: str, since: int) -> Refused:
    first = SnapshotDay.first_ending_from(since) if since else None
    return Refused(
        f"snapshot of {application} for {day}",
        found=f"{running}, " + (f"at work since the end of {first}" if first else "at work since an unknown time"),
        expected="a record of the generation that was at work at the end of that day",
        remedy=f"The first exact day is {first}."
        if first
        else "Every promotion records that from now on. So the first exact day is the day of the next expansion.",
    )
