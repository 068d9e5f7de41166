"""A source topic whose partitioner is static: the topic may grow, and each key keeps its partition (KIP-878)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kafka_rescale.core.errors import InvalidInput, UnsafeState
from kafka_rescale.core.partitioning.linear_hashing import LinearHashing, coarser
from kafka_rescale.core.partitioning.partitioners import Partitioner, partitioner_named
from kafka_rescale.core.pipeline.task import SubTopology
from kafka_rescale.core.topology.topology import Topology


@dataclass(frozen=True)
class StaticTopic:
    """An input with a static partitioner, which is a function of the user.

    :param topic: the name of the topic. The function gets it.
    :param function: ``module:function``. The function takes topic, key and partition count.
    :param partitions: the number of partitions that the topic has now.
    """

    topic: str
    function: str
    partitions: int

    @property
    def partitioner(self) -> Partitioner:
        """The function as a partitioner.

        :raises InvalidInput: the function can't be imported.
        """
        return partitioner_named(f"static:{self.function}", self.topic)

    def homes(self, keys: Sequence[bytes]) -> list[int]:
        """Return the partitions of keys.

        :raises UnsafeState: the function returns no partition of the topic, or not always the same partition.
        """
        return self.partitioner.partition_batch(keys, self.partitions)

    def check(self, records: Iterable[tuple[int, int, bytes | None]]) -> None:
        """Refuse records that are in another partition than the function gives for their keys.

        :param records: partition, offset and key.
        :raises UnsafeState: a record is in another partition. The error names the record.
        """
        keyed = [(partition, offset, key) for partition, offset, key in records if key is not None]
        for (partition, offset, key), home in zip(keyed, self.homes([k for *_, k in keyed]), strict=True):
            if home != partition:
                raise UnsafeState(
                    f"topic {self.topic!r} partition {partition} offset {offset}: key 0x{key.hex()}",
                    found=f"in partition {partition} of {self.partitions}",
                    expected=f"it in partition {home}, by the static partitioner {self.function}",
                    remedy="Either the function is not static (with another count it must return the same "
                    "partition for a key), or the record's producer uses another one: the state of the key is "
                    "elsewhere. Mend that; to go on without such records, put the offset behind them by "
                    "`set-offset`.",
                )


@dataclass(frozen=True)
class Placement:
    """The rule that gives the processor with the state of a key.

    :param initial: the number of processors with which the sub-topology began.
    :param static: an input whose partitioner places the keys. None stands for linear hashing over the initial
        count.
    """

    initial: int
    static: StaticTopic | None = None

    @property
    def rule(self) -> str:
        """The rule in words, for messages."""
        if self.static is None:
            return f"linear hashing over the initial {self.initial}"
        return f"the static partitioner {self.static.function}"

    def owners(self, keys: Sequence[bytes], processors: int) -> list[int]:
        """Return the processor of each key.

        :param processors: the number of processors.
        """
        if self.static is None:
            return LinearHashing(self.initial).partition_batch(keys, processors)
        return [coarser(partition, processors, self.initial) for partition in self.static.homes(keys)]


def static_topics(static: Mapping[str, str], part: SubTopology, counts: Mapping[str, int]) -> list[StaticTopic]:
    """Return the sources of a sub-topology that have a static partitioner.

    :param static: functions by topic.
    :param counts: partitions by topic.
    """
    return [StaticTopic(topic, static[topic], counts[topic]) for topic in part.sources if topic in static]


def require_static_topics(
    static: Mapping[str, str], linear: Mapping[str, int], topology: Topology, parts: Iterable[SubTopology]
) -> None:
    """Refuse static partitioners that can't be used, or that would separate keys which belong together.

    :param static: functions by topic.
    :param linear: the topics that the file declares under ``linear_hashing``.
    :raises InvalidInput: a name is no input, an input has two rules, a function can't be imported, or inputs that
        are read together are placed by different rules.
    """
    if unknown := sorted(static.keys() - topology.inputs):
        raise InvalidInput(
            "static_partitioners",
            found=", ".join(unknown),
            expected=f"inputs of the pipeline: {', '.join(sorted(topology.inputs))}",
            remedy="Correct the name. If an input isn't named here, its keys count as placed in another way.",
        )
    if doubled := sorted(static.keys() & linear.keys()):
        raise InvalidInput(
            "static_partitioners",
            found=f"{', '.join(doubled)} under `linear_hashing` as well",
            expected="one partitioner of each input",
            remedy="Name each input under one of the two.",
        )
    for function in static.values():
        partitioner_named(f"static:{function}")
    for part in parts:
        functions = {topic: static.get(topic, "") for topic in part.sources}
        if part.stores and any(functions.values()) and len(set(functions.values())) > 1:
            raise InvalidInput(
                "static_partitioners",
                found=", ".join(f"{t}: {f or 'none'}" for t, f in sorted(functions.items())),
                expected=f"one function for all inputs of sub-topology {part.id}, which keeps their keys together",
                remedy="Declare the function of each of these inputs; a repartition topic can't have one.",
            )
