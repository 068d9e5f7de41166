"""Whether copies will be too old when they end is told within minutes, and not after a day."""

from __future__ import annotations

import logging

import pytest
from kafka_rescale.core.cluster import TopicDescription
from kafka_rescale.core.control.progress import NO_POSITION, PartitionProgress
from kafka_rescale.kafka.copy.deadline import Deadline
from kafka_rescale.kafka.reading.progress import Snapshot

HOUR = 3_600
DAY_MS = 24 * HOUR * 1000
START_MS = 1_800_000_000_000


def topic(name: str, policy: str = "compact", kept_ms: int = DAY_MS) -> TopicDescription:
    return TopicDescription(name, 2, 1, {"cleanup.policy": policy, "delete.retention.ms": str(kept_ms)})


def read(deadline: Deadline, at: list[int], seconds: float, as_of_ms: int = 0, end: int = 1_000_000) -> str:
    """What is told when partitions with these ends are at these positions."""
    partitions = [
        PartitionProgress(topic="b", partition=p, position=position, end=end) for p, position in enumerate(at)
    ]
    return deadline.told(Snapshot(tuple(partitions), as_of_ms, seconds))


def made(*sources: TopicDescription, begin: int = 0, has_seeds: bool = False) -> tuple[Deadline, list[int]]:
    """A deadline, and the clock that it reads."""
    now, begins = [START_MS], {"b": dict.fromkeys(range(64), begin)}
    named = {each.name: each for each in sources}
    return Deadline(named, begins, has_seeds=has_seeds, clock=lambda: now[0]), now


def test_copies_that_take_two_days_are_told_in_the_first_minutes_and_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    deadline, now = made(topic("b"), topic("c", kept_ms=2 * DAY_MS))
    assert read(deadline, [NO_POSITION, NO_POSITION], 0.0) == ""
    read(deadline, [0, NO_POSITION], 3.0)
    said = ""
    for minute in (1, 2, 3):
        now[0] = START_MS + minute * 60_000
        said = read(deadline, [694 * minute, NO_POSITION], 60.0 * minute)
        assert bool(said) is (minute >= 2), said
    assert "so the copies get 172,911 s old, and b keeps deletions for 86,400 s" in said
    assert "to at least 349200000, delete the new generation's changelogs, and trigger again" in said
    assert [r.levelno for r in caplog.records] == [logging.WARNING]


def test_copies_that_end_in_time_are_not_worth_a_word() -> None:
    deadline, now = made(topic("b"))
    read(deadline, [0, 0], 0.0)
    now[0] += 600_000
    assert read(deadline, [50_000, 50_000], 600.0) == ""
    assert read(deadline, [10_000, 10_000], 600.0), "16.5 hours"


def test_an_attempt_that_goes_on_counts_from_the_age_of_the_copies() -> None:
    deadline, now = made(topic("b"))
    read(deadline, [500_000, 500_000], 0.0, START_MS - 20 * HOUR * 1000)
    now[0] += 600_000
    assert "78,000 s old" in read(deadline, [550_000, 550_000], 600.0, START_MS - 20 * HOUR * 1000)


def test_topics_that_are_not_compacted_keep_deletions() -> None:
    deadline, now = made(topic("b", "delete"))
    read(deadline, [0, 0], 0.0)
    now[0] += 600_000
    assert read(deadline, [1, 1], 600.0) == ""


def test_copies_that_wait_for_a_core_begin_at_their_log_starts() -> None:
    """A log of windows of some age starts at a high offset. Of 64 copies, four are made at a time."""
    deadline, now = made(topic("b"), begin=500_000_000)
    read(deadline, [NO_POSITION] * 64, 3.0, end=501_200_000)
    now[0] += 180_000
    assert read(deadline, [501_200_000] * 24 + [NO_POSITION] * 40, 180.0, end=501_200_000) == ""


@pytest.mark.parametrize("has_seeds", [True, False])
def test_what_a_snapshot_has_is_no_pace(has_seeds: bool) -> None:
    deadline, now = made(topic("b"), has_seeds=has_seeds)
    read(deadline, [NO_POSITION, NO_POSITION], 3.0)
    read(deadline, [900_000, 900_000], 60.0)
    now[0] += 180_000
    assert bool(read(deadline, [900_100, 900_100], 180.0)) is has_seeds
