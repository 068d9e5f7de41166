"""Preflight: can the successors of ``repartitioned`` inputs be made, and has the last bridge ended?"""

from __future__ import annotations

from collections.abc import Iterator

from kafka_rescale.core.errors import Finding
from kafka_rescale.core.preflight_counts import changes_anything
from kafka_rescale.core.situation import Situation, counted


def successor_topics(situation: Situation) -> Iterator[Finding]:
    """Yield names of successors that are in use: green reads its new input from offset 0."""
    for declared, name in situation.successors().items():
        found = situation.cluster.topics.get(name)
        if name == situation.full_name(declared):
            yield Finding(
                f"successor of input {declared!r}",
                f"{name}, which the running generation reads",
                "another topic for every expansion",
                "Put {partitions} into `successor:`, or give the next name.",
            )
        elif records := situation.green_records.get(name, 0):
            yield Finding(
                f"topic {name!r}",
                f"{counted(records, 'record')} in the topic that is to follow {situation.full_name(declared)}",
                "an empty topic, or no such topic: nobody may write to it before the promotion",
                f"Stop who writes to it and delete it (`kafka-topics.sh --delete --topic {name}`), or give "
                "another name as `successor:`.",
            )
        elif found is not None and found.partitions != situation.target:
            yield Finding(
                f"topic {name!r}",
                f"{found.partitions} partitions in the topic that is to follow {situation.full_name(declared)}",
                f"{situation.target} partitions or no such topic",
                f"Delete it (`kafka-topics.sh --delete --topic {name}`).",
            )


def unfinished_bridge(situation: Situation) -> Iterator[Finding]:
    """Yield a bridge of the last expansion that still carries records on."""
    journal, bridge = situation.control.journal, situation.control.bridge
    if journal is None or not journal.is_promoted or not changes_anything(situation):
        return
    ended = bridge is not None and bridge.plan == journal.plan.fingerprint and bridge.ended_at_ms
    for move in () if ended else journal.plan.bridges:
        yield Finding(
            f"bridge from {move.source!r} to {move.target!r}",
            "a bridge that still carries records on",
            "one that has ended: its old topic silent, every producer with the new one",
            f"Let all producers write to {move.target}; `bridge_{situation.application.application_id}` ends "
            "after `silent_seconds` without a record.",
        )
