"""A Spark task that follows the journal while it copies."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.journal_follower import JournalFollower
from kafka_rescale.kafka.copy.units import CopyUnit
from kafka_rescale.spark.copy.paced import Paced
from kafka_rescale.spark.jobs.begin import begin_process
from kafka_rescale.spark.jobs.task_errors import as_text


@dataclass(frozen=True)
class JournalTask(ABC):
    """Works on lists of units; one element of the RDD is one list.

    :param attempt: the journal's attempt at the cutover. If the journal has another attempt by now, this attempt
        was rolled back.
    :param session: id of the job that starts this task; the driver recognises its workers by it.
    :param paced: how fast the task may copy.
    """

    connection: KafkaConnection
    plan: Plan
    attempt: int
    session: str
    paced: Paced = field(default_factory=Paced)

    def __call__(self, lists: Iterable[list[CopyUnit]]) -> Iterator[str]:
        """Yield the last verdict of the journal for each list."""
        begin_process()
        for units in lists:
            with as_text(), self._follower() as follower:
                yield self.work(units, follower)

    @abstractmethod
    def work(self, units: list[CopyUnit], follower: JournalFollower) -> str:
        """Work on a list until the journal ends it; return the verdict."""

    def _follower(self) -> JournalFollower:
        return JournalFollower(self.connection, self.plan.application, self.paced.job)
