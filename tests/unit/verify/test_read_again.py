"""A difference after the promotion is believed only if the next reading of its store finds it as well."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.core.errors import Outage
from kafka_rescale.core.verify.oracles import KeyFinding, Oracle
from kafka_rescale.core.verify.pairs import ComparedLog, StorePair
from kafka_rescale.core.verify.report import StoreReport
from kafka_rescale.spark.verify import compare
from kafka_rescale.spark.verify.compare import Counts, compare_stores

from tests.unit.verify.test_verification import store_report

NOBODY: Any = None
GAP = {Oracle.SEQUENCE: 1}
PASSED: tuple[dict[Oracle, int], int] = ({}, 0)


def pair(store: str) -> StorePair:
    blue, green = (ComparedLog.of(f"{side}-{store}", {0: 0}, {0: 9}) for side in ("blue", "green"))
    return StorePair(store=store, store_type="key-value", blue=blue, green=green)


def finding(store: str) -> KeyFinding:
    return KeyFinding(oracle=Oracle.SEQUENCE, subject=store, detail="value differs", key="6b")


@pytest.fixture
def logs(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """What the readings find, store by store; each counts by how many readings went before. The last one stays."""
    found = SimpleNamespace(of={}, read=[])

    def counts_of(_: Any, pairs: Sequence[StorePair]) -> list[Counts]:
        found.read.append([each.store for each in pairs])
        return [counts(each.store) for each in pairs]

    def counts(store: str) -> Counts:
        answers = found.of[store]
        failures, violations = answers.pop(0) if len(answers) > 1 else answers[0]
        report = store_report(store=store, failures=failures, surplus=len(found.read))
        return Counts(report, dict.fromkeys(failures, NOBODY), violations)

    monkeypatch.setattr(compare, "align", lambda *_: None)
    monkeypatch.setattr(compare, "judge", lambda *_: None)
    monkeypatch.setattr(compare, "counts_of", counts_of)
    monkeypatch.setattr(compare, "_findings", lambda spark, kafka, pair, _: (finding(pair.store),))
    return found


def compared(*stores: str) -> tuple[StoreReport, ...]:
    return compare_stores(NOBODY, {}, [pair(store) for store in stores])


def test_a_gap_that_the_log_cleaner_has_made_while_a_log_was_read_is_no_finding(logs: SimpleNamespace) -> None:
    """The reader saw the first record of a key, and came to the second when it had been removed."""
    logs.of = {"totals": [(GAP, 7), PASSED]}
    (report,) = compared("totals")
    assert (report.passed, report.findings, report.surplus) == (True, (), 2)


def test_stores_that_have_passed_are_read_once_and_the_others_alone(logs: SimpleNamespace) -> None:
    logs.of = {"a": [PASSED], "b": [(GAP, 7)], "c": [(GAP, 7), PASSED]}
    a, b, c = compared("a", "b", "c")
    assert logs.read == [["a", "b", "c"], ["b"], ["c"]]
    assert (a.passed, b.failures, b.findings, c.passed) == (True, GAP, (finding("b"),), True)


def test_other_differences_of_the_same_number_are_not_the_same_differences(logs: SimpleNamespace) -> None:
    logs.of = {"totals": [(GAP, 7), (GAP, 8), (GAP, 8)]}
    (report,) = compared("totals")
    assert (report.failures, len(logs.read)) == (GAP, 3)


def test_a_difference_that_stays_is_found_whatever_else_passes_away(logs: SimpleNamespace) -> None:
    stays = {Oracle.STATE: 1}
    logs.of = {"totals": [(stays | GAP, 7), (stays, 5), (stays, 5)]}
    (report,) = compared("totals")
    assert (report.failures, len(report.findings)) == (stays, 1)


def test_where_no_two_readings_agree_nothing_is_told_of_the_store(logs: SimpleNamespace) -> None:
    logs.of = {"totals": [(GAP, number) for number in range(20)]}
    with pytest.raises(Outage, match=r"topic 'blue-totals'.*comes to an end"):
        compared("totals")
    assert len(logs.read) == compare.READINGS
