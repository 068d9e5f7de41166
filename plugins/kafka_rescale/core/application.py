"""The application file: declarative desired state, one YAML per application (DESIGN of the file in the README)."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from kafka_rescale.core.changelog_formats import PROCESSOR, ChangelogFormat, format_of
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.key_layouts import layout_named
from kafka_rescale.core.partitioners import partitioner_named

TOPIC_NAME = r"^[a-zA-Z0-9._-]{1,200}$"
Name = Annotated[str, Field(pattern=TOPIC_NAME)]
PartitionCount = Annotated[int, Field(ge=1, le=100_000)]


class Strict(BaseModel):
    """Unknown fields are errors: a misspelt field must not be silently ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class InputPolicy(StrEnum):
    """What the producers of an input topic may be asked to do."""

    UNKEYED = "unkeyed"
    PAUSED = "paused"
    REPARTITIONED = "repartitioned"
    FIXED = "fixed"


class Producers(Strict):
    """How the producers of a ``paused`` input are held and released.

    :param stop: shell command; with ``start``.
    :param start: shell command.
    :param application: instead of commands, the application whose output the input is; its running generation is
        stopped and started as its own file says.
    """

    stop: str = ""
    start: str = ""
    application: Name | None = None

    @model_validator(mode="after")
    def _one_way(self) -> Producers:
        if (self.application is None) != bool(self.stop and self.start) or bool(self.stop) != bool(self.start):
            raise ValueError(
                "found neither or both; expected `stop:` and `start:`, or `application:`. Give one way."
            )
        return self


SUCCESSOR = "{topic}-p{partitions}"
"""Name of the topic that follows a ``repartitioned`` input, where the file gives no other."""


class Input(Strict):
    """An input topic, its policy and the partitioner that its producers use.

    :param topic: as the topology of the first generation names it, also when a successor is read by now.
    :param successor: for ``repartitioned``, the name of the next topic; ``{topic}`` and ``{partitions}`` are
        filled in.
    :param silent_seconds: for ``repartitioned``, how long nothing must have come into the old topic before its
        bridge ends: longer than any producer pauses between two records.
    """

    topic: Name
    policy: InputPolicy
    partitioner: str = "murmur2"
    producers: Producers | None = None
    successor: str | None = None
    silent_seconds: int = Field(default=3600, ge=1)

    @field_validator("partitioner")
    @classmethod
    def _known_partitioner(cls, value: str) -> str:
        return _named(value, partitioner_named)

    @field_validator("successor")
    @classmethod
    def _name_of_a_topic(cls, value: str | None) -> str | None:
        try:
            name = value is None or value.format(topic="topic", partitions=1)
        except (KeyError, IndexError, ValueError):
            name = ""
        if name is not True and not re.fullmatch(TOPIC_NAME, str(name)):
            raise ValueError("give the name of a topic, with no other placeholders than {topic} and {partitions}")
        return value

    def successor_topic(self, partitions: int) -> str:
        """Return the name of the topic that follows this one at an expansion to so many partitions."""
        return (self.successor or SUCCESSOR).format(topic=self.topic, partitions=partitions)


class Output(Strict):
    """An output topic; ``partitions`` makes it grow, first of all stages and for good."""

    topic: Name
    partitions: PartitionCount | None = None


class Store(Strict):
    """A state store as the topology names it.

    ``changelog: source`` is what ``topology.optimization`` makes of a table that is read from a topic: the topic
    itself serves as its changelog, and can't be rewritten.

    :param partitioning_key: where a Processor-API store's keys have the key of the records that it was made from:
        ``whole``, ``drop-last-N``, ``first-N`` (bytes) or ``module:function``.
    """

    name: Name
    type: str
    partitioning_key: str = Field(default="", validate_default=True)
    partitioner: str = "murmur2"
    changelog: Literal["own", "source"] = "own"

    @field_validator("type")
    @classmethod
    def _known_type(cls, value: str) -> str:
        return value if value == PROCESSOR else _named(value, format_of)

    @field_validator("partitioning_key")
    @classmethod
    def _extractor(cls, value: str, info: ValidationInfo) -> str:
        kind = info.data.get("type", "")
        if kind == PROCESSOR:
            return _named(value, layout_named)
        if value and kind:
            raise ValueError(
                f"found {value!r} for a store of type {kind}; expected it with type {PROCESSOR} only. "
                f"Delete it: where {kind} stores have the partitioning key is known."
            )
        return value

    @property
    def format(self) -> ChangelogFormat:
        """How it writes its changelog."""
        return format_of(self.type, self.partitioning_key)

    @field_validator("partitioner")
    @classmethod
    def _known_partitioner(cls, value: str) -> str:
        return _named(value, partitioner_named)


class Repartition(Strict):
    """How the count of a repartition topic comes about.

    ``derived``: by Kafka Streams from the sources. ``start_command``: the program takes it from
    ``{partitions}`` in its start command and sets it by ``withNumberOfPartitions``.
    """

    name: Name
    count: Literal["derived", "start_command"] = "derived"
    partitioner: str = "murmur2"

    @field_validator("partitioner")
    @classmethod
    def _known_partitioner(cls, value: str) -> str:
        return _named(value, partitioner_named)


class SubTopologySpec(Strict):
    """A sub-topology spelled out, for applications whose ``Topology#describe()`` is not at hand."""

    sources: tuple[Name, ...]
    stores: tuple[Name, ...] = ()
    sinks: tuple[Name, ...] = ()


