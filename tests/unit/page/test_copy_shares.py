"""How far a copy is, of a store whose retention has deleted most of its changelog: windows, sessions."""

from __future__ import annotations

from typing import Any

import pytest
from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.lag_history import LagHistory
from kafka_rescale.core.control.progress import NO_POSITION, PartitionProgress
from kafka_rescale.core.page.copy_estimate import JobProgress, job_progress

from tests.support.page.page_contents import NOW_MS, copying

BEGIN, END = 9_800_000, 10_000_000
PLAN = copying("orders").plan


def shown(*positions: int, begin: int | None = BEGIN, **fields: Any) -> JobProgress:
    """What is shown of a restore with one partition after these readings, which are 5 s apart."""
    history, last = LagHistory(), PartitionProgress(topic="t", partition=0, position=0, end=0)
    for number, position in enumerate(positions):
        last = PartitionProgress(topic="t", partition=0, position=position, end=END, begin=begin)
        history = history.observed([last], NOW_MS + number * 5_000, None)
    job = JobResult(job="restore/1", run="r", attempt=1, state="running", partitions=(last,), lags=history)
    return job_progress(job.model_copy(update=fields), PLAN)


@pytest.mark.parametrize(
    ("positions", "share", "copied", "lag", "seconds"),
    [
        ((NO_POSITION,), 0.0, 0, 200_000, None),
        ((NO_POSITION, BEGIN + 1_000), 0.005, 1_000, 199_000, 995.0),
        ((NO_POSITION, BEGIN + 1_000, END), 1.0, 200_000, 0, 0.0),
    ],
)
def test_what_is_deleted_does_not_count_as_copied(
    positions: tuple[int, ...], share: float, copied: int, lag: int, seconds: float | None
) -> None:
    found = shown(*positions)
    assert (found.share, found.copied, found.lag, found.total) == (share, copied, lag, 200_000)
    assert found.eta_seconds == seconds


def test_of_a_record_of_an_earlier_version_it_is_not_known() -> None:
    begun = shown(NO_POSITION, BEGIN + 1_000, BEGIN + 2_000, begin=None)
    assert (begun.share, begun.copied, begun.total, begun.lag) == (None, None, None, 198_000)
    waiting = shown(NO_POSITION, begin=None)
    assert (waiting.share, waiting.copied, waiting.lag, waiting.eta_seconds) == (None, None, None, None)
    assert shown(BEGIN, begin=None, state="done").share == 1.0


def test_an_empty_log_is_copied() -> None:
    assert (shown(NO_POSITION, begin=END).share, shown(NO_POSITION, begin=END).lag) == (1.0, 0)
