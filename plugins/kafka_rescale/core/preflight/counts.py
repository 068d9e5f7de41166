"""Preflight: do the partition counts agree now, and will they after the expansion?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from kafka_rescale.core.application.topics import InputPolicy
from kafka_rescale.core.errors import Finding
from kafka_rescale.core.plan.planning import target_counts
from kafka_rescale.core.preflight.described import Described
from kafka_rescale.core.preflight.situation import Situation
from kafka_rescale.core.topology.partition_counts import partition_counts, possible_counts
from kafka_rescale.core.topology.topology import REPARTITION_SUFFIX, SubTopology, foreign_key_kind


def shrinking_inputs(situation: Situation) -> Iterator[Finding]:
    """Yield inputs that would have to lose partitions, which Kafka can't do."""
    for declared in situation.application.inputs:
        count = situation.actual_counts[declared.topic]
        grows = declared.policy in {InputPolicy.UNKEYED, InputPolicy.PAUSED}
        if grows and situation.target < count:
            yield Finding(
                f"input topic {declared.topic!r}",
                f"{count} partitions with policy {declared.policy}",
                f"at most the target of {situation.target}: a topic can't lose partitions",
                f"{'Declare `mode: blue_green`. ' if situation.is_in_place else ''}"
                "Declare `policy: repartitioned`, which goes on with a new topic; or `policy: fixed`, and `count: "
                f"start_command` for the repartition topics that shall shrink; or ask for {count} or more.",
            )


def copartitioned(situation: Situation) -> Iterator[Finding]:
    """Yield stateful sub-topologies whose sources differ in count, now or after the expansion."""
    after = counts_after(situation)
    for subtopology in situation.stateful_subtopologies():
        if _differ(subtopology, situation.counts):
            yield Finding(
                f"sources of sub-topology {subtopology.id}",
                _listed(subtopology, situation.counts),
                "equal counts: one key's records and state belong to one task",
                "If they are joined, the program can't be running: Kafka Streams refuses that. If they are only "
                "merged, or share a processor, they can't be rescaled together: make them applications of their "
                "own, or let the smaller one come through a repartition() with the others' count; its state "
                "begins anew either way. Don't grow a topic by hand under the running application: keys would "
                "come to tasks that don't have their state.",
            )
        elif _differ(subtopology, after):
            yield Finding(
                f"sources of sub-topology {subtopology.id} after the expansion to {situation.target}",
                _listed(subtopology, after),
                "equal counts: one key's records and state belong to one task",
                "Let all of them grow: `policy: paused` for an external topic, `count: start_command` for a "
                "repartition topic whose count the program sets. Or let none grow: `policy: fixed`, and `count: "
                "fixed` for such a repartition topic.",
            )


def counts_after(described: Described) -> dict[str, int]:
    """Return the count of every source topic after the expansion, as the topology names them."""
    application, target = described.application, described.target
    external = target_counts(application, described.actual_counts, target)
    enforced = application.enforced_counts(target, described.actual_counts)
    return {**external, **partition_counts(described.topology, external, enforced)}


def follows_target(described: Described, topic: str) -> bool:
    """Return whether a larger target gives a source topic more partitions.

    If an input is missing or undeclared, no count is certain. Preflight says so; this takes the topic for one that
    follows.

    :param topic: as the topology names it. It must exist.
    """
    declared = {i.topic for i in described.application.inputs}
    if not declared <= described.actual_counts.keys() or not declared.issuperset(described.topology.inputs):
        return True
    present = described.actual_counts[topic]
    return counts_after(replace(described, target=present + 1))[topic] > present


def _differ(subtopology: SubTopology, counts: Mapping[str, int]) -> bool:
    return len({counts[t] for t in subtopology.sources}) > 1


def _listed(subtopology: SubTopology, counts: Mapping[str, int]) -> str:
    return ", ".join(f"{t} with {counts[t]}" for t in sorted(subtopology.sources))


def derived_repartitions(situation: Situation) -> Iterator[Finding]:
    """Yield repartition topics whose count is not what Kafka Streams derives from the sources."""
    given = (situation.topology, situation.external_counts, situation.enforced_now)
    derived, possible = partition_counts(*given), possible_counts(*given)
    for topic in sorted(set(derived) - set(situation.enforced_now)):
        count, name = situation.counts[topic], topic.removesuffix(REPARTITION_SUFFIX)
        if count not in possible.get(topic, {derived[topic]}):
            sources = _deciding_sources(situation, topic)
            way_on = _way_on(situation, topic) if count < derived[topic] else INTERNAL_GROWN
            yield Finding(
                f"topic {situation.full_name(topic)!r}",
                f"{count} partitions",
                f"{derived[topic]}, as Kafka Streams derives it from "
                f"{', '.join(f'{t} with {situation.counts[t]}' for t in sources)}",
                f"If the program sets it (withNumberOfPartitions), {how_to_declare(name)}. {way_on}",
            )