class ShellLifecycle(Strict):
    """Commands with ``{application_id}``, ``{partitions}``, ``{generation}``, ``{internal_topic_prefix}`` and
    ``{input:NAME}`` filled in.

    ``{input:orders}`` is the topic that the instance has to read as its input ``orders``: the topic itself, or the
    successor that a ``repartitioned`` input has got.
    ``start`` and ``stop`` must return when done and may be called twice. ``status`` exits with 0 (running) or
    3 (stopped), as LSB init scripts do. ``start_gated`` starts the instances behind the warm-up gate, with the
    local state directories that ``start`` uses afterwards; without it, green is not pre-warmed.
    """

    type: Literal["shell"]
    start: str
    start_gated: str | None = None
    stop: str
    status: str
    timeout_seconds: int = Field(default=120, ge=1)


class PythonLifecycle(Strict):
    """A class ``module:Name``: ``start(instance)``, ``stop(instance)`` and ``is_running(instance) -> bool``.

    With ``start_gated(instance)`` as well, green is pre-warmed behind the warm-up gate.
    """

    type: Literal["python"]
    callable: Annotated[str, Field(pattern=r"^[\w.]+:\w+$")]


class ManualLifecycle(Strict):
    """A person starts and stops the instances; Kafka shows when it is done.

    ``start_gated`` says how to start them behind the warm-up gate; without it, green is not pre-warmed.
    """

    type: Literal["manual"]
    instructions: str = ""
    start_gated: str | None = None
    timeout_seconds: int = Field(default=1800, ge=1)


Lifecycle = Annotated[ShellLifecycle | PythonLifecycle | ManualLifecycle, Field(discriminator="type")]


class Application(Strict):
    """One application file.

    :param application_id: the ``application.id`` of the first generation; later ones add a suffix.
    :param partitions: desired parallelism; inputs that grow and internal topics get this count.
    :param topology: text printed by ``Topology#describe()`` (the loader resolves a file name to its text).
    :param acceptable_recovery_lag: offsets per partition within which the gate opens (KIP-441's default).
    :param max_pause_seconds: from the stop of the running generation to promotion; past it, it is started again.
    :param chain: name of a chain of applications that are expanded by one trigger, downstream first.
    :param internal_topic_prefix: what ``__internal.override.topic.prefix__`` puts in the place of the
        ``application.id`` in the names of internal topics; generations add their suffix to it.
    :param green_names: the next generation's name of a store or repartition (without suffix), by its present name:
        generated indexes shift when the program has changed.
    :param max_restore_seconds: for green to restore its stores behind the warm-up gate.
    :param bridge_cores: of a standalone Spark cluster, that the bridge of a repartitioned input keeps for weeks.
    :param schedule: cron expression or preset of its expansion DAG; without one only a person or another program
        starts an expansion, and it can't be backfilled.
    """

    application_id: Name
    runtime: Literal["kafka-streams"] = "kafka-streams"
    mode: Literal["blue_green"] = "blue_green"
    kafka_conn_id: str = "kafka_default"
    spark_conn_id: str = "spark_default"
    partitions: PartitionCount
    inputs: tuple[Input, ...] = Field(min_length=1)
    outputs: tuple[Output, ...] = ()
    topology: str | None = None
    subtopologies: tuple[SubTopologySpec, ...] = ()
    stores: tuple[Store, ...] = ()
    repartitions: tuple[Repartition, ...] = ()
    internal_topic_prefix: Name | None = None
    green_names: dict[Name, Name] = Field(default_factory=dict)
    lifecycle: Lifecycle
    acceptable_recovery_lag: int = Field(default=10_000, ge=0)
    max_pause_seconds: int = Field(default=300, ge=10)
    max_restore_seconds: int = Field(default=3600, ge=10)
    on_partition_expansion: Annotated[str, Field(pattern=r"^[\w.]+:\w+$")] | None = None
    spark_conf: dict[str, str] = Field(default_factory=dict)
    bridge_cores: int = Field(default=1, ge=1)
    chain: Name | None = None
    schedule: str | None = None
    tags: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _one_topology(self) -> Application:
        if (self.topology is None) == (not self.subtopologies):
            raise ValueError("give either `topology:` (what Topology#describe() prints) or `subtopologies:`")
        return self

    def input_named(self, topic: str) -> Input:
        """Return the declaration of an input topic."""
        return next(i for i in self.inputs if i.topic == topic)

    def store_named(self, name: str) -> Store:
        """Return the declaration of a store."""
        return next(s for s in self.stores if s.name == name)

    def repartition_partitioner(self, topic: str) -> str:
        """Return the partitioner of a repartition topic, named with its suffix."""
        declared = {f"{r.name}-repartition": r.partitioner for r in self.repartitions}
        return declared.get(topic, "murmur2")

    def internal_prefix(self, application_id: str) -> str:
        """Return what the names of a generation's internal topics begin with.

        :param application_id: the generation's.
        """
        if self.internal_topic_prefix is None:
            return application_id
        return self.internal_topic_prefix + application_id.removeprefix(self.application_id)

    def enforced_counts(self, partitions: int) -> dict[str, int]:
        """Return the counts that the program sets itself when started with ``{partitions}``.

        Keys carry the ``-repartition`` suffix, as the topology names them.
        """
        return {f"{r.name}-repartition": partitions for r in self.repartitions if r.count == "start_command"}


def _named(value: str, lookup: object) -> str:
    try:
        lookup(value)  # type: ignore[operator]
    except InvalidInput as error:
        raise ValueError(f"found {error.found}; expected {error.expected}. {error.remedy}") from None
    return value
