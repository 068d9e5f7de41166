"""Applications that read one topic. If one of them grows the topic, it grows under the others as well.

Kafka Streams shuts a running application down at its next rebalance if internal topics don't have the counts that
follow from its inputs any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.application.topics import Input, InputPolicy
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.topology.patterns import matching
from kafka_rescale.core.topology.topology import Topology

Declared = tuple[Application, Topology]
"""An application as its file declares it, and its topology."""


@dataclass(frozen=True)
class Unusable:
    """An application file that can't be used.

    :param topics: topics of another application that it names as inputs, as far as that can be told.
    """

    file: str
    topics: frozenset[str]


GROWING = (InputPolicy.UNKEYED, InputPolicy.PAUSED)


def read_as(reader: Application, topic: str) -> Input | None:
    """Return the input as which an application reads a topic, as far as its file tells; None if it does not.

    The file goes on to name an input that was repartitioned. So a topic that may be its successor may be read.
    """
    named = (i for i in reader.inputs if i.topic == topic)
    return next(named, None) or next((i for i in reader.inputs if i.may_be_followed_by(topic)), None)


def may_bridge_into(application: Application, topic: str) -> bool:
    """Return whether an expansion of an application may make a topic, to which its bridge then writes."""
    return any(declared.may_be_followed_by(topic) for declared in application.inputs)


def uses(declared: Declared, topic: str) -> bool:
    """Return whether an application reads or writes a topic, as far as its file tells."""
    application, topology = declared
    used = {*topology.inputs, *topology.global_topics, *topology.outputs, *(o.topic for o in application.outputs)}
    by_pattern = any(matching(pattern, [topic]) for pattern in application.source_patterns)
    return topic in used or by_pattern or read_as(application, topic) is not None


def follows(reader: Declared, topic: str) -> bool:
    """Return whether an application reads a topic and has internal topics whose counts follow from it."""
    application, topology = reader
    declared = read_as(application, topic)
    if declared is None:
        return False
    set_by_program = application.enforced_counts(1, dict.fromkeys(topology.repartitions, 1))
    derived = topology.repartitions - set_by_program.keys()
    return any(
        declared.topic in s.sources and (s.is_stateful or not derived.isdisjoint(s.sinks))
        for s in topology.subtopologies
    )


def share_a_cluster(one: Application, other: Application) -> bool:
    """Return whether two files name one Airflow connection. Only then their topics are known to be the same."""
    return one.kafka_conn_id == other.kafka_conn_id


def refuse_shared_growth(chain: str, members: Sequence[Declared]) -> None:
    """Refuse a chain in which one member grows an input that another member reads.

    The other member would be down from its next rebalance until its own turn comes, which may be days later.

    :param chain: name of the chain, for the error.
    :raises InvalidInput: there are two such members.
    """
    for grower, _ in members:
        for topic in (i.topic for i in grower.inputs if i.policy in GROWING):
            for reader in members:
                name, other = grower.application_id, reader[0]
                if other is not grower and share_a_cluster(grower, other) and follows(reader, topic):
                    raise _shared(chain, topic, name, other)


def refuse_shared_successors(chain: str, members: Sequence[Application]) -> None:
    """Refuse a chain in which the topics that follow inputs of two members may have one name.

    :param chain: name of the chain, for the error.
    :raises InvalidInput: there are two such members.
    """
    for one, other in permutations(members, 2):
        for declared in (i for i in one.inputs if i.policy is InputPolicy.REPARTITIONED):
            name = declared.successor_topic(one.partitions)
            if share_a_cluster(one, other) and may_bridge_into(other, name):
                raise InvalidInput(
                    f"chain {chain!r}",
                    found=f"{name}, which may follow an input of {one.application_id}, and one of "
                    f"{other.application_id} as well",
                    expected="a topic of its own for each: the bridges of both would carry every record into it",
                    remedy=f"Give the input {declared.topic} another `successor:` in the file of one that has not "
                    "moved yet.",
                )


def _shared(chain: str, topic: str, grower: str, other: Application) -> InvalidInput:
    read = read_as(other, topic)
    way_on = f"; or take {other.application_id} out of the chain: preflight of {grower} says when to expand it"
    return InvalidInput(
        f"chain {chain!r}",
        found=f"the input {topic}, which {grower} grows, and which {other.application_id} reads as well",
        expected="inputs that only one member reads if they grow: Kafka Streams shuts down an application under "
        "which an input grows",
        remedy=f"Declare `policy: fixed` for {topic} in both; or `repartitioned`, with a `successor:` of its own "
        f"in each, which leaves {topic} as it is"
        f"{way_on if read is not None and read.policy is InputPolicy.UNKEYED else ''}.",
    )
