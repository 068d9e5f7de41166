"""Preflight: can the successors of ``repartitioned`` inputs be made, and has the last bridge ended?"""

from __future__ import annotations

from collections.abc import Iterator

from kafka_rescale.core.control.bridge import unfinished
from kafka_rescale.core.errors import Finding
from kafka_rescale.core.preflight.counts import changes_anything
from kafka_rescale.core.preflight.situation import Situation, counted


def successor_topics(situation: Situation) -> Iterator[Finding]:
    """Yield successors whose names are in use: green reads its new input from offset 0, so it must be empty."""
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
                "an empty topic, or no such topic: no producer may write to it before the promotion",
                f"Stop whatever writes to it, and delete it (`kafka-topics.sh --delete --topic {name}`), or give "
                "another name as `successor:`.",
            )
        elif name in situation.emptied:
            yield Finding(
                f"topic {name!r}",
                f"a topic whose records were deleted, and that is to follow {situation.full_name(declared)}",
                "a topic that has never had a record, or no such topic: green reads it from offset 0 on",
                f"Delete it (`kafka-topics.sh --delete --topic {name}`), or give another name as `successor:`.",
            )
        elif found is not None and found.partitions != situation.target:
            yield Finding(
                f"topic {name!r}",
                f"{found.partitions} partitions in the topic that is to follow {situation.full_name(declared)}",
                f"{situation.target} partitions or no such topic",
                f"Delete it (`kafka-topics.sh --delete --topic {name}`).",
            )


def successor_times(situation: Situation) -> Iterator[Finding]:
    """Yield inputs whose successors would not keep the times of their records."""
    for topic in map(situation.full_name, situation.successors()):
        found = situation.cluster.topics.get(topic)
        if found is not None and found.configs.get("message.timestamp.type") == "LogAppendTime":
            yield Finding(
                f"input topic {topic!r}",
                "message.timestamp.type LogAppendTime, by the topic's own config or the brokers' "
                "log.message.timestamp.type",
                "CreateTime: its successor would give every record the time of its bridging, and windows and "
                "joins would go by that",
                f"Set message.timestamp.type=CreateTime on {topic}, if the application may go by the clocks of "
                "its producers from then on; else declare another policy.",
            )


def bridge_messages(situation: Situation) -> Iterator[str]:
    """Yield the DAG of the bridges, which the cutover waits for."""
    if names := situation.successors():
        dag = f"bridge_{situation.application.application_id}"
        carried = ", ".join(names.values())
        yield f"{dag} carries records on to {carried}: the cutover waits until it is up, so it must not be paused."


def unfinished_bridge(situation: Situation) -> Iterator[Finding]:
    """Yield a bridge of the last expansion that still copies records, or that has left records behind."""
    journal = situation.control.bridging
    if journal is not None and journal.is_promoted and changes_anything(situation):
        known, last = situation.control.bridge_of(journal), situation.bridged_ends
        yield from unfinished(journal, known, last=last, ids=situation.bridged_ids)
