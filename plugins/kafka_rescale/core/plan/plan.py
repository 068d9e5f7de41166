"""The plan of an expansion, as a value that the journal keeps: stages, and the topics that they move."""

from __future__ import annotations

import hashlib
import json
from enum import StrEnum
from typing import Any

from pydantic import Field

from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.formats.subscription_wrapper import LeftTable
from kafka_rescale.core.plan.external_topics import Growth, InputPlan
from kafka_rescale.core.topology.topology import CHANGELOG_SUFFIX
from kafka_rescale.core.values import Value


class MoveKind(StrEnum):
    """The role of a topic in the application. Topics of foreign-key joins are moved like repartition topics."""

    CHANGELOG = "changelog"
    REPARTITION = "repartition"
    INPUT = "input"


class Move(Value):
    """One topic of the running generation and its successor.

    :param store: the store's name for a changelog, the repartition's (with suffix), or the input's as declared.
    :param store_type: for a changelog, the declared store type.
    :param key_topic: the topic name that is passed to a user's partitioner, as in the topology: the repartition
        topic itself; for a changelog, the topic that its sub-topology reads.
    :param earlier_partitions: for an input that was grown by hand, the count that blue knew; 0 otherwise.
    :param partitioning_key: for a Processor-API store, the place of the partitioning key in its keys.
    :param left: for topics of foreign-key subscriptions, the table whose partitions their values name.
    :param grown_from: the counts that the source had before it was grown in place; keys that have moved since have
        left records behind in their former partitions.
    :param compression: the codec of the source's records, with which they are written again; empty without one.
    :param producers: how many producers write the copy; each has the source partitions with one remainder. 0 in a
        plan of a version that had a producer per partition. All attempts at a generation must use the same number,
        because a transactional id fences only its own earlier producers.
    """

    kind: MoveKind
    source: str
    target: str
    store: str
    store_type: str = ""
    partitioning_key: str = ""
    partitioner: str = "murmur2"
    key_topic: str = ""
    left: LeftTable | None = None
    source_partitions: int
    target_partitions: int
    earlier_partitions: int = 0
    grown_from: tuple[int, ...] = ()
    compression: str = ""
    producers: int = 0

    @property
    def is_in_place(self) -> bool:
        """Whether the topic is its own successor: it grows, and only records of keys that move are copied."""
        return self.source == self.target

    @property
    def grows(self) -> bool:
        """Whether the successor has more partitions."""
        return self.target_partitions > self.source_partitions

    @property
    def fingerprint(self) -> str:
        """A hash of what decides the partition and the contents of copies. A copy goes on only with the same hash.

        It leaves out the names. It leaves out ``earlier_partitions``, which only decides whether records are
        accepted, and ``compression`` and ``producers``, which readers don't see.
        """
        unseen = {"source", "target", "store", "earlier_partitions", "compression", "producers"}
        return _hash_of(self.model_dump(mode="json", exclude=unseen))


class Stage(Value):
    """One sub-topology's topics: expanded, restored and warmed up together.

    :param moves: internal topics, which only blue and green use.
    :param bridges: ``repartitioned`` inputs, whose successors are created with the stage and filled from the
        promotion on.
    :param not_copied: stores that have no changelog; the next generation starts with them empty.
    """

    index: int
    name: str
    subtopology: int
    grow_outputs: tuple[Growth, ...] = ()
    moves: tuple[Move, ...] = ()
    bridges: tuple[Move, ...] = ()
    not_copied: tuple[str, ...] = Field(default=(), exclude_if=lambda stores: not stores)

    @property
    def changelogs(self) -> tuple[Move, ...]:
        """The moves that restore copies ahead of the cutover."""
        return tuple(m for m in self.moves if m.kind is MoveKind.CHANGELOG)

    @property
    def repartitions(self) -> tuple[Move, ...]:
        """The moves whose in-flight records are carried over at the cutover."""
        return tuple(m for m in self.moves if m.kind is MoveKind.REPARTITION)

    @property
    def growing(self) -> tuple[Move, ...]:
        """The moves whose topics get more partitions; in place, no record of other topics moves."""
        return tuple(m for m in self.moves if m.grows)


