"""Preflight: which other applications read the inputs and outputs that the expansion grows?

A topic can't grow for one of its readers alone. The application files beside this one tell some of its readers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kafka_rescale.core.application.streams import Application, Mode
from kafka_rescale.core.application.topics import Input, InputPolicy
from kafka_rescale.core.errors import Finding
from kafka_rescale.core.partitioning.partitioners import partitioner_named
from kafka_rescale.core.plan.external_topics import Growth
from kafka_rescale.core.plan.shared_inputs import GROWING, follows, read_as
from kafka_rescale.core.preflight.situation import Situation


@dataclass(frozen=True)
class _Endangered:
    """A topic that would grow under another application.

    :param reader: the other application.
    :param read: the input as which its file names the topic.
    :param grows_it: whether its own expansion makes the partitions, so that the topic need not grow here.
    """

    growth: Growth
    reader: Application
    read: Input
    grows_it: bool

    @property
    def goes_on(self) -> bool:
        """Whether preflight may let the reader expand when its input has grown: see ``grown_inputs``.

        A reader with the policy ``repartitioned`` may read another topic by now, which its file does not tell.
        """
        if self.reader.mode is Mode.IN_PLACE:
            return False
        is_static = partitioner_named(self.read.partitioner, self.read.topic).is_static
        return is_static or self.read.policy in (InputPolicy.UNKEYED, InputPolicy.REPARTITIONED)

    @property
    def is_successor(self) -> bool:
        """Whether the reader's file names the topic's predecessor."""
        return self.read.topic != self.growth.topic


def endangered_readers(situation: Situation) -> Iterator[Finding]:
    """Yield topics that would grow under another application, if preflight would refuse to expand it then.

    An output may not grow under a reader either whose own expansion comes before, and makes the partitions.
    """
    for each in _endangered(situation):
        growth, name = each.growth, each.reader.application_id
        if each.grows_it:
            yield Finding(
                f"topic {growth.topic!r}",
                f"a growth from {growth.current} to {growth.target} partitions, while application {name} "
                f"{_reads_by_then(situation, each)}",
                f"{growth.target} partitions in {name} before: Kafka Streams shuts it down at its next rebalance "
                "if the topic grows under it",
                _left_to_reader(situation, each),
            )
        elif not each.goes_on:
            yield Finding(
                f"topic {growth.topic!r}",
                f"a growth from {growth.current} to {growth.target} partitions, while application {name} reads it "
                f"with policy {each.read.policy}",
                f"no growth under {name}: Kafka Streams would shut it down at its next rebalance, and preflight "
                "would refuse to expand it from there",
                _remedy(situation, each),
            )


def unknown_readers(situation: Situation) -> Iterator[Finding]:
    """Yield topics that would grow although a file that can't be used names them as inputs."""
    for growth in _growths(situation):
        for unusable in situation.unusable:
            if growth.topic in unusable.topics:
                yield Finding(
                    f"topic {growth.topic!r}",
                    f"a growth from {growth.current} to {growth.target} partitions, while {unusable.file} names "
                    "it and can't be used",
                    "a file that tells whether its application can go on: Kafka Streams shuts down an application "
                    "under which an input grows",
                    "`python -m kafka_rescale validate FILE` says what is wrong with it. Mend it; or move it out "
                    "of the directory if nothing runs by it.",
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
    for each in _endangered(situation):
        if each.goes_on and not each.grows_it:
            yield _how_it_goes_on(each)
    for growth in growths:
        for other, topology in situation.beside:
            if growth.topic in topology.global_topics:
                yield (
                    f"{growth.topic}: application {other.application_id} reads it into a global store. Restart "
                    "the application after the growth: a running client does not read partitions that are added."
                )


def _how_it_goes_on(endangered: _Endangered) -> str:
    growth, name = endangered.growth, endangered.reader.application_id
    moved, reads = endangered.read.policy is InputPolicy.REPARTITIONED, "reads it, too"
    if endangered.is_successor:
        reads = f"may read it as the successor of {endangered.read.topic}"
    elif moved:
        reads = f"{reads}, or its successor by now"
    other = "another topic by now" if endangered.is_successor else "the successor"
    return (
        f"{growth.topic}: application {name} {reads}. "
        f"Stop {name} before the topic grows, and trigger expand_{name} with target {growth.target} "
        f"afterwards: {name} goes on from its committed offsets."
        f"{f' If it reads {other}, there is nothing to do.' if moved else ''}"
    )


def _growths(situation: Situation) -> list[Growth]:
    plan = situation.plan
    inputs = [Growth(topic=i.topic, current=i.current, target=i.target) for i in plan.inputs if i.grows]
    # Several sub-topologies may write one output.
    outputs = {growth.topic: growth for stage in plan.stages for growth in stage.grow_outputs}
    return [*inputs, *outputs.values()]


def _endangered(situation: Situation) -> Iterator[_Endangered]:
    for growth in _growths(situation):
        for neighbour in situation.beside:
            reader = neighbour[0]
            read = read_as(reader, growth.topic)
            if read is not None and follows(neighbour, growth.topic):
                found = _Endangered(growth, reader, read, _grows_it(situation, growth, reader, read))
                if not (found.grows_it and growth.target <= _count_by_then(situation, found)):
                    yield found


def _grows_it(situation: Situation, growth: Growth, reader: Application, read: Input) -> bool:
    """Return whether an output's partitions come from the reader's own expansion.

    A chain expands the reader first. A reader of a successor gets the next one.
    """
    if _is_input(situation, growth):
        return False
    chained = situation.application.chain is not None and situation.application.chain == reader.chain
    return read.topic != growth.topic or (chained and read.policy in GROWING)


def _count_by_then(situation: Situation, endangered: _Endangered) -> int:
    """Return the topic's count before it would grow here: the run of a chain expands the reader first."""
    run, is_read_on = situation.chain_run, not endangered.is_successor
    expanded = run.target_of(endangered.reader) if run is not None and is_read_on else 0
    return max(endangered.growth.current, expanded)


def _is_input(situation: Situation, growth: Growth) -> bool:
    return any(i.topic == growth.topic for i in situation.plan.inputs)


def _reads_by_then(situation: Situation, endangered: _Endangered) -> str:
    if endangered.is_successor:
        return f"may read it as the successor of {endangered.read.topic}"
    reads = f"reads it with policy {endangered.read.policy}"
    count = _count_by_then(situation, endangered)
    return reads if situation.chain_run is None else f"{reads}, and has {count} by then"


def _left_to_reader(situation: Situation, endangered: _Endangered) -> str:
    reader, target = endangered.reader, endangered.growth.target
    delete = f"Delete `partitions:` of this output: expand_{reader.application_id}"
    if endangered.is_successor:
        return f"{delete} goes on with a new topic."
    return (
        f"{delete} grows it. Or expand {reader.application_id} to {target} first, with which expand_chain_"
        f"{reader.chain} begins."
    )


def _remedy(situation: Situation, endangered: _Endangered) -> str:
    topic, grows = endangered.growth.topic, endangered.read.policy in GROWING
    if _is_input(situation, endangered.growth):
        keeps = "`repartitioned`, which leaves the topic as it is"
        return f"Declare `policy: fixed` for {topic} here; or {keeps}."
    by_reader = f": expand_{endangered.reader.application_id} grows it" if grows else ""
    return f"Delete `partitions:` of this output{by_reader}."
