"""Preflight: which other applications read the inputs and outputs that the expansion grows?

A topic can't grow for one of its readers alone. The application files beside this one tell some of its readers.
"""

from __future__ import annotations

from collections.abc import Iterator

from kafka_rescale.core.application.streams import Application, Mode
from kafka_rescale.core.application.topics import InputPolicy
from kafka_rescale.core.errors import Finding
from kafka_rescale.core.partitioning.partitioners import partitioner_named
from kafka_rescale.core.plan.external_topics import Growth
from kafka_rescale.core.plan.shared_inputs import GROWING, Declared, follows, share_a_cluster
from kafka_rescale.core.preflight.situation import Situation


def endangered_readers(situation: Situation) -> Iterator[Finding]:
    """Yield topics that would grow under another application, if preflight would refuse to expand it then."""
    for growth, other in _endangered(situation):
        name, policy = other.application_id, other.input_named(growth.topic).policy
        if not _goes_on(other, growth):
            yield Finding(
                f"topic {growth.topic!r}",
                f"a growth from {growth.current} to {growth.target} partitions, while application {name} reads it "
                f"with policy {policy}",
                f"no growth under {name}: Kafka Streams would shut it down at its next rebalance, and preflight "
                "would refuse to expand it from there",
                _remedy(situation, growth, other),
            )


def reader_messages(situation: Situation) -> Iterator[str]:
    """Yield the topics that grow, and what to do about the other applications that read them."""
    growths = _growths(situation)
    if growths:
        yield (
            f"{', '.join(g.topic for g in growths)}: every other reader meets the growth. If a Kafka Streams "
            "application among them has internal topics that follow from it, the application shuts down at its "
            "next rebalance."
        )
    for growth, other in _endangered(situation):
        name = other.application_id
        if _goes_on(other, growth):
            moved = other.input_named(growth.topic).policy is InputPolicy.REPARTITIONED
            yield (
                f"{growth.topic}: application {name} reads it, too{', or its successor by now' if moved else ''}. "
                f"Stop {name} before the topic grows, and trigger expand_{name} with target {growth.target} "
                f"afterwards: {name} goes on from its committed offsets."
                f"{' If it reads the successor, there is nothing to do.' if moved else ''}"
            )
    for growth in growths:
        for other, topology in _neighbours(situation):
            if growth.topic in topology.global_topics:
                yield (
                    f"{growth.topic}: application {other.application_id} reads it into a global store. Restart "
                    "the application after the growth: a running client does not read partitions that are added."
                )


def _growths(situation: Situation) -> list[Growth]:
    plan = situation.plan
    inputs = [Growth(topic=i.topic, current=i.current, target=i.target) for i in plan.inputs if i.grows]
    # Several sub-topologies may write one output.
    outputs = {growth.topic: growth for stage in plan.stages for growth in stage.grow_outputs}
    return [*inputs, *outputs.values()]


def _neighbours(situation: Situation) -> Iterator[Declared]:
    return (each for each in situation.neighbours if share_a_cluster(situation.application, each[0]))


def _endangered(situation: Situation) -> Iterator[tuple[Growth, Application]]:
    for growth in _growths(situation):
        for neighbour in _neighbours(situation):
            if follows(neighbour, growth.topic) and not _is_expanded_before(situation, growth, neighbour[0]):
                yield growth, neighbour[0]


def _is_expanded_before(situation: Situation, growth: Growth, reader: Application) -> bool:
    """Return whether the chain of both applications expands the reader first, which grows the topic itself."""
    own = situation.application
    if not own.chain or own.chain != reader.chain or _is_input(situation, growth):
        return False
    return reader.input_named(growth.topic).policy in GROWING


def _is_input(situation: Situation, growth: Growth) -> bool:
    return any(i.topic == growth.topic for i in situation.plan.inputs)


def _goes_on(reader: Application, growth: Growth) -> bool:
    """Return whether preflight may let a reader expand whose input has grown: see ``grown_inputs``.

    A reader with the policy ``repartitioned`` may read a successor by now, which its file does not tell.
    """
    if reader.mode is Mode.IN_PLACE:
        return False
    declared = reader.input_named(growth.topic)
    is_static = partitioner_named(declared.partitioner, declared.topic).is_static
    return is_static or declared.policy in (InputPolicy.UNKEYED, InputPolicy.REPARTITIONED)


def _remedy(situation: Situation, growth: Growth, reader: Application) -> str:
    if _is_input(situation, growth):
        keeps = "`repartitioned`, which leaves the topic as it is"
        return f"Declare `policy: fixed` for {growth.topic} here; or {keeps}."
    grows = reader.input_named(growth.topic).policy in GROWING
    return f"Delete `partitions:` of this output{f': expand_{reader.application_id} grows it' if grows else ''}."
