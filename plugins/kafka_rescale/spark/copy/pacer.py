"""A driver's work for the pace: it reads how the cluster is, and tells its tasks how fast they may copy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from kafka_rescale.core.control.keys import Concern
from kafka_rescale.core.control.pace import Pace, Rate
from kafka_rescale.core.control.records import Change
from kafka_rescale.core.expansion.pacing import Readings, first_rate, next_rate
from kafka_rescale.core.expansion.pacing_words import told_rate
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.control.journal_follower import JournalFollower
from kafka_rescale.kafka.copy.disk_watch import DiskWatch
from kafka_rescale.kafka.copy.harm import Harm
from kafka_rescale.kafka.reading.progress import Snapshot
from kafka_rescale.spark.copy.paced import Paced
from kafka_rescale.spark.jobs.job import Job, say


class Pacer:
    """The pace of one attempt at a job.

    :param plan: fingerprint of the job's plan.
    :param follower: follower of the job; it has read the whole control topic.
    :param harm: reads how the cluster is. It is asked only if there is a limit.
    :param tasks: how many tasks run at a time.
    :param disks: watches the disks for which the job rests; None for a job that never rests for them.
    :param running: returns how many tasks run now; 0 if that is not known.
    :ivar has_news: whether the last call of ``adapted`` has changed more than the speed.
    """

    def __init__(
        self,
        job: Job,
        plan: str,
        follower: JournalFollower,
        harm: Harm,
        tasks: int,
        running: Callable[[], int] = lambda: 0,
        disks: DiskWatch | None = None,
    ) -> None:
        self._job, self._plan, self._follower = job, plan, follower
        self._harm, self._tasks, self._running, self._disks = harm, tasks, running, disks
        self.has_news = False
        a = job.arguments
        self.rate = first_rate(self._pace(), a.run, a.attempt, tasks, now_ms(), follower.rate())

    def begin(self) -> Paced:
        """Write the first rate, and return it in the form that tasks get."""
        self._say()
        self._job.put("running", records=self._record())
        return Paced(self._job.key, self.rate)

    def adapted(self, snapshot: Snapshot) -> Change:
        """Take the readings, and return the rate from now on, as a change to write with a report.

        :param snapshot: how far the copies are.
        """
        pace, before = self._pace(), self.rate
        seen = self._harm.read(snapshot) if pace.limit is not None else Readings(now_ms())
        self.rate = next_rate(pace, before, self._with_disks(pace, seen), self._running() or self._tasks)
        self.has_news = _news(before) != _news(self.rate)
        if before.disk is not None and self.rate.disk is None:
            say(f"{self._job.key}: It no longer rests for a disk.")
        if self.has_news:
            self._say()
        return self._record()

    @property
    def is_paused(self) -> bool:
        """Whether a person has paused the copy, or it rests for a disk."""
        return self._pace().paused is not None or self.rate.disk is not None

    def _with_disks(self, pace: Pace, seen: Readings) -> Readings:
        """Return the readings with those of the disks.

        When the switch was let through, only speed matters, as within the pause that follows.
        """
        percent = pace.free_disk_percent
        if self._disks is None or percent is None or self._follower.is_let_through():
            return seen
        rest, untold = self._disks.look(percent, self.rate.disk)
        return replace(seen, disk=rest, untold=untold)

    def _pace(self) -> Pace:
        return Pace.of(self._plan, self._follower.pace())

    def _record(self) -> Change:
        return {f"{Concern.RATE}/{self._job.key}": self.rate}

    def _say(self) -> None:
        if told := told_rate(self._pace(), self.rate):
            say(f"{self._job.key}: {told}")


def _news(rate: Rate) -> Sequence[object]:
    """Return the part of a rate whose change is logged."""
    resting = (rate.disk.broker, rate.disk.path) if rate.disk is not None else None
    return rate.limit, rate.is_paused, rate.slowed_by, rate.slowed_ms, rate.unknown, resting
