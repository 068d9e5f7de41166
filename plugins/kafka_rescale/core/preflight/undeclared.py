"""Does the topology know every topic that the running generation reads?

Green gets offsets for the inputs that the topology names. It would process an input that an outdated topology
lacks again from its begin, or skip it, and the proof of the copies would not show that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from kafka_rescale.core.cluster import GroupDescription
from kafka_rescale.core.errors import Complaint, Finding
from kafka_rescale.core.preflight.situation import Situation
from kafka_rescale.core.topology.patterns import matching


def undeclared_inputs(situation: Situation) -> Iterator[Finding]:
    """Yield the topics that members of the group read, and that the topology does not name."""
    complaint = undeclared_reads(situation.cluster.group, _known(situation), _patterns(situation))
    if complaint is not None:
        yield Finding.of(complaint)


def undeclared_reads(group: GroupDescription, known: Collection[str], patterns: Iterable[str]) -> Complaint | None:
    """Return what is wrong with the topics that members of a group read; None if nothing is, as far as they tell.

    :param group: the running generation's group.
    :param known: the topics that the topology names, by their names on the cluster.
    :param patterns: the patterns of its sources.
    """
    unknown = _unknown((topic for of in group.assigned.values() for topic, _ in of), known, patterns)
    if not unknown:
        return None
    return Complaint(
        f"inputs of {group.group_id!r}",
        f"{', '.join(unknown)}, which its members read and the topology does not name",
        "every topic that the running program reads in the topology: the next generation would begin the "
        "others at auto.offset.reset",
        "Print Topology#describe() of the running program again, and declare each external topic in `inputs:`.",
    )


def undeclared_messages(situation: Situation) -> Iterator[str]:
    """Yield a hint at topics that the group has read, if nobody tells whether it still reads them."""
    if situation.cluster.group.assigned:
        return
    committed = (topic for topic, _ in situation.cluster.committed)
    unknown = _unknown(committed, _known(situation), _patterns(situation))
    if unknown:
        yield (
            f"{situation.blue} has committed offsets in {', '.join(unknown)}, which the topology does not name. "
            "If the program still reads it, print Topology#describe() again, and declare it in `inputs:`: the "
            "next generation would begin it at auto.offset.reset."
        )


def _known(situation: Situation) -> set[str]:
    topology = situation.topology
    return {*map(situation.full_name, topology.inputs), *situation.names.all_of(topology)}


def _patterns(situation: Situation) -> Iterable[str]:
    return situation.application.source_patterns


def _unknown(topics: Iterable[str], known: Collection[str], patterns: Iterable[str]) -> list[str]:
    read = set(topics).difference(known)
    # Patterns have findings of their own.
    matched = {t for pattern in patterns for t in matching(pattern, read)}
    return sorted(read - matched)
