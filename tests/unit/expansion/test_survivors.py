"""A blue that survives its stop is found at the end. A person can accept what it has written, by name."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.core.control.acceptances import Acceptance, Acceptances
from kafka_rescale.core.control.journal import Captured, Journal, PartitionOffsets, Phase
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.operations.expansion.survivors import assert_still

from tests.support.situations import situation

PLAN = situation().plan
CAPTURED: PartitionOffsets = {"shop-totals-changelog": {0: 5, 1: 7}, "shop-names-changelog": {0: 0, 1: 3}}
JOURNAL = Journal(plan=PLAN, phase=Phase.STARTED, captured=Captured(changelog_ends=CAPTURED))
LATE = {**CAPTURED, "shop-totals-changelog": {0: 5, 1: 9}}
FINDING = "shop-totals-changelog-1:7-8"
LOST = "lost:shop-totals-changelog"


def still(ends: PartitionOffsets, *accepted: str, plan: str = PLAN.fingerprint) -> None:
    admin: Any = SimpleNamespace(
        end_offsets=lambda topics: {t: ends[t] for t in topics}, absent_of=lambda topics: set(topics) - ends.keys()
    )
    known = [Acceptance(plan=plan, finding=f, records=2, by="ada", at_ms=1, reason="mended") for f in accepted]
    assert_still(admin, JOURNAL, Acceptances(accepted=tuple(known)))


def test_nothing_that_was_written_since_is_nothing_to_say() -> None:
    still(CAPTURED)


def test_what_was_written_since_is_named_and_passed_over_once_it_has_been_accepted() -> None:
    with pytest.raises(UnsafeState, match=f"found new records in {FINDING}; .* accept each range"):
        still(LATE)
    still(LATE, FINDING)


@pytest.mark.parametrize(
    ("ends", "finding", "plan"),
    [
        ({**LATE, "shop-totals-changelog": {0: 5, 1: 10}}, "shop-totals-changelog-1:7-9", PLAN.fingerprint),
        ({**LATE, "shop-names-changelog": {0: 1, 1: 3}}, "shop-names-changelog-0:0-0", PLAN.fingerprint),
        (LATE, FINDING, "another expansion's"),
    ],
    ids=["more of the same", "another topic", "accepted after another expansion"],
)
def test_anything_else_is_a_finding_again(ends: PartitionOffsets, finding: str, plan: str) -> None:
    with pytest.raises(UnsafeState, match=f"found new records in {finding};"):
        still(ends, FINDING, plan=plan)


@pytest.mark.parametrize(
    ("ends", "name"),
    [
        ({"shop-names-changelog": {0: 0, 1: 3}}, LOST),
        ({**CAPTURED, "shop-totals-changelog": {0: 5, 1: 6}}, f"{LOST}:11"),
        ({**CAPTURED, "shop-totals-changelog": {0: 5, 1: 7, 2: 0}}, f"{LOST}:12"),
    ],
    ids=["deleted", "made anew", "another count"],
)
def test_a_changelog_that_is_another_one_is_accepted_only_by_this_name(ends: PartitionOffsets, name: str) -> None:
    with pytest.raises(UnsafeState, match=f"other topics by their names: {name}; .* accept each of them"):
        still(ends, FINDING, f"{LOST}:1")
    still(ends, name)


def test_what_a_surviving_blue_makes_anew_later_was_not_accepted() -> None:
    with pytest.raises(UnsafeState, match=f"other topics by their names: {LOST}:2;"):
        still({**CAPTURED, "shop-totals-changelog": {0: 2, 1: 0}}, LOST, f"{LOST}:1")


def test_a_changelog_that_a_young_broker_does_not_know_yet_is_asked_for_again() -> None:
    admin: Any = SimpleNamespace(
        end_offsets=lambda topics, if_present=False: {} if if_present else {t: CAPTURED[t] for t in topics},
        absent_of=lambda _: set(),
    )
    assert_still(admin, JOURNAL, Acceptances())


@pytest.mark.parametrize(
    ("finding", "topic"),
    [(LOST, "shop-totals-changelog"), (f"{LOST}:2", "shop-totals-changelog"), (FINDING, "shop-totals-changelog")],
)
def test_a_report_tells_an_acceptance_by_its_topic(finding: str, topic: str) -> None:
    assert Acceptance(plan="p", finding=finding, records=1, by="ada", at_ms=1, reason="r").topic == topic
