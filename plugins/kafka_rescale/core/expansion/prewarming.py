"""Pre-warming: has green restored its stores behind the warm-up gate, and has it done nothing else?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from kafka_rescale.core.cluster import TopicPartition
from kafka_rescale.core.control.journal import Journal, PartitionOffsets
from kafka_rescale.core.control.progress import NO_POSITION, PartitionProgress
from kafka_rescale.core.expansion import holding
from kafka_rescale.core.expansion.lag import GateDecision, decide
from kafka_rescale.core.expansion.offset_metadata import OffsetTexts
from kafka_rescale.core.formats.changelog_formats import SEGMENTED
from kafka_rescale.core.plan.external_topics import InputPlan
from kafka_rescale.core.plan.plan import Plan

REFUSED = "refused: "
EVERYTHING = "everything"
"""As the metadata of an input's count, this tells the gate that each instance restores the stores of all tasks."""
KEEP = "keep"
"""Likewise, this tells the gate to keep local state: green has restored it from the same copies."""
GIVEN_UP = "given up"
"""Key of the seconds that were lost when a pre-warming began anew because its members did not stay the same."""
AGAIN = "again"
"""Key of the seconds that green restored again behind the gate, shortly before the switch."""

MEMBERS = "-members"
"""The end of the name of the group that an instance has for itself."""

Assigned = Mapping[str, frozenset[TopicPartition]]
_TELLER = re.compile(r"by (\w+)(?: (\d+))?( keeps)?")
"""What an instance says beside a position: its name, how often it has said so, whether it can keep its state."""


def gate_group(green: str) -> str:
    """Return the group in which the gate finds the inputs' counts and reports how far green has restored."""
    return f"{green}-gate"


def shown_inputs(inputs: Iterable[InputPlan]) -> PartitionOffsets:
    """Return the inputs' future counts for the gate, each as the "offset" of the input's partition 0.

    Green's internal topics already have their new counts. Kafka Streams refuses to start if these don't follow
    from its inputs, but the inputs only grow after the promotion.
    """
    return {each.green_topic: {0: each.target} for each in inputs}


def shown_texts(inputs: Iterable[InputPlan], *, everything: bool, keep: bool) -> OffsetTexts | None:
    """Return the metadata for the counts of ``shown_inputs``; None without any.

    :param everything: whether each instance has to restore the stores of all tasks.
    :param keep: whether local state is kept.
    """
    text = " ".join([EVERYTHING] * everything + [KEEP] * keep)
    return {each.green_topic: {0: text} for each in inputs} if text else None


def instance_groups(green: str) -> str:
    """Return a pattern of the groups of single instances behind the gate: for positions, and for members."""
    return f"{re.escape(gate_group(green))}-[0-9a-f]{{8}}({MEMBERS})?"


def restoration(begins: PartitionOffsets, ends: PartitionOffsets, positions: PartitionOffsets) -> GateDecision:
    """Return how far green's restore consumers are; open once every changelog has been applied to its end.

    :param begins: log starts of green's changelogs.
    :param ends: their ends (exclusive); no process writes to them.
    :param positions: next offsets to apply, as the gate reports them; a partition without records needs none.
    """
    progress = [
        PartitionProgress(
            topic=topic,
            partition=partition,
            position=end
            if begins[topic][partition] >= end
            else positions.get(topic, {}).get(partition, NO_POSITION),
            end=end,
        )
        for topic, by_partition in ends.items()
        for partition, end in by_partition.items()
    ]
    return decide(progress, 0)


def restored_anew(plan: Plan, begins: PartitionOffsets, ends: PartitionOffsets) -> tuple[str, ...]:
    """Return the tasks that restore everything again at an exactly-once start.

    Such a task has an empty store of windows or sessions beside a store with records. The empty store has no
    segment that could keep an offset. From 4.3 on, Kafka Streams finds no offset of it, and then does not use what
    the task's other stores have (``ProcessorStateManager.initializeStoreOffsets``).

    :returns: task ids, ``<sub-topology>_<partition>``.
    """
    found = []
    for stage in plan.stages:
        segmented = {move.target for move in stage.changelogs if move.store_type in SEGMENTED}
        topics = [move.target for move in stage.changelogs]
        for partition in range(max((len(ends[t]) for t in topics), default=0)):
            filled = {t: begins[t][partition] < ends[t][partition] for t in topics if partition in ends[t]}
            if any(filled.values()) and not all(filled[t] for t in segmented & filled.keys()):
                found.append(f"{stage.subtopology}_{partition}")
    return tuple(found)