class Plan(Value):
    """An expansion of one application from blue to green.

    :param application: base name of the application.
    :param generation: number of the green generation; blue's is one less or lower.
    :param green: ``application.id`` of the new generation; blue's own if the application grows in place.
    :param stages: the most downstream first.
    :param started_with: the count that the running program was told to set, or with which an expansion has started
        it; 0 if neither is known.
    """

    application: str
    generation: int
    blue: str
    green: str
    partitions: int
    stages: tuple[Stage, ...]
    inputs: tuple[InputPlan, ...]
    started_with: int = 0

    @property
    def partitions_before(self) -> int:
        """The count that the running generation was started with."""
        counts = [m.source_partitions for m in self.moves] or [i.current for i in self.inputs]
        return self.started_with or max(counts, default=0)

    @property
    def is_in_place(self) -> bool:
        """Whether the application keeps its ``application.id`` and its topics, which grow."""
        return self.blue == self.green

    @property
    def moves(self) -> tuple[Move, ...]:
        """All moves of all stages, in order."""
        return tuple(m for stage in self.stages for m in stage.moves)

    @property
    def changelogs(self) -> tuple[Move, ...]:
        """The moves of all stages that are copied ahead of the cutover and whose state is compared afterwards."""
        return tuple(m for stage in self.stages for m in stage.changelogs)

    @property
    def repartitions(self) -> tuple[Move, ...]:
        """The moves of all stages whose in-flight records are carried over at the cutover, and proven then."""
        return tuple(m for stage in self.stages for m in stage.repartitions)

    @property
    def growing(self) -> tuple[Move, ...]:
        """The moves of all stages whose topics get more partitions; without any, nothing moves in place."""
        return tuple(m for stage in self.stages for m in stage.growing)

    @property
    def bridges(self) -> tuple[Move, ...]:
        """The inputs whose records a bridge copies to their successors from the promotion on."""
        return tuple(m for stage in self.stages for m in stage.bridges)

    @property
    def not_copied(self) -> tuple[str, ...]:
        """The stores of all stages that have no changelog. Nothing of them is copied or compared."""
        return tuple(store for stage in self.stages for store in stage.not_copied)

    @property
    def renamed_stores(self) -> dict[str, str]:
        """Green's name of each store whose name changes, by blue's name."""
        of_blue, of_green = (name.removeprefix(self.application) for name in (self.blue, self.green))
        after: dict[str, str] = {}
        for m in self.changelogs:
            blue = m.source.removesuffix(f"-{m.store}{CHANGELOG_SUFFIX}")
            # Another prefix may take the place of the application.id. It has the same suffix for the generation.
            green = self.green if blue == self.blue else blue.removesuffix(of_blue) + of_green
            after[m.store] = m.target.removeprefix(f"{green}-").removesuffix(CHANGELOG_SUFFIX)
        return {now: then for now, then in after.items() if now != then}

    def stage(self, index: int) -> Stage:
        """Return the stage of that number, 1 being the most downstream.

        :raises InvalidInput: there is no such stage.
        """
        if not 1 <= index <= len(self.stages):
            raise InvalidInput(
                f"stage {index}",
                found=f"a plan of {len(self.stages)} stages",
                expected=f"1 to {len(self.stages)}",
                remedy="Count from 1 at the most downstream stage.",
            )
        return self.stages[index - 1]

    @property
    def fingerprint(self) -> str:
        """A hash of what is built. A run continues an expansion only with the same hash.

        It leaves out what may change while the same is built: the present counts of external topics, because the
        expansion itself changes them; the count that the running generation was started with; the present
        compression of records; and the number of producers.
        """
        built = self.model_dump(mode="json", exclude={"started_with"})
        built["inputs"] = [{k: v for k, v in i.items() if k != "current"} for i in built["inputs"]]
        for stage in built["stages"]:
            del stage["grow_outputs"]
            for move in (*stage["moves"], *stage["bridges"]):
                del move["compression"], move["producers"]
        return _hash_of(built)

    @property
    def copy_group(self) -> str:
        """The consumer group whose offsets are the progress of the copies."""
        return copy_group(self.application, self.generation, in_place=self.is_in_place)

    @property
    def bridge_group(self) -> str:
        """The consumer group whose offsets are the progress of the bridges; it outlives the copies."""
        return f"{self.application}-bridge-{self.generation}"


def copy_group(application: str, generation: int, *, in_place: bool) -> str:
    """Return the consumer group whose offsets are the progress of the copies to a generation.

    Its name contains the mode: a rolled back attempt in the other mode may have left positions in the same topics.
    """
    return f"{application}-{'in-place' if in_place else 'rescale'}-{generation}"


def _hash_of(built: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(built, sort_keys=True).encode()).hexdigest()[:16]
