"""Do the lists of topics that stand for patterns agree with the rest of an application file?"""

from __future__ import annotations

from collections.abc import Iterator

from kafka_rescale.core.application.mistakes import Mistake, unknown
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.application.topics import InputPolicy
from kafka_rescale.core.topology.patterns import matching
from kafka_rescale.core.topology.topology import Topology


def source_patterns(application: Application, topology: Topology) -> Iterator[Mistake]:
    """Yield listed topics that their pattern does not match, that no source reads, or that are to be replaced."""
    repartitioned = {i.topic for i in application.inputs if i.policy is InputPolicy.REPARTITIONED}
    for pattern, listed in application.source_patterns.items():
        where = ("source_patterns", pattern)
        for index, topic in enumerate(listed):
            if topic not in matching(pattern, [topic]):
                yield Mistake(
                    (*where, index),
                    f"{topic}, which the pattern {pattern} does not match",
                    "topics whose whole names it matches",
                    "Delete it, or correct it.",
                )
            elif topic not in topology.inputs:
                yield unknown((*where, index), "input topic", topic, topology.inputs)
            elif topic in repartitioned:
                yield Mistake(
                    (*where, index),
                    f"{topic}, whose policy is repartitioned",
                    "another policy: the program reads what its pattern matches, and can't be given another topic",
                    "Choose another policy, or name the topics in the program.",
                )
