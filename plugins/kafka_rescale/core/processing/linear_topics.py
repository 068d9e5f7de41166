"""The check of the topics that a file declares under ``linear_hashing``."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType

from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.topology.topology import Topology


def require_linear_topics(
    linear: Mapping[str, int],
    topology: Topology,
    moved: Collection[str] = (),
    counts: Mapping[str, int] = MappingProxyType({}),
) -> None:
    """Refuse a declaration of a topic that the pipeline does not use, or of a count that an output never had.

    :param linear: by topic, the declared count with which it was created.
    :param moved: the topics to which backfills write outputs.
    :param counts: the present partition counts of topics, as far as they are known.
    :raises InvalidInput: a name is no topic of the pipeline, or an output has fewer partitions than declared.
    """
    outputs = {*topology.outputs, *moved}
    known = {*topology.inputs, *outputs, *topology.repartitions}
    if unknown := sorted(linear.keys() - known):
        raise InvalidInput(
            "linear_hashing",
            found=", ".join(unknown),
            expected=f"inputs and outputs of the pipeline: {', '.join(sorted(known - topology.repartitions))}",
            remedy="Correct the name. If a topic isn't named here, its keys count as placed in another way.",
        )
    for topic in sorted(linear.keys() & outputs & counts.keys()):
        if counts[topic] < linear[topic]:
            raise InvalidInput(
                f"linear_hashing of {topic}",
                found=f"{linear[topic]}, and a topic of {counts[topic]} partitions",
                expected="the count that it was created with",
                remedy="Correct the count: a topic never has fewer partitions than at the beginning.",
            )
