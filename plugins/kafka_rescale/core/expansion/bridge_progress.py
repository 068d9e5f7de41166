"""How far the bridges of an expansion are now, whatever their last run has left word of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.journal import PartitionOffsets
from kafka_rescale.core.control.progress import PartitionProgress
from kafka_rescale.core.control.state import ControlState

JOB = "bridge"
AT_WORK = frozenset({"running", "ready", "carrying"})
NOT_AT_WORK = "not_at_work"
HEARTBEAT_MS = 90_000
"""A bridge leaves word every 30 s at least."""


def with_progress(control: ControlState, progress: Sequence[PartitionProgress], now_ms: int) -> ControlState:
    """Return what is known with the bridge as it is now: a run that has died leaves old figures, and ``carrying``.

    :param progress: of every partition that the old topics have; none if there is nothing to carry on.
    """
    if not progress:
        return control
    owner = control.journal.owner if control.journal else ""
    known = control.results.get(JOB) or JobResult(job=JOB, run=owner, attempt=0, state="not_begun")
    now = known.model_copy(update={"partitions": tuple(progress)})
    age_ms = now_ms - known.as_of_ms
    if known.state in AT_WORK and age_ms > HEARTBEAT_MS:
        ago = f"{age_ms // 1000} s ago" if known.as_of_ms else "and has no progress yet"
        now = now.model_copy(update={"state": NOT_AT_WORK, "detail": f"its last run said {known.state}, {ago}"})
    return control.model_copy(update={"results": {**control.results, JOB: now}})


@dataclass(frozen=True)
class Left:
    """What a bridge has yet to pass of what its old topics held at some moment.

    :param records: offsets below those ends that have not been carried on, markers of transactions included.
    :param total: offsets below those ends that had not been carried on at that moment.
    :param not_begun: partitions with records in them that have no position.
    """

    records: int
    total: int
    not_begun: int

    @classmethod
    def of(cls, ends: PartitionOffsets, progress: Sequence[PartitionProgress], total: int | None = None) -> Left:
        """Compare the positions of a bridge with ends of an earlier moment.

        :param ends: exclusive; a partition that has come since is not waited for.
        :param progress: as it is now.
        :param total: what was left at that moment; None if that is now.
        """
        at = {(p.topic, p.partition): p.position for p in progress}
        wanted = [(end, at.get((topic, p), -1)) for topic, of in ends.items() for p, end in of.items() if end]
        records = sum(max(0, end - max(0, position)) for end, position in wanted)
        return cls(records, records if total is None else total, sum(1 for _, position in wanted if position < 0))

    @property
    def is_passed(self) -> bool:
        """Whether everything that was there at that moment has been carried on."""
        return not self.records

    def __str__(self) -> str:
        begun = f", {self.not_begun} partitions not begun" if self.not_begun else ""
        return f"{self.records:,} of {self.total:,} records left to carry on{begun}"
