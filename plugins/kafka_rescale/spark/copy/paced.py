"""How a Spark task follows the rate of its job."""

from __future__ import annotations

from dataclasses import dataclass, field

from kafka_rescale.core.control.pace import Rate
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.journal_follower import JournalFollower
from kafka_rescale.kafka.copy.throttle import Share

_followers: dict[tuple[str, str, str], JournalFollower] = {}


@dataclass(frozen=True)
class Paced:
    """What a task knows about the pace when it begins.

    :param job: key of the job. The job's driver writes the rate.
    :param first: the rate until a newer one of the same attempt arrives.
    """

    job: str = ""
    first: Rate = field(default_factory=lambda: Rate(run="", attempt=0))

    def by(self, follower: JournalFollower) -> Share:
        """Return a function that tells a task's share, from what a follower of the job has read.

        While the application is stopped, there is no limit, because only speed matters then.
        """

        def share() -> float | None:
            journal = follower.latest()
            if journal is not None and journal.is_paused:
                return None
            rate = follower.rate()
            is_ours = rate is not None and (rate.run, rate.attempt) == (self.first.run, self.first.attempt)
            return rate.share if rate is not None and is_ours else self.first.share

        return share

    def here(self, connection: KafkaConnection, application: str) -> Share:
        """Return that function for a task that needs a follower only for it.

        There may be thousands of tasks. Those that run in this process, one after the other, share a follower.
        """
        key = connection.servers, application, self.job
        if key not in _followers:
            _followers[key] = JournalFollower(connection, application, self.job)
        return self.by(_followers[key])
