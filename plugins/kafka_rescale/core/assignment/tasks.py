"""What is assigned, and to whom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Self

from kafka_rescale.core.errors import InvalidInput


class TaskId(NamedTuple):
    """A sub-topology and a partition; written ``0_1``, sorted by numbers."""

    subtopology: int
    partition: int

    def __str__(self) -> str:
        return f"{self.subtopology}_{self.partition}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the task that a text names.

        :raises InvalidInput: it isn't two numbers with an underscore between them.
        """
        numbers = text.split("_")
        if len(numbers) != 2 or not all(number.isdecimal() for number in numbers):
            raise InvalidInput(
                f"task {text!r}",
                found="no task id",
                expected="<sub-topology>_<partition>, for example 0_3",
                remedy="Correct the task id.",
            )
        return cls(*map(int, numbers))


class Role(StrEnum):
    """What a client does with a task. A warm-up is a standby that shall become active."""

    ACTIVE = "active"
    STANDBY = "standby"


@dataclass(frozen=True)
class Tasks:
    """All tasks of an application.

    :param stateful: tasks with a changelog, and the sum of the end offsets of their changelog partitions.
    :param stateless: all others; they have no standbys.
    """

    stateful: Mapping[TaskId, int] = field(default_factory=dict)
    stateless: frozenset[TaskId] = frozenset()

    @property
    def all(self) -> frozenset[TaskId]:
        """Every task."""
        return frozenset(self.stateful) | self.stateless


@dataclass(frozen=True)
class Client:
    """One process of the application (``ClientState``).

    :param id: process id; ties between equally loaded clients are decided by its order.
    :param threads: stream threads, its capacity.
    :param lags: records that it is behind (:func:`~kafka_rescale.core.assignment.lags.task_lag`), per stateful
        task of which it has state. Of all other tasks it has the whole changelog to read.
    :param tags: what ``client.tag.*`` says of it.
    """

    id: str
    threads: int = 1
    lags: Mapping[TaskId, int] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
