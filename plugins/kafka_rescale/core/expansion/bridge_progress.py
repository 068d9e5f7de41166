"""How far the bridges of an expansion are now, whatever their last run has left word of."""

from __future__ import annotations

from collections.abc import Sequence

from kafka_rescale.core.control.job_results import JobResult
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
