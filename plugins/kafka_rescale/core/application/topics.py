"""Topics as an application file declares them, and what may be asked of their producers."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Literal

from pydantic import Field, field_validator, model_validator

from kafka_rescale.core.application.fields import (
    COMMAND_SECONDS,
    Name,
    PartitionCount,
    Strict,
    WholeNumber,
    checked,
)
from kafka_rescale.core.application.mistakes import WrongValue
from kafka_rescale.core.partitioning.partitioners import partitioner_named
from kafka_rescale.core.topology.topic_names import is_topic_name
from kafka_rescale.core.topology.topology import REPARTITION_SUFFIX


class InputPolicy(StrEnum):
    """What the producers of an input topic may be asked to do."""

    UNKEYED = "unkeyed"
    PAUSED = "paused"
    REPARTITIONED = "repartitioned"
    FIXED = "fixed"


class Producers(Strict):
    """How the producers of a ``paused`` input are held and released.

    :param stop: command, one program with its arguments. It returns when no producer writes any more. Needs
        ``start``.
    :param start: command that lets the producers write again.
    :param application: instead of commands, the application whose output the input is. Its running generation is
        stopped and started as its own file says.
    :param timeout_seconds: how long each command may take.
    """

    stop: str = ""
    start: str = ""
    application: Name | None = None
    timeout_seconds: WholeNumber = Field(default=COMMAND_SECONDS, ge=1)

    @property
    def commands(self) -> dict[str, str]:
        """The commands by the name of their field; empty if an application is held instead."""
        return {"stop": self.stop, "start": self.start} if self.application is None else {}

    @model_validator(mode="after")
    def _one_way(self) -> Producers:
        given = [f"`{name}:`" for name in ("stop", "start", "application") if getattr(self, name)]
        if given not in (["`stop:`", "`start:`"], ["`application:`"]):
            found = f"only {given[0]}" if len(given) == 1 else " and ".join(given) or "none of them"
            raise WrongValue(
                found=found,
                expected="`stop:` and `start:`, or `application:` alone",
                remedy="Give one way.",
            )
        return self


SUCCESSOR = "{topic}-p{partitions}"
"""Default name of the topic that follows a ``repartitioned`` input."""


class Input(Strict):
    """An input topic, its policy and the partitioner that its producers use.

    :param topic: its name in the topology of the first generation, even if a successor is read by now.
    :param successor: for ``repartitioned``, the name of the next topic; ``{topic}`` and ``{partitions}`` are
        filled in.
    :param silent_seconds: for ``repartitioned``, how long the old topic must have got no records before its bridge
        ends: longer than any producer pauses between two records.
    :param isolation_level: the isolation level with which the program reads it. A bridge that is killed leaves
        records of an aborted transaction behind.
    """

    topic: Name
    policy: InputPolicy
    partitioner: str = "murmur2"
    producers: Producers | None = None
    successor: str | None = None
    silent_seconds: WholeNumber = Field(default=3600, ge=1)
    isolation_level: Literal["read_uncommitted", "read_committed"] = "read_uncommitted"

    @field_validator("partitioner")
    @classmethod
    def _known_partitioner(cls, value: str) -> str:
        return checked(value, partitioner_named)

    @field_validator("successor")
    @classmethod
    def _name_of_a_topic(cls, value: str | None) -> str | None:
        try:
            name = value is None or value.format(topic="topic", partitions=1)
        except (KeyError, IndexError, ValueError, AttributeError, TypeError):
            name = ""
        if name is not True and not is_topic_name(str(name)):
            raise WrongValue(
                found=repr(value),
                expected="the name of a topic, with no other placeholders than {topic} and {partitions}",
                remedy="Correct it.",
            )
        return value

    def successor_topic(self, partitions: int) -> str:
        """Return the name of the topic that follows this one in an expansion to a number of partitions."""
        return (self.successor or SUCCESSOR).format(topic=self.topic, partitions=partitions)

    def may_be_followed_by(self, topic: str) -> bool:
        """Return whether some expansion could have made a topic that follows this one."""
        counts = {int(run[at:]) for run in re.findall("[0-9]+", topic) for at in range(len(run))}
        return self.policy is InputPolicy.REPARTITIONED and any(
            self.successor_topic(count) == topic for count in {1, *counts}
        )


class Output(Strict):
    """An output topic. ``partitions`` makes it grow, for good, in the first stage that writes to it."""

    topic: Name
    partitions: PartitionCount | None = None


class Repartition(Strict):
    """What decides the count of a repartition topic.

    ``derived``: Kafka Streams derives it from the sources. ``start_command``: the program takes it from
    ``{partitions}`` in its start command and sets it by ``withNumberOfPartitions``. ``fixed``: the program sets a
    constant by ``withNumberOfPartitions``, so the topic keeps its count. ``joined``: derived, but the program
    joins the topic with another source of its sub-topology, and it takes that source's count. ``describe()`` does
    not tell a join from a merge, whose topics keep their own counts.
    """

    name: Name
    count: Literal["derived", "start_command", "fixed", "joined"] = "derived"
    partitioner: str = "murmur2"

    @property
    def topic(self) -> str:
        """The name of its topic in the topology, without the application id."""
        return f"{self.name}{REPARTITION_SUFFIX}"

    @field_validator("partitioner")
    @classmethod
    def _known_partitioner(cls, value: str) -> str:
        return checked(value, partitioner_named)


class SubTopologySpec(Strict):
    """A sub-topology spelled out, for applications whose ``Topology#describe()`` is not at hand."""

    sources: tuple[Name, ...] = Field(min_length=1)
    stores: tuple[Name, ...] = ()
    sinks: tuple[Name, ...] = ()
