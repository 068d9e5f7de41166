"""How long an expansion will take: from earlier measurements, otherwise unknown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from kafka_rescale.core.cluster import Disks, LogDir
from kafka_rescale.core.control.history import JobSpan, PastExpansion
from kafka_rescale.core.control.pace import Instruction, Pace
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.plan.prediction import Prediction
from kafka_rescale.core.preflight.prediction import predicted, prediction_messages
from kafka_rescale.core.preflight.situation import Situation

from tests.support.situations import INPUTS, NAME, journal, situation, with_configs

TOPIC = f"{NAME}-customers-changelog"
CHANGELOGS = sorted(move.source for move in situation().plan.changelogs)
FIRST = CHANGELOGS[0]
NOTHING = (
    "How long they take is unknown, as no expansion of this application in this mode that has copied enough to "
    "tell is complete yet.",
)


def past(ended_ms: int, **changes: Any) -> PastExpansion:
    jobs = (JobSpan(job="restore/1", state="done", seconds=4.0, records=2_000, bytes=1),)
    fields = {"plan": "p", "outcome": "complete", "blue": NAME, "green": f"{NAME}-g2", "in_place": False}
    more = {"run": "r", "before": 2, "after": 4, "jobs": jobs, "timings": {"start": 5.0, "total": 6.0}}
    return PastExpansion(attempt=1, ended_ms=ended_ms, **{**fields, **more, **changes})


def after(*expansions: PastExpansion, **changes: Any) -> Situation:
    """The sound application with 4,000 offsets of state on disk, after these expansions."""
    offsets = {(TOPIC, p): 1_000 * (p + 1) for p in range(4)}
    sizes = dict.fromkeys(offsets, 2**20)
    cluster = {
        "ends": offsets,
        "begins": dict.fromkeys(offsets, 1_000) | {(TOPIC, 0): 0, (TOPIC, 1): 1_000},
        "disks": Disks((LogDir(1, "/data", 2**40, 2**40, sizes),)),
    }
    if (disks := changes.pop("cluster_disks", None)) is not None:
        cluster["disks"] = disks
    state = ControlState(history={str(n): each for n, each in enumerate(expansions)})
    return situation(cluster=cluster, **{"control": state, **changes})


def test_the_pace_and_the_pause_of_the_newest_complete_one_are_taken() -> None:
    rolled_back = past(9_000, outcome="rolled_back", timings={})
    given = after(past(1_000, timings={"total": 99.0}), past(2_000), rolled_back)
    said = predicted(given)
    assert (said.records, said.copied_bytes, said.written_bytes) == (7_000, 4 * 2**20, 4 * 2**20)
    assert (said.records_per_second, said.copy_seconds) == (500.0, 14.0)
    assert said.pause == {"start": 5.0, "total": 6.0}
    assert list(prediction_messages(given)) == [
        "Copies: at most 7,000 records (4.2 MB on disk). At 500 records/s, the pace of the expansion from 2 to 4 "
        "that ended at 1970-01-01T00:00:02+00:00, their bulk takes some 14 s.",
        "Pause: 6.0 s in the expansion from 2 to 4 that ended at 1970-01-01T00:00:02+00:00 (start 5.0 s, "
        "between 1.0 s). Expect about as much.",
    ]


@pytest.mark.parametrize("others", [[], [past(2_000, in_place=True)]])
def test_of_the_first_expansion_of_a_mode_both_are_unknown(others: list[PastExpansion]) -> None:
    said = predicted(after(*others))
    assert (said.records_per_second, said.copy_seconds, said.pause) == (None, None, {})
    assert list(prediction_messages(after(*others))) == [
        f"Copies: at most 7,000 records (4.2 MB on disk). {NOTHING[0]}",
        "Pause: unknown, as no expansion of this application in this mode is complete yet.",
    ]


def test_a_limit_that_takes_longer_than_the_pace_decides() -> None:
    limited = {"pacing": {"bytes_per_second": 2**18}}
    assert predicted(after(past(2_000), **limited)).copy_seconds == 16.0
    faster = {"pacing": {"bytes_per_second": 2**30}}
    assert predicted(after(past(2_000), **faster)).copy_seconds == 14.0
    (said, _) = prediction_messages(after(past(2_000), **limited))
    assert said.endswith(", and within the limit of 262.1 kB/s, their bulk takes some 16 s.")
    (first, _) = prediction_messages(after(**limited))
    assert first.endswith("is complete yet; within the limit of 262.1 kB/s at least 16 s.")


def test_a_limit_that_a_person_has_said_of_this_plan_comes_before_that_of_the_file() -> None:
    given = after(past(2_000), pacing={"bytes_per_second": 2**18})
    word = Instruction(by="a person", at_ms=1)
    pace = Pace(plan=given.plan.fingerprint, limit=2**17, limited=word)
    said = predicted(replace(given, control=given.control.model_copy(update={"pace": pace})))
    assert (said.limit, said.copy_seconds) == (2**17, 32.0)


def large(seconds: float, **changes: Any) -> Situation:
    """The sound application, whose 7,000 offsets take this long at the pace of its last expansion."""
    jobs = (JobSpan(job="restore/1", state="done", seconds=seconds, records=7_000, bytes=1),)
    return after(past(2_000, jobs=jobs), **changes)


def deletions(given: Situation) -> list[str]:
    return [line for line in prediction_messages(given) if line.startswith("Deletions:")]


def test_copies_that_may_take_longer_than_deletions_are_kept_are_told_with_the_value_to_set() -> None:
    assert deletions(large(43_200)) == []
    assert deletions(large(172_800)) == [
        f"Deletions: at the pace and the limit above, the copies take some 172,800 s, and {FIRST} keeps deletions "
        "for 86,400 s (delete.retention.ms). A copy that gets older than that begins anew, so it may never end. "
        f"Before the expansion begins, set delete.retention.ms of all changelogs of {NAME} to at least 345600000: "
        "see docs/first-expansion.md."
    ]
    for kept_ms, is_told in ((345_600_000, False), (345_599_999, True)):
        kept = {topic: with_configs(topic, delete__retention__ms=str(kept_ms))[topic] for topic in CHANGELOGS}
        assert bool(deletions(large(172_800, topics=kept))) is is_told
    (least,) = deletions(large(172_800, topics=with_configs(TOPIC, delete__retention__ms="3600000")))
    assert f"{TOPIC} keeps deletions for 3,600 s" in least


def test_of_a_first_expansion_a_slow_pace_is_assumed() -> None:
    for size, is_told in ((107_000_000_000, False), (109_000_000_000, True)):
        sizes = {(TOPIC, p): size for p in range(4)}
        given = after(cluster_disks=Disks((LogDir(1, "/data", 2**50, 2**50, sizes),)))
        assert bool(found := deletions(given)) is is_told
    assert found[0].startswith("Deletions: at 10.0 MB/s, as their pace is unknown, the copies take some 43,600 s")


def test_an_input_that_is_carried_over_is_no_part_of_the_copies() -> None:
    """Its records were processed long ago. A bridge reads only what comes from then on."""
    old = {(f"{NAME}-customers", p): 10**12 for p in range(4)}
    inputs = [INPUTS[0], {**INPUTS[1], "policy": "repartitioned"}, *INPUTS[2:]]
    given = after(inputs=inputs, pacing={"bytes_per_second": 50_000_000})
    (there,) = given.cluster.disks.log_dirs
    disks = Disks((replace(there, usable=2**50, sizes={**there.sizes, **old}),))
    ends = {**given.cluster.ends, **dict.fromkeys(old, 10**9)}
    cluster = replace(given.cluster, disks=disks, ends=ends, committed=dict.fromkeys(old, 10**9))
    given = replace(given, cluster=cluster)
    assert [move.source for move in given.plan.bridges] == [f"{NAME}-customers"]
    said = predicted(given)
    assert (said.copied_bytes, said.copy_seconds) == (4 * 2**20, 0.1)
    assert deletions(given) == []


def test_topics_that_are_not_compacted_keep_deletions() -> None:
    kept = {topic: with_configs(topic, cleanup__policy="delete")[topic] for topic in CHANGELOGS}
    assert deletions(large(10**9, topics=kept)) == []


def test_what_another_mode_took_and_copies_of_nothing_say_nothing() -> None:
    assert predicted(after(past(1, in_place=True))).pause == {}
    assert predicted(after(past(1, jobs=()))).copy_seconds is None


def continued(records: int, ended_ms: int = 3_000) -> PastExpansion:
    """An attempt that found copies of 7,000 offsets there, and copied so many records after Spark had started."""
    jobs = (JobSpan(job="restore/1", state="done", seconds=6.0, records=records, bytes=1),)
    timings = {"total": 8.0}
    return past(ended_ms, jobs=jobs, timings=timings, predicted=Prediction(records=7_000))


def test_an_attempt_that_went_on_with_the_copies_of_another_has_no_pace() -> None:
    assert predicted(after(continued(30))).records_per_second is None
    assert list(prediction_messages(after(continued(30)))) == [
        f"Copies: at most 7,000 records (4.2 MB on disk). {NOTHING[0]}",
        "Pause: 8.0 s in the expansion from 2 to 4 that ended at 1970-01-01T00:00:03+00:00 (between 8.0 s). "
        "Expect about as much.",
    ]
    assert predicted(after(continued(699))).copy_seconds is None
    assert predicted(after(continued(700))).copy_seconds == 60.0


def test_the_pace_is_that_of_the_newest_one_that_has_copied_enough() -> None:
    said = predicted(after(past(1_000), past(2_000), continued(30)))
    assert (said.records_per_second, said.copy_seconds, said.pause) == (500.0, 14.0, {"total": 8.0})
    assert said.pace_of.endswith("1970-01-01T00:00:02+00:00")
    assert predicted(after(past(2_000, predicted=Prediction()))).copy_seconds == 14.0, "how many is unknown"


def test_without_sizes_the_bytes_are_unknown_and_not_zero() -> None:
    said = predicted(situation())
    assert (said.copied_bytes, said.written_bytes, said.records) == (None, None, None)


def test_nothing_is_said_of_one_that_goes_on_or_changes_nothing() -> None:
    assert list(prediction_messages(after(control=journal(8)))) == []
    assert list(prediction_messages(after(target=4))) == []
