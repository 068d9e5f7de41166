"""Preflight: does the topology know every topic that the running generation reads?

Green gets offsets for the inputs that the topology names. It would process an input that an outdated topology
lacks again from its begin, or skip it, and the proof of the copies would not show that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kafka_rescale.core.errors import Finding
from kafka_rescale.core.preflight.situation import Situation
from kafka_rescale.core.topology.patterns import matching


def undeclared_inputs(situation: Situation) -> Iterator[Finding]:
    """Yield the topics that members of the group read, and that the topology does not name."""
    assigned = situation.cluster.group.assigned
    unknown = _unknown(situation, (topic for of in assigned.values() for topic, _ in of))
    if unknown:
        yield Finding(
            f"inputs of {situation.blue!r}",
            f"{', '.join(unknown)}, which its members read and the topology does not name",
            "every topic that the running program reads in the topology: the next generation would begin the "
            "others at auto.offset.reset",
            "Print Topology#describe() of the running program again, and declare each external topic in "
            "`inputs:`.",
        )


def undeclared_messages(situation: Situation) -> Iterator[str]:
    """Yield a hint at topics that the group has read, if nobody tells whether it still reads them."""
    if situation.cluster.group.assigned:
        return
    unknown = _unknown(situation, (topic for topic, _ in situation.cluster.committed))
    if unknown:
        yield (
            f"{situation.blue} has committed offsets in {', '.join(unknown)}, which the topology does not name. "
            "If the program still reads it, print Topology#describe() again, and declare it in `inputs:`: the "
            "next generation would begin it at auto.offset.reset."
        )


def _unknown(situation: Situation, topics: Iterable[str]) -> list[str]:
    topology = situation.topology
    known = {*map(situation.full_name, topology.inputs), *situation.names.all_of(topology)}
    read = set(topics) - known
    # Patterns have findings of their own.
    matched = {t for pattern in situation.application.source_patterns for t in matching(pattern, read)}
    return sorted(read - matched)
