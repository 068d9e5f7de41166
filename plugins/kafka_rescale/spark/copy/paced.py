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
    """What a task is told of the pace when it begins.

    :param job: the job's key, whose rate its driver writes.
    :param first: the rate until a newer one of the same attempt arrives.
    """

    job: str = ""
    first: Rate = field(default_factory=lambda: Rate(run="", attempt=0))

    def by(self, follower: JournalFollower) -> Share:
        """Return the share of a task, as a follower of the job hears it.

        While the application is stopped there is no limit: then only speed matters.
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
        """Return the share of a task that follows nothing else.

        Tasks that run in this process one after the other share a follower: there may be thousands of them.
        """
        key = connection.servers, application, self.job
        if key not in _followers:
            _followers[key] = JournalFollower(connection, application, self.job)
        return self.by(_followers[key])
