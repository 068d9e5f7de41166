"""Preflight: can the successors of ``repartitioned`` inputs be made, and has the last bridge ended?"""

from __future__ import annotations

from collections.abc import Iterator

from kafka_rescale.core.control.bridge import unfinished
from kafka_rescale.core.errors import Finding
from kafka_rescale.core.plan.shared_inputs import may_bridge_into, uses
from kafka_rescale.core.preflight.counts import changes_anything
from kafka_rescale.core.preflight.situation import Situation, counted


def successor_topics(situation: Situation) -> Iterator[Finding]:
    """Yield successors whose names are in use: green reads its new input from offset 0, so it must be empty.

    A topic from which the own bridge still carries records is left out: ``unfinished_bridge`` refuses it. It must
    not be deleted before.
    """
    sources = _unfinished_sources(situation)
    for declared, name in situation.successors().items():
        found = situation.cluster.topics.get(name)
        bridging = [a.application_id for a, _ in situation.beside if may_bridge_into(a, name)]
        if name == situation.full_name(declared):
            yield Finding(
                f"successor of input {declared!r}",
                f"{name}, which the running generation reads",
                "another topic for every expansion",
                "Put {partitions} into `successor:`, or give the next name.",
            )
        elif bridging:
            own = f"{{topic}}-{situation.application.application_id}-p{{partitions}}"
            yield Finding(
                f"topic {name!r}",
                f"the name that application {bridging[0]} may give to the topic that follows "
                f"{situation.full_name(declared)}",
                "a topic of its own: the bridges of both would carry every record into it",
                f"Give another name as `successor:` here, such as `{own}`, and leave the topic as it is: "
                f"{bridging[0]} may read it.",
            )
        elif name in sources:
            continue
        elif records := situation.green_records.get(name, 0):
            yield Finding(
                f"topic {name!r}",
                f"{counted(records, 'record')} in the topic that is to follow {situation.full_name(declared)}",
                "an empty topic, or no such topic: no producer may write to it before the promotion",
                _way_out(situation, name, "Stop whatever writes to it, and delete it"),
            )
        elif name in situation.emptied:
            yield Finding(
                f"topic {name!r}",
                f"a topic whose records were deleted, and that is to follow {situation.full_name(declared)}",
                "a topic that has never had a record, or no such topic: green reads it from offset 0 on",
                _way_out(situation, name),
            )
        elif found is not None and found.partitions != situation.target:
            yield Finding(
                f"topic {name!r}",
                f"{found.partitions} partitions in the topic that is to follow {situation.full_name(declared)}",
                f"{situation.target} partitions or no such topic",
                _way_out(situation, name),
            )


def _unfinished_sources(situation: Situation) -> frozenset[str]:
    """Return the topics that the bridges of the last expansion read, if anything is left to carry on."""
    journal = situation.control.bridging
    if journal is None or not any(unfinished_bridge(situation)):
        return frozenset()
    return frozenset(bridge.source for bridge in journal.plan.bridges)


def _way_out(situation: Situation, topic: str, delete: str = "Delete it") -> str:
    """Return what to do about a topic that can't follow an input. Nobody is told to delete what others need.

    :param delete: how to get rid of it, if no other file tells of a need of it.
    """
    users = [f"application {each[0].application_id}" for each in situation.beside if uses(each, topic)]
    users += [unusable.file for unusable in situation.unusable if topic in unusable.topics]
    if users:
        return f"Give another name as `successor:`, and leave the topic as it is: {users[0]} may need it."
    command = f"kafka-topics.sh --delete --topic {topic}"
    return f"{delete} (`{command}`) if nobody needs it, or give another name as `successor:`."


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
