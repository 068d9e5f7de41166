"""The generations of an application: the running one and those before it."""

from __future__ import annotations

from pydantic import Field

from kafka_rescale.core.journal import PartitionOffsets
from kafka_rescale.core.values import Value


class PastGeneration(Value):
    """A generation that has run.

    :param running: its ``application.id``.
    :param since_ms: as in ``Generations``.
    :param until_ms: wall clock when it was asked to stop for good.
    :param committed: where it stopped reading its inputs.
    :param ends: exclusive ends of its changelogs, where these have gone on as the next generation's.
    """

    running: str
    generation: int
    since_ms: int
    until_ms: int
    committed: PartitionOffsets = Field(default_factory=dict)
    ends: PartitionOffsets = Field(default_factory=dict)


class Generations(Value):
    """The incarnations of an application: ``running`` is the ``application.id`` that owns the inputs.

    :param inputs: what the running one reads instead of an input that was repartitioned, by the name in the file.
    :param grown_from: counts that internal topics of the running one had before they were grown in place.
    :param grown_inputs: counts that inputs had before expansions grew them; processed records still lie by them.
    :param retired: earlier ones whose topics have been deleted.
    :param left: the internal topics of earlier ones that have not been retired.
    :param since_ms: wall clock when the one before was asked to stop; 0 if unknown, and for the first.
    :param past: those before, the oldest first, as far as they are known.
    :param begins: log starts of changelogs that did not begin at 0, because a copy into them was begun anew.
    """

    running: str
    generation: int = 1
    partitions: int = 0
    retired: tuple[str, ...] = ()
    previous: str = ""
    inputs: dict[str, str] = Field(default_factory=dict)
    grown_from: dict[str, tuple[int, ...]] = Field(default_factory=dict)
    grown_inputs: dict[str, tuple[int, ...]] = Field(default_factory=dict)
    left: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    since_ms: int = 0
    past: tuple[PastGeneration, ...] = ()
    begins: PartitionOffsets = Field(default_factory=dict)
