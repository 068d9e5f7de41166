"""Does the job of a stream thread go on? Its results in the control topic tell (``max.poll.interval.ms``).

A driver that hangs is as silent as a driver whose tasks hang. In neither case the moment of the last progress
changes.
"""

from __future__ import annotations

import time

from kafka_rescale.core.errors import Outage, TimedOut
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.operations.processing.dead_threads import Attempt

LOOKS = 20
"""How many looks fit into the limit."""
LONGEST_PAUSE_SECONDS = 30.0

REMEDY = (
    "Its job was ended; what it had not committed is processed again by the next attempt. See in the job's log "
    "where it stood: in a function of the pipeline that does not return, on a machine that stands still, or in a "
    "queue for executors. If it only needs more time, give the application file a larger `max.poll.interval.ms`."
)


class ThreadWatch:
    """Watches one attempt at a thread's job from outside.

    It measures with this process's clock only, because clocks of two machines are never compared. The time in
    which the brokers don't answer does not count, because no job can make progress then.

    :param limit_seconds: how long the job may go without a sign of progress.
    """

    def __init__(
        self, connection: KafkaConnection, application_id: str, attempt: Attempt, limit_seconds: float
    ) -> None:
        self._control, self._attempt = ControlTopic(connection, application_id), attempt
        self._limit = limit_seconds
        self.pause_seconds = min(limit_seconds / LOOKS, LONGEST_PAUSE_SECONDS)
        self._sign: object = None
        self._since = self._looked = time.monotonic()

    def look(self) -> TimedOut | None:
        """Return the error about a job that has made no progress for too long; None while it goes on."""
        asked = time.monotonic()
        # If this process itself stood still, it may not have seen the job's signs yet.
        has_slept = asked - self._looked > 2 * self.pause_seconds + 1
        try:
            sign, answered = self._found(), True
        except Outage:
            sign, answered = self._sign, False
        self._looked = time.monotonic()
        if sign != self._sign or has_slept or not answered:
            self._sign, self._since = sign, self._looked
        if self._looked - self._since < self._limit:
            return None
        return TimedOut(f"stream thread {self._attempt.thread} to make progress", self._limit, REMEDY)

    def _found(self) -> object:
        result = self._attempt.own(self._control.read().results.get(self._attempt.job))
        return None if result is None else (result.state, result.progressed_ms)