def moved(before: PartitionOffsets, after: PartitionOffsets) -> tuple[str, ...]:
    """Return the topics whose ends have moved."""
    return tuple(topic for topic in before if after.get(topic) != before[topic])


def refusals(texts: OffsetTexts) -> tuple[str, ...]:
    """Return the writes that the gate has refused, from the marks in the metadata of its group.

    A store is written before its changelog. So a refused record may be in the local state nevertheless, and with
    at-least-once no process deletes it.

    :param texts: metadata of the gate's group.
    """
    return tuple(sorted({text for of in texts.values() for text in of.values() if text.startswith(REFUSED)}))


def beats(texts: OffsetTexts, changelogs: Iterable[str]) -> dict[str, int]:
    """Return the instances that have reported positions, each with its count of reports since its start.

    :param texts: metadata of the gate's group.
    :returns: empty for a gate of an earlier version: it doesn't report instances.
    """
    found: dict[str, int] = {}
    for topic in changelogs:
        for text in texts.get(topic, {}).values():
            teller = _TELLER.fullmatch(text)
            if teller is not None:
                found[teller[1]] = max(found.get(teller[1], 0), int(teller[2] or 0))
    return found


def can_keep(texts: OffsetTexts, changelogs: Iterable[str]) -> bool:
    """Whether every instance that has reported a position can go on with its local state the next time.

    A gate of an earlier version can't. Neither can the gate of a program that has not called its ``configure``:
    such a program may delete its state by itself.

    :param texts: metadata of the gate's group.
    """
    tellers = [
        teller
        for topic in changelogs
        for text in texts.get(topic, {}).values()
        if (teller := _TELLER.fullmatch(text)) is not None
    ]
    return bool(tellers) and all(teller[3] for teller in tellers)


def change(first: Assigned, now: Assigned) -> str:
    """Return how the members of a group, or what they restore, have changed; empty if they are the same.

    :param first: what each member was assigned when the group was stable for the first time.
    """
    if gone := len(first.keys() - now.keys()):
        return f"{gone} of {len(first)} members have gone while they restored"
    if come := len(now.keys() - first.keys()):
        return f"{come} members have come after the {len(first)} of the first assignment"
    return "" if first == now else f"tasks have moved between its {len(first)} members while they restored"


def outlook(prewarmed: Mapping[str, float] | None) -> str:
    """Return what the pause to come will be, for the person who approves it.

    A stop and a start within the pause take as long as at the pre-warming. How long draining the input and copying
    the last delta will take is not known before.

    :param prewarmed: seconds per part of the pre-warming; None if there was none.
    """
    if prewarmed and "restore" in prewarmed:
        known = sum(prewarmed.get(part, 0.0) for part in ("start", "stop"))
        return (
            f"**Expected pause: about {known:.0f} s** to stop and to start, as at the pre-warming, and the time "
            "of draining and of the last delta. Pre-warmed: green restored its stores for "
            f"{prewarmed['restore']:.1f} s ahead of the pause, so the pause is without them.{_again(prewarmed)}"
        )
    return (
        "**Expected pause: not known.** Not pre-warmed: green restores all of its stores within the pause, so the "
        "pause grows with the state; the log of `prewarm` says why."
    )


def remark_on(journal: Journal) -> str:
    """Return what pre-warming and a held start have saved, or would have saved; empty in place: it has neither."""
    if journal.plan.is_in_place:
        return ""
    said = remark(journal.timings, journal.prewarmed), holding.remark(journal.timings)
    return " ".join(filter(None, said))


def remark(timings: Mapping[str, float], prewarmed: Mapping[str, float]) -> str:
    """Return one sentence on what pre-warming has saved, or would have saved; empty before the pause's end.

    :param timings: seconds per part of the pause.
    :param prewarmed: seconds per part of the pre-warming; empty if there was none.
    """
    if "restore" not in timings:
        return ""
    own = f"{timings['restore']:.1f} s of the pause were green's own start and restore"
    if prewarmed:
        ahead = f"Pre-warmed: green restored for {prewarmed['restore']:.1f} s ahead of the pause; {own}."
        return ahead + _again(prewarmed)
    return f"Not pre-warmed: {own}. They grow with the state; `start_gated` in `lifecycle:` restores ahead of it."


def _again(prewarmed: Mapping[str, float]) -> str:
    said = ""
    if GIVEN_UP in prewarmed:
        said += (
            f" An instance ended or came late at first ({prewarmed[GIVEN_UP]:.1f} s were given up): all of it was "
            "restored again, by members that stayed to the end; the log of `prewarm` says what had changed."
        )
    if AGAIN in prewarmed:
        said += f" Shortly before the switch, it restored for {prewarmed[AGAIN]:.1f} s what was copied since."
    return said
