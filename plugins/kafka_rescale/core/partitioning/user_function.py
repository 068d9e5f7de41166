"""A partitioner that is the user's own function ``(topic, key, n) -> partition``.

The function is the Python twin of a ``StreamPartitioner``: it has to give the same partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index
from typing import Any, Self

from kafka_rescale.core.callables import named
from kafka_rescale.core.errors import InvalidInput, UnsafeState

ASKED_TWICE = 4
"""The number of keys per batch for which the function is called twice, to find a changing answer."""

Function = Callable[[str, bytes, int], Any]

NOT_THERE = -1
"""Stands in place of a partition if a topic has too few partitions to have the partition of the key."""


class NotThereYet(UnsafeState):
    """A static partitioner names a partition that the topic did not have when its partitions were counted.

    KIP-878 has ``TaskMigratedException`` for this: the topic may have grown since. The caller has to count the
    partitions again, and to refuse the answer only if the topic still lacks the partition.
    """


class Declared:
    """A function of the user. Producers or Kafka Streams use its twin.

    :param name: the name as in the application file.
    :param function: ``(topic, key, n) -> partition``.
    :param topic: the topic name that the function gets.
    """

    is_modulo = False
    is_static = False
    fewest_partitions = 1

    def __init__(self, name: str, function: Function, topic: str) -> None:
        self.name, self._function, self._topic = name, function, topic

    @classmethod
    def imported(cls, name: str, topic: str) -> Self:
        """Return the partitioner of ``module:function``.

        :raises InvalidInput: the name can't be imported, or it is no function.
        """
        found = named("partitioner", name, "an importable function (topic, key, n) -> partition")
        if not callable(found):
            raise InvalidInput(
                f"partitioner {name!r}",
                found=f"a {type(found).__name__}",
                expected="a function (topic, key, n) -> partition",
                remedy="Name the function itself.",
            )
        return cls(f"static:{name}" if cls.is_static else name, found, topic)

    def partition(self, key: bytes, n: int) -> int:
        """Return the partition in ``[0, n)`` of one key.

        :raises UnsafeState: the function fails, or returns something that is no partition.
        """
        try:
            answer = self._function(self._topic, key, n)
        except Exception as error:
            raise self._wrong(key, n, f"{type(error).__name__}: {error}") from error
        try:
            partition = index(answer)
        except TypeError:
            raise self._wrong(key, n, _described(answer)) from None
        if isinstance(answer, bool):  # In Python, bool is an int. But True is no partition number, with any count.
            raise self._wrong(key, n, str(answer))
        if not 0 <= partition < n:
            raise self._outside(key, n, partition)
        return partition

    def partition_batch(self, keys: Sequence[bytes], n: int) -> list[int]:
        """Return the partitions of many keys, in their order.

        :raises UnsafeState: the function fails, returns something that is no partition, or gives another answer
            when it is called again.
        """
        partitions = [self.partition(key, n) for key in keys]
        for key, first in zip(keys[:ASKED_TWICE], partitions, strict=False):
            if (second := self.partition(key, n)) != first:
                raise self._wrong(key, n, f"{first}, and {second} when asked again")
        return partitions

    def _outside(self, key: bytes, n: int, partition: int) -> UnsafeState:
        return self._wrong(key, n, str(partition))

    def _wrong(self, key: bytes, n: int, found: str, kind: type[UnsafeState] = UnsafeState) -> UnsafeState:
        return kind(
            f"partitioner {self.name} for key 0x{key.hex()} of topic {self._topic!r}",
            found=found,
            expected=f"one partition of 0 to {n - 1}, and always the same",
            remedy="Mend the function, so that it does exactly what the program's own partitioner does.",
        )


class Static(Declared):
    """KIP-878's ``staticPartition(topic, key, n)``. Every key keeps the partition that it has got."""

    is_static = True

    def _outside(self, key: bytes, n: int, partition: int) -> UnsafeState:
        return self._wrong(key, n, str(partition), NotThereYet if partition >= n else UnsafeState)


def _described(answer: object) -> str:
    if answer is None:
        return "None, with which a StreamPartitioner leaves the choice to the producer"
    if isinstance(answer, set | frozenset | list | tuple):
        return f"{answer!r}: a multicast, of which one key's state would be in several partitions"
    return repr(answer)
