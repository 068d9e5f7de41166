"""A live application whose copies begin with a snapshot: they read only the tail, and the result is the same."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from kafka_rescale.core.snapshots.day import SnapshotDay

from tests.support.live_expansion import live_application

pytestmark = [pytest.mark.integration, pytest.mark.slow]

DAYS_AGO = 7
"""The flights are replayed as flights of the last ten days. Half of them are there before the test begins."""


def test_an_expansion_that_begins_with_a_snapshot_is_verified_and_ends_in_the_same(tmp_path: Path) -> None:
    place = {"snapshots": {"location": str(tmp_path / "snapshots")}}
    with live_application(tmp_path, rate=8, guarantee="exactly_once_v2", changes=place) as (stack, expansion):
        expansion.snapshot(SnapshotDay(datetime.now(UTC).date()).minus(DAYS_AGO))
        plan = expansion.begin()
        expansion.warm(plan)
        restored = [r for name, r in expansion.state().results.items() if name.startswith("restore/")]
        print("; ".join(f"{r.job}: {r.detail}" for r in restored))
        assert sum(r.seeded for r in restored) > 0
        for result in restored:
            if result.seeded:
                assert result.seeded < result.records, "what was processed after the snapshot is read from the log"
        expansion.cut_over()
        report = expansion.verify()
        assert report["passed"], report
        copies = expansion.finish()["copies"]
        assert isinstance(copies, dict)
        assert any("rows of snapshots" in detail for detail in copies.values())
        stack.finish_replay()
        stack.await_equal("flights-g2")
