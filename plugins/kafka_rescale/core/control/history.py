"""The history of an application: what is kept of every attempt at an expansion when it has ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pydantic import Field

from kafka_rescale.core.control.job_results import COPYING
from kafka_rescale.core.plan.prediction import Prediction
from kafka_rescale.core.values import Value

MOST = 100
"""How many attempts are kept of an application. When another attempt ends, one of the oldest is deleted."""


class JobSpan(Value):
    """What one job of an attempt has done.

    :param job: as in ``JobResult``.
    :param seconds: how long it has worked; like the other figures, over all tries of a job that copies.
    """

    job: str
    state: str
    seconds: float
    records: int
    bytes: int


class Proven(Value):
    """What was proven of an attempt.

    :param passed: whether the proof before the promotion has passed; None without a proof.
    :param until_ms: time up to which the copies were last compared before the promotion; None if they were not
        compared.
    :param entries: how many live entries were found equal.
    :param verified: whether verify has passed; None if it has not been reached.
    :param accepted: how many findings a person has accepted.
    """

    passed: bool | None = None
    until_ms: int | None = None
    entries: int = 0
    verified: bool | None = None
    accepted: int = 0


class PastExpansion(Value):
    """One attempt at an expansion that has ended, as complete or rolled back.

    :param plan: fingerprint of the plan.
    :param attempt: number of the attempt in the journal.
    :param outcome: the journal's last phase.
    :param before: partitions that the application was started with.
    :param after: partitions wanted.
    :param run: the run that has ended it.
    :param triggered_by: the person who has triggered the run that has begun it; empty if that is not known.
    :param approved_by: the person who said last when the switch may begin; empty if nobody was asked.
    :param begun_ms: wall clock; 0 for an attempt that an earlier version has begun.
    :param reason: why it was rolled back.
    :param stopped_by: the person who has ended it, or the approval that was not given; empty if it has not been
        rolled back, has failed by itself, or if an earlier version has ended it.
    :param timings: seconds per part of the pause, as the journal has them.
    """

    plan: str
    attempt: int
    outcome: str
    blue: str
    green: str
    in_place: bool
    before: int
    after: int
    run: str
    triggered_by: str = ""
    approved_by: str = ""
    begun_ms: int = 0
    ended_ms: int
    reason: str = ""
    stopped_by: str = Field(default="", exclude_if=lambda text: not text)
    jobs: tuple[JobSpan, ...] = ()
    timings: dict[str, float] = Field(default_factory=dict)
    prewarmed: dict[str, float] = Field(default_factory=dict)
    proven: Proven = Proven()
    predicted: Prediction | None = None

    @property
    def key(self) -> str:
        """Its name in the control topic. Each attempt at each plan has its own name, so compaction keeps it."""
        return f"{self.plan}-{self.attempt}"

    @property
    def is_complete(self) -> bool:
        """Whether it was brought to its end."""
        return self.outcome == "complete"

    @property
    def seconds(self) -> float | None:
        """How long it took as a whole; None if its beginning is not known."""
        return (self.ended_ms - self.begun_ms) / 1000 if self.begun_ms else None

    @property
    def restored(self) -> tuple[int, float]:
        """Records of the restore jobs, which copy one after the other, and how many seconds these took."""
        of = [job for job in self.jobs if job.job.partition("/")[0] == "restore"]
        return sum(job.records for job in of), sum(job.seconds for job in of)

    @property
    def copied(self) -> tuple[int, int]:
        """Records and bytes of all jobs that copy or move."""
        # The result `move` is the sum of those of the stages.
        of = [job for job in self.jobs if job.job.partition("/")[0] in COPYING and job.job != "move"]
        return sum(job.records for job in of), sum(job.bytes for job in of)


def newest_first(history: Iterable[PastExpansion]) -> list[PastExpansion]:
    """Return the attempts, the latest first: people ask for them in this order."""
    return sorted(history, key=lambda each: (-each.ended_ms, each.key))


def surplus(history: Mapping[str, PastExpansion], coming: PastExpansion) -> list[str]:
    """Return the keys of the oldest attempts, which have to go for the coming one.

    The newest complete one of each mode stays, however many attempts have failed since: predictions are made from
    it.
    """
    others = newest_first(each for each in history.values() if each.key != coming.key)
    complete = [each for each in reversed(newest_first([*others, coming])) if each.is_complete]
    needed = {each.in_place: each.key for each in complete}
    oldest = [each.key for each in reversed(others) if each.key not in needed.values()]
    return oldest[: max(0, len(others) - (MOST - 1))]
