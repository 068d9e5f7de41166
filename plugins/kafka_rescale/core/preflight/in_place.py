"""Preflight: can the running generation's own topics grow, and does the expansion in progress do the same?"""

from __future__ import annotations

from collections.abc import Iterator

from kafka_rescale.core.application.checks.in_place import OTHER_MODE
from kafka_rescale.core.errors import Finding
from kafka_rescale.core.preflight.situation import Situation


def conflicting_mode(situation: Situation) -> Iterator[Finding]:
    """Yield an expansion in progress that was begun in the other mode."""
    journal = situation.control.journal
    if journal is not None and journal.in_progress and journal.plan.is_in_place != situation.is_in_place:
        begun = "in_place" if journal.plan.is_in_place else "blue_green"
        yield Finding(
            f"application {situation.application.application_id!r}",
            f"an expansion in progress that was begun with mode {begun} (phase {journal.told})",
            f"the same mode as in the file, {situation.application.mode}",
            f"Declare `mode: {begun}`. {journal.way_on}",
        )


def shrinking_in_place(situation: Situation) -> Iterator[Finding]:
    """Yield internal topics that would have to lose partitions."""
    if not situation.is_in_place:
        return
    for move in situation.plan.moves:
        if move.target_partitions < move.source_partitions:
            yield Finding(
                f"topic {move.source!r}",
                f"{move.source_partitions} partitions with mode in_place",
                f"at most {move.target_partitions}: a topic can't lose partitions",
                f"{OTHER_MODE}, whose next generation has topics of its own.",
            )


def grown_by_hand_in_place(situation: Situation) -> Iterator[Finding]:
    """Yield inputs that were grown by hand: their records have two layouts."""
    for topic, known in situation.grown.items() if situation.is_in_place else ():
        yield Finding(
            f"input topic {situation.full_name(topic)!r}",
            f"{situation.actual_counts[topic]} partitions, while {situation.blue} is tied to {known}",
            "the count that the application knows, with mode in_place",
            f"{OTHER_MODE}, which goes on from where the application stopped.",
        )


def streams_protocol_in_place(situation: Situation) -> Iterator[Finding]:
    """Yield an application of the streams protocol, whose coordinator remembers the counts of its topics."""
    if situation.is_in_place and situation.cluster.group.protocol == "streams":
        yield Finding(
            f"group {situation.blue!r}",
            "the streams protocol (KIP-1071) with mode in_place",
            "the classic protocol: growth under a group of the streams protocol has never been tried",
            f"{OTHER_MODE}.",
        )
