"""How far the bridges of an expansion are: computed from present offsets, not from their last report."""

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
"""A bridge writes its record at least every 30 s."""


def with_progress(control: ControlState, progress: Sequence[PartitionProgress], now_ms: int) -> ControlState:
    """Return the control state with the present progress of the bridge: a run that died left old figures.

    :param progress: progress of every partition that the old topics have; empty if there is nothing to copy.
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
    """How many of the records that the old topics held at some moment the bridge still has to copy.

    :param records: offsets below the ends of that moment that have not been copied yet, markers included.
    :param total: offsets below these ends that had not been copied at that moment.
    :param not_begun: number of partitions that have records but no position.
    """

    records: int
    total: int
    not_begun: int

    @classmethod
    def of(cls, ends: PartitionOffsets, progress: Sequence[PartitionProgress], total: int | None = None) -> Left:
        """Compare the positions of a bridge with ends of an earlier moment.

        :param ends: exclusive; partitions that were added since don't count.
        :param progress: the present progress.
        :param total: what was left at that moment; None if that moment is now.
        """
        at = {(p.topic, p.partition): p.position for p in progress}
        wanted = [(end, at.get((topic, p), -1)) for topic, of in ends.items() for p, end in of.items() if end]
        records = sum(max(0, end - max(0, position)) for end, position in wanted)
        return cls(records, records if total is None else total, sum(1 for _, position in wanted if position < 0))

    @property
    def is_passed(self) -> bool:
        """Whether all records of that moment have been copied."""
        return not self.records

    def __str__(self) -> str:
        begun = f", {self.not_begun} partitions not begun" if self.not_begun else ""
        return f"{self.records:,} of {self.total:,} records left to carry on{begun}"