def counts_of_start_command(situation: Situation) -> Iterator[Finding]:
    """Yield a finding if topics whose counts the start command tells have different counts: it tells only one."""
    counts = {topic: situation.counts[topic] for topic in situation.application.repartitions_of_start_command}
    if len(set(counts.values())) > 1:
        listed = (f"{topic.removesuffix(REPARTITION_SUFFIX)} with {count}" for topic, count in counts.items())
        yield Finding(
            "repartition topics whose counts the start command tells",
            ", ".join(listed),
            "one count: the program takes it from {partitions} in its start command",
            "With `count: start_command`, neither generation could start. If the program sets a constant for one "
            "of them, declare `count: fixed` there; if it sets none, `count: derived`.",
        )


def how_to_declare(name: str) -> str:
    """Return how to declare a repartition topic whose count the program sets.

    :param name: the name of the repartition topic, without its suffix.
    """
    return (
        f"declare `{{name: {name}, count: start_command}}` in `repartitions:` if the program takes the count from "
        f"{{partitions}}, or `{{name: {name}, count: fixed}}` if it sets a constant, which then stays"
    )


INTERNAL_GROWN = (
    "If the topic was grown by hand, no expansion mends that, as it can't shrink: grow the inputs alike "
    "and reset the application."
)


def _way_on(situation: Situation, topic: str) -> str:
    """Return how an application goes on after a person has grown its input, which can't shrink again."""
    if topic in situation.application.following_repartitions:
        return (
            "`count: derived` is declared, but the running generation has read partitions that it can't have "
            "known of, or other topics disagree on the earlier count."
        )
    return (
        "If an input was grown by hand, that can't be undone, and need not be: declare `count: derived` there. "
        "This says that the program sets no count. A first record in a new partition shows the growth as well. "
        "Then the expansion goes on from the committed offsets."
    )


def _deciding_sources(situation: Situation, topic: str) -> list[str]:
    """Return the topics that a derived count comes from: its writer's sources, or a foreign-key join's table."""
    at_reader = bool(foreign_key_kind(topic))
    deciding = [s for s in situation.topology.subtopologies if topic in (s.sources if at_reader else s.sinks)]
    return [t for s in deciding for t in situation.topology.own_sources(s)]


def changelog_counts(situation: Situation) -> Iterator[Finding]:
    """Yield changelogs that do not have one partition per task of their sub-topology."""
    for subtopology in situation.stateful_subtopologies():
        tasks = max(situation.counts[t] for t in subtopology.sources)
        for store in subtopology.stores:
            topic = situation.cluster.topics[situation.changelog(store)]
            if topic.partitions != tasks:
                yield Finding(
                    f"topic {topic.name!r}",
                    f"{topic.partitions} partitions",
                    f"{tasks}, one per task of sub-topology {subtopology.id} "
                    f"({_listed(subtopology, situation.counts)})",
                    "Kafka Streams refuses to start on it: a source or the changelog was grown by hand, and no "
                    "topic can shrink again. Grow the others alike and reset the application.",
                )


def changes_anything(situation: Situation) -> bool:
    """Return whether the plan grows, shrinks or moves anything."""
    plan = situation.plan
    return (
        any(m.source_partitions != m.target_partitions for m in plan.moves)
        or any(i.current != i.target for i in plan.inputs)
        or any(stage.grow_outputs for stage in plan.stages)
    )


def reachable_target(situation: Situation) -> Iterator[Finding]:
    """Yield a finding if the file declares nothing that could ever change a count."""
    application, present = situation.application, max(situation.actual_counts.values())
    growing = [i for i in application.inputs if i.policy is not InputPolicy.FIXED]
    may_change = growing or application.repartitions_of_start_command
    if not may_change and not changes_anything(situation) and situation.target != present:
        yield Finding(
            f"target of {situation.target} partitions",
            f"{present} partitions, and nothing declared that may change",
            "an input that grows, or a repartition topic whose count the program sets",
            "Declare `policy: unkeyed` or `paused` for an input, or `count: start_command` for a repartition.",
        )
