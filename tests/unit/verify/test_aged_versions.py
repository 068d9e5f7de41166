"""Versions that compaction may have removed by now: a comparison that takes hours does not ask for them."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.core.cluster import TopicDescription
from kafka_rescale.core.verify.oracles import Oracle
from kafka_rescale.core.verify.pairs import CLOCK_SKEW_MS, StorePair
from kafka_rescale.core.verify.report import StoreReport
from kafka_rescale.operations.verify.stores import compare_as_planned
from kafka_rescale.spark.verify import compare, live
from kafka_rescale.spark.verify.compare import Counts, compare_stores
from kafka_rescale.spark.verify.live import BesideBlue, prove_stores
from pyspark.sql import Row

from tests.unit.verify.test_verification import TestWhatIsCompared, store_report

HOUR, DAY = 3_600_000, 86_400_000
PLANNED = 10 * DAY
NOBODY: Any = None
AGED, KEPT = PLANNED - DAY + HOUR, PLANNED - HOUR
"""Timestamps of versions that blue lacks. The log cleaner may remove the older one before the reading ends."""


class Beside:
    """A versioned store whose logs keep versions for a day. Each reading takes three hours.

    :ivar missing: the timestamp of a version that blue lacks from the beginning.
    """

    MOVE = TestWhatIsCompared.MOVE.model_copy(update={"store_type": "versioned"})

    def __init__(self, monkeypatch: pytest.MonkeyPatch, missing: int) -> None:
        self.now, self.missing, self.readings = PLANNED, missing, 0
        for module in (compare, live):
            monkeypatch.setattr(module, "align", lambda *_, **__: None)
            monkeypatch.setattr(module, "judge", lambda _, pairs: pairs)
            monkeypatch.setattr(module, "counts_of", self.counts_of)
            monkeypatch.setattr(module, "now_ms", lambda: self.now)
        monkeypatch.setattr(compare, "_findings", lambda *_: ())
        monkeypatch.setattr(live, "_suspects", lambda pairs, _: self.rows(pairs))
        monkeypatch.setattr(live, "_first", lambda *_: ())

    def counts_of(self, _: Any, pairs: Sequence[StorePair]) -> list[Counts]:
        failures = {Oracle.VERSIONS: 1} if self.rows(pairs) else {}
        return [Counts(store_report(failures=failures), dict.fromkeys(failures, NOBODY), len(failures))]

    def rows(self, pairs: Sequence[StorePair]) -> list[Row]:
        """Return the rows of a reading with violations."""
        self.now, self.readings = self.now + 3 * HOUR, self.readings + 1
        since = pairs[0].versions_since_ms
        assert since is not None
        at = {"blue_offset": None, "blue_timestamp": None, "green_offset": 3, "green_timestamp": self.missing}
        row = Row(
            key=bytearray(b"k"), rank=2, source=0, shape=7, touched=False, oracles=[Oracle.VERSIONS.value], **at
        )
        return [row] if self.missing >= since else []

    def compared(self, in_plan: Any) -> StoreReport:
        ends = {"blue": {0: 4, 1: 4}, "green": dict.fromkeys(range(4), 4)}
        lag = {"min.compaction.lag.ms": str(DAY)}
        admin: Any = SimpleNamespace(
            existing_topics=lambda names: {name: TopicDescription(name, 2, 1, lag) for name in names},
            end_offsets=lambda _: ends,
            begin_offsets=lambda _: {name: dict.fromkeys(of, 0) for name, of in ends.items()},
        )
        (report,) = compare_as_planned(
            admin, [self.MOVE], blue_ends=ends, green_ends=ends, clock_ms=lambda: self.now, compare=in_plan
        )
        return report

    def verified(self) -> StoreReport:
        return self.compared(lambda pairs: compare_stores(NOBODY, {}, pairs, lambda: self.now))

    def proven(self) -> StoreReport:
        spark: Any = SimpleNamespace(createDataFrame=lambda *_: None)
        beside = [BesideBlue(lambda _: set(), lambda: False)]
        return self.compared(lambda pairs: prove_stores(spark, {}, pairs, beside))


@pytest.mark.parametrize("compared", [Beside.verified, Beside.proven])
def test_a_version_that_compaction_may_have_removed_meanwhile_is_not_missed(
    monkeypatch: pytest.MonkeyPatch, compared: Any
) -> None:
    report = compared(Beside(monkeypatch, AGED))
    assert (report.passed, report.failures) == (True, {})


@pytest.mark.parametrize("compared", [Beside.verified, Beside.proven])
def test_a_version_that_still_had_to_be_kept_behind_the_last_reading_is_missed(
    monkeypatch: pytest.MonkeyPatch, compared: Any
) -> None:
    beside = Beside(monkeypatch, KEPT)
    assert compared(beside).failures == {Oracle.VERSIONS: 1}
    assert beside.readings < 4


def test_what_else_is_wrong_in_such_a_record_is_found() -> None:
    row = Row(blue_timestamp=None, green_timestamp=AGED)
    found = [(oracle, row) for oracle in (Oracle.VERSIONS, Oracle.PLACEMENT)]
    assert live._still_kept(found, AGED + 1) == [(Oracle.PLACEMENT, row)]
    assert live._still_kept(found, AGED) == found
    assert live._still_kept(found, None) == found


def test_only_the_limit_of_a_planned_comparison_moves_on() -> None:
    day, pair = TopicDescription("t", 2, 1, {"min.compaction.lag.ms": str(DAY)}), TestWhatIsCompared()
    planned = pair.whole_pair(day, day, Beside.MOVE)
    assert planned.planned_ms is not None
    later = planned.at(planned.planned_ms + 5)
    assert later.versions_since_ms == planned.planned_ms + 5 + CLOCK_SKEW_MS - DAY
    assert later.at(planned.planned_ms) == planned
    others = pair.whole_pair(day, day, pair.MOVE)
    assert others.at(PLANNED).versions_since_ms is None
    fixed = planned.model_copy(update={"planned_ms": None})
    assert fixed.at(PLANNED) == fixed


class Dense(Beside):
    """A store that has lost a version each minute. A reading takes as long as several of them."""

    MINUTE = 60_000

    def rows(self, pairs: Sequence[StorePair]) -> list[Row]:
        """Return the rows of a reading with violations."""
        self.now, self.readings = self.now + 20 * self.MINUTE, self.readings + 1
        since = pairs[0].versions_since_ms
        assert since is not None
        lost = range(PLANNED - DAY, PLANNED, self.MINUTE)
        return [Row(offset=at) for at in lost if at >= since]

    def counts_of(self, _: Any, pairs: Sequence[StorePair]) -> list[Counts]:
        """Return the counts of a reading, and what tells them from those of other rows."""
        rows = self.rows(pairs)
        failures = {Oracle.VERSIONS: len(rows)} if rows else {}
        violations = rows[0].offset if rows else 0
        return [Counts(store_report(failures=failures), dict.fromkeys(failures, NOBODY), violations)]


def test_versions_that_age_between_two_readings_hide_no_loss_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = Dense(monkeypatch, KEPT)
    report = lost.verified()
    assert (lost.readings, set(report.failures)) == (3, {Oracle.VERSIONS})
    assert report.failures[Oracle.VERSIONS] > 1000
