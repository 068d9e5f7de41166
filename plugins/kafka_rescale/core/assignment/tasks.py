"""The tasks that are assigned, and the clients that get them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Self

from kafka_rescale.core.errors import InvalidInput


class TaskId(NamedTuple):
    """A sub-topology and a partition. A task id is written ``0_1`` and sorted by its two numbers."""

    subtopology: int
    partition: int

    def __str__(self) -> str:
        return f"{self.subtopology}_{self.partition}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the task that a text names.

        :raises InvalidInput: the text isn't two numbers with an underscore between them.
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
    """The role of a client for a task. A warm-up is a standby as well: it prepares the move of a task."""

    ACTIVE = "active"
    STANDBY = "standby"


@dataclass(frozen=True)
class Tasks:
    """All tasks of an application.

    :param stateful: the tasks that have a changelog, each with the sum of its changelog partitions' end offsets.
    :param stateless: all other tasks. They have no standbys.
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

    :param id: the process id. If clients are equally loaded, the client whose id sorts first comes first.
    :param threads: number of stream threads, which is the client's capacity.
    :param lags: number of records that the client is behind, per stateful task of which it has state
        (:func:`~kafka_rescale.core.assignment.lags.task_lag`). For every other task, the client has to read the
        whole changelog.
    :param tags: the client's tags, from its properties ``client.tag.*``.
    """

    id: str
    threads: int = 1
    lags: Mapping[TaskId, int] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
