"""The result that a Spark job leaves for the next task."""

from __future__ import annotations

from pydantic import Field

from kafka_rescale.core.control.job_failure import JobFailure
from kafka_rescale.core.control.lag_history import LagHistory
from kafka_rescale.core.control.progress import PartitionProgress
from kafka_rescale.core.values import Value

COPYING = frozenset({"restore", "warm_up", "catch_up", "move"})
"""The jobs that copy or move. Their results are deleted when another attempt at the expansion begins."""


class Worked(Value):
    """What one or several tries at a job have done.

    :param bytes: bytes of keys and values.
    :param seconds: working time.
    """

    records: int = 0
    bytes: int = 0
    seconds: float = 0.0

    def __add__(self, other: Worked) -> Worked:
        """Return what both have done."""
        seconds = round(self.seconds + other.seconds, 3)
        return Worked(records=self.records + other.records, bytes=self.bytes + other.bytes, seconds=seconds)


class JobResult(Value):
    """The result of a Spark job for the next task, or of a lag gate for the page and the commands.

    :param job: ``restore/<stage>``, ``warm_up/<stage>``, ``catch_up``, ``prove``, ``process/<level>/<thread>``,
        ``warm_up_processors/<client>``, ``keep_warm/<client>``; of gates ``lag_gate/<stage>``, ``gate_all``;
        ``watch`` for a look of the watch.
    :param state: ``running``, ``ready`` (catch_up near the ends), ``done`` or ``failed``. For a gate it is the
        gate's answer, for a look of the watch the look's outcome.
    :param seeded: how many of ``records`` were rows of a snapshot; the others were read from the log.
    :param as_of_ms: wall clock as of which the whole source has been copied (for tombstone safety), or proven.
    :param waits: that the job has waited for an executor for minutes, and the remedy; empty if it does not wait.
    :param lags: how the lags have changed over this attempt.
    :param progressed_ms: of a stream thread, the driver's wall clock at the last sign of progress; 0 as long as
        Spark has begun none of its tasks.
    :param dropped: of a stream thread, how many records its tasks have dropped in their last attempts: late ones,
        and those that lack a key or a value which an operation needs.
    :param marks: marks that a pipeline's tasks have committed beside their offsets, as JSON.
    :param seconds_left: of a proof, how long the comparison of the rest takes; None if that is not known.
    :param before: of a job that copies, what its earlier tries have done; the other figures are those of this try.
    :param failure: why the job has failed, if the job itself has reported it.
    """

    job: str
    run: str
    attempt: int
    state: str
    records: int = 0
    seeded: int = 0
    bytes: int = 0
    seconds: float = 0.0
    as_of_ms: int = 0
    partitions: tuple[PartitionProgress, ...] = Field(default_factory=tuple)
    detail: str = ""
    waits: str = Field(default="", exclude_if=lambda waits: not waits)
    lags: LagHistory = Field(default_factory=LagHistory)
    progressed_ms: int = 0
    dropped: int = Field(default=0, exclude_if=lambda count: not count)
    marks: dict[str, str] = Field(default_factory=dict)
    seconds_left: float | None = Field(default=None, exclude_if=lambda seconds: seconds is None)
    before: Worked = Field(default_factory=Worked, exclude_if=lambda worked: worked == Worked())
    failure: JobFailure | None = None

    @property
    def worked(self) -> Worked:
        """What all tries at the job have done."""
        return self.before + Worked(records=self.records, bytes=self.bytes, seconds=self.seconds)


class Sign(Value):
    """A job's sign of life while the application is stopped.

    :param run: run of the job.
    :param attempt: attempt of the job.
    """

    run: str
    attempt: int
