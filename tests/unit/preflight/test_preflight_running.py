"""Preflight of who runs and who rescales, and what is worth knowing."""

from __future__ import annotations

from kafka_rescale.core.control.generations import Generations
from kafka_rescale.core.control.journal import Phase
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.preflight.check import is_continued, messages
from kafka_rescale.core.preflight.expected_state import ExpectedState

from tests.support.situations import (
    STOPPED,
    found,
    journal,
    situation,
    with_configs,
)
from tests.support.small_application import START_MS


def test_the_names_follow_the_running_generation() -> None:
    given = situation(control=ControlState(generations=Generations(running="shop-g2", generation=2, partitions=4)))
    assert (given.blue, given.green) == ("shop-g2", "shop-g3")
    assert found(given)[0].startswith("application 'shop-g2': found none of its internal topics on the cluster")


def test_another_target_while_one_is_in_progress() -> None:
    assert found(situation(6, control=journal(8))) == [
        "application 'shop': found an expansion to 8 partitions in progress (phase warming, by "
        "expand_shop/run-1); expected no expansion in progress when 6 are asked for. Finish it by a run with "
        "target 8 and the settings that it was begun with, or roll it back; then ask again."
    ]
    assert found(situation(6, control=journal(8, Phase.ROLLED_BACK))) == []


def test_the_same_target_continues_whatever_its_own_steps_have_changed() -> None:
    given = situation(8, control=journal(8), green_records={"shop-g2-totals-changelog": 17})
    assert is_continued(given)
    assert found(given) == []
    assert not is_continued(situation(8, control=journal(8, Phase.COMPLETE)))


def test_running_when_it_should_be_stopped_and_the_reverse() -> None:
    assert found(situation(expected=ExpectedState.RUNNING)) == []
    assert found(situation(expected=ExpectedState.STOPPED, group=STOPPED)) == []
    assert found(situation(expected=ExpectedState.STOPPED)) == [
        "application 'shop': found 1 member in group shop (state Stable); expected a stopped application. "
        "Stop every instance; members that died are gone after session.timeout.ms."
    ]
    assert found(situation(expected=ExpectedState.RUNNING, group=STOPPED)) == [
        "application 'shop': found group shop without members (state Empty); expected a running application. "
        "Start it, and wait until its group is Stable."
    ]


def test_an_expansion_in_progress_has_stopped_it_itself() -> None:
    given = situation(8, control=journal(8), expected=ExpectedState.RUNNING, group=STOPPED)
    assert found(given) == []


def test_what_is_worth_knowing() -> None:
    repartition, window = "shop-by-customer-repartition", "shop-hourly-changelog"
    given = situation(
        group=STOPPED,
        cluster={"ends": {(repartition, 0): 10, (repartition, 1): 5}, "committed": {(repartition, 0): 7}},
        topics=with_configs(window, retention__ms="1000", retention__bytes="5"),
        now_ms=START_MS + 1001,
        repartitions=[{"name": "by-customer", "count": "derived"}],
    )
    assert found(given) == []
    assert messages(given) == [
        "shop does not run: its group has no member (state Empty).",
        f"{repartition}: 8 records not yet processed.",
        f"{window}: retention.bytes is set, so that the brokers may delete live entries of its copy.",
        f"{window}: 24 of 24 sampled entries are older than its retention.ms (1000); the brokers may delete "
        "them in "
        "the copy before they do so here.",
    ]
