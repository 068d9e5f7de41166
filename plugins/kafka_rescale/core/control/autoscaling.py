"""What the watch of one application remembers between its runs: KIP-878's retries, and the last error."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import Field

from kafka_rescale.core.values import Value

FOLLOW_UP_MS = 10_000
"""``Admin#createPartitions``: it may take several seconds until all brokers know of new partitions (KIP-878)."""


@dataclass(frozen=True)
class Parallelism:
    """Partitions, hence tasks, of one sub-topology.

    :param current: number that it has now.
    :param expected: number that it will have once every count follows from the inputs.
    """

    subtopology: int
    current: int
    expected: int


class Autoscaling(Value):
    """The record of an application in the control topic: of its watch, or of the runs of a pipeline.

    :param target: number of partitions that it tries to reach; 0 if there is nothing to do.
    :param attempts: number of expansions that it has ever asked for; the last one's number is in its run id. Of a
        pipeline: number of targets that it has had.
    :param run: ``<dag_id>/<run_id>`` of an expansion that it has asked for and whose end it has not seen yet.
    :param first_failure_ms: wall clock of the first failure since the last success; 0 for no failure. The time in
        which a bound was in the way is added, because the timeout does not run meanwhile.
    :param held_ms: wall clock since when a bound is in the way of the next attempt; 0 for no bound.
    :param reached: the most partitions that all topics concerned have had since the watch began to try. They never
        become fewer. Of a pipeline: the partitions of its internal topics, and the processors that were
        asked for.
    :param given_up: whether it has given up retrying this target.
    :param given_up_by: run of the watch that gave up last; a retry of that run says so again. Empty if none has.
    :param failures: how often it has given up (``num-autoscaling-failures``).
    :param succeeded_ms: wall clock when an expansion was seen to have succeeded, until the follow-up check.
    :param said: the error that was raised last; it is not raised again.
    :param by: run of the watch that asked or raised last; a retry of that run asks or raises again.
    :param grown_from: number of tasks of a pipeline's largest sub-topology before it began to follow its inputs.
    :param callback_begun_ms: wall clock when a pipeline's ``on_partition_expansion`` was about to be called.
    :param inputs: partitions of every input, by its name on the cluster, when all counts last agreed. An input
        with another count by now has grown. Empty before the first such look.
    :param stopped_by: the person who has ended an attempt at this target, or the approval that was not given. From
        then on, a person has to approve every further attempt. Empty if no person has ended one.
    """

    target: int = 0
    attempts: int = 0
    run: str = ""
    first_failure_ms: int = 0
    held_ms: int = 0
    reached: int = 0
    given_up: bool = False
    failures: int = 0
    succeeded_ms: int = 0
    said: str = ""
    by: str = ""
    grown_from: int = 0
    callback_begun_ms: int = 0
    inputs: dict[str, int] = Field(default_factory=dict)
    stopped_by: str = Field(default="", exclude_if=lambda text: not text)
    given_up_by: str = Field(default="", exclude_if=lambda text: not text)

    def seen(self, partitions: int) -> Autoscaling:
        """Return the record after a look: more partitions than ever are a success, which resets the timeout."""
        if not self.target or partitions <= self.reached:
            return self
        return self.model_copy(update={"reached": partitions, "first_failure_ms": 0, "given_up": False})

    def aimed_at(self, target: int, partitions: int) -> Autoscaling:
        """Return the record of trying to reach a target; a new target begins anew."""
        if target == self.target:
            return self
        return self.settled().model_copy(update={"target": target, "reached": partitions})

    def failed(self, now_ms: int) -> Autoscaling:
        """Return the record after a failure; only the first one starts the timeout."""
        return self.model_copy(update={"first_failure_ms": self.first_failure_ms or now_ms})

    def held(self, now_ms: int) -> Autoscaling:
        """Return the record while a bound is in the way, which stops the timeout."""
        return self.model_copy(update={"held_ms": self.held_ms or now_ms})

    def resumed(self, now_ms: int) -> Autoscaling:
        """Return the record when no bound is in the way; the timeout goes on where it was stopped.

        It does not begin anew: otherwise a lag that comes and goes would put off the end of the timeout for ever.
        """
        if not self.held_ms:
            return self
        first = self.first_failure_ms
        return self.model_copy(
            update={"held_ms": 0, "first_failure_ms": first and first + now_ms - max(first, self.held_ms)}
        )

    def succeeded(self, now_ms: int) -> Autoscaling:
        """Return the record after an expansion that has succeeded; the follow-up check comes later."""
        return self.model_copy(update={"run": "", "succeeded_ms": now_ms})

    def asked(self, run: str, by: str) -> Autoscaling:
        """Return the record after an expansion was asked for."""
        more = 0 if run == self.run else 1
        changes = {"run": run, "by": by, "attempts": self.attempts + more, "succeeded_ms": 0, "said": ""}
        return self.model_copy(update=changes)

    def pardoned(self) -> Autoscaling:
        """Return the record of the same target as if no attempt had failed. It may be tried again."""
        return self.model_copy(update={"first_failure_ms": 0, "given_up": False})

    def gave_up(self, by: str = "") -> Autoscaling:
        """Return the record once the timeout is over; counted once.

        :param by: the run of a watch; a pipeline's run names none.
        """
        if self.given_up:
            return self
        return self.model_copy(update={"given_up": True, "given_up_by": by, "failures": self.failures + 1})

    def settled(self) -> Autoscaling:
        """Return the record of an application with nothing to do: it keeps totals and the inputs' counts."""
        return Autoscaling(attempts=self.attempts, failures=self.failures, inputs=self.inputs)

    def in_line(self, inputs: dict[str, int]) -> Autoscaling:
        """Return the record of an application whose counts agree.

        :param inputs: partitions per input, by its name on the cluster.
        """
        return self.settled().model_copy(update={"inputs": inputs})

    def is_exceeded(self, now_ms: int, timeout_ms: int) -> bool:
        """Whether no expansion has succeeded for the whole timeout since the first failure."""
        return bool(self.first_failure_ms) and now_ms - self.first_failure_ms >= timeout_ms

    def awaits_follow_up(self, now_ms: int) -> bool:
        """Whether an expansion has succeeded so recently that brokers may not know all of its partitions yet."""
        return bool(self.succeeded_ms) and now_ms - self.succeeded_ms < FOLLOW_UP_MS
