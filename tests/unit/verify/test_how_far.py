"""What a comparison at work tells: what is read, what is compared, and a time left only if that is known."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.core.cluster import LogRange
from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.verify.how_far import PartState, seconds_left, told_of
from kafka_rescale.core.verify.pairs import ComparedLog
from kafka_rescale.core.verify.parts import Part
from kafka_rescale.operations.verify import readings as module
from kafka_rescale.operations.verify.readings import Readings
from kafka_rescale.spark.verify.reading import Read, read_so_far


def states(*shares: float, compared: int = 0, found: int = 0) -> list[PartState]:
    """Parts of 1,000 records each.

    :param shares: what is read of each of those that are not compared.
    :param compared: how many parts this attempt has compared.
    :param found: how many an earlier attempt has compared.
    """
    part = Part(store="totals", records=1_000)
    done = [PartState(part, 1.0, is_compared=True, is_ours=n >= found) for n in range(found + compared)]
    return [*done, *(PartState(part, share) for share in shares)]


@pytest.mark.parametrize(
    ("at", "said"),
    [
        (states(0, 0), "none of 2,000 records read yet"),
        (states(0.5, 0), "500 of 2,000 records read"),
        (states(1, 0.25), "1,250 of 2,000 records read"),
        (states(1), "1,000 of 1,000 records read, Spark sorts and compares them"),
        (states(0, compared=1), "1,000 of 2,000 records read, 1,000 compared"),
        (
            states(1, 0, compared=1),
            "2,000 of 3,000 records read, 1,000 compared, Spark sorts and compares the others that are read",
        ),
        (states(compared=1, found=1), "2,000 of 2,000 records compared"),
        ([], "0 of 0 records compared"),
    ],
)
def test_it_tells_what_is_read_and_that_spark_sorts(at: list[PartState], said: str) -> None:
    assert told_of(at) == said


def test_a_time_left_is_told_if_it_is_known() -> None:
    assert told_of(states(0.5, compared=1), 39.6) == "1,500 of 2,000 records read, 1,000 compared, about 40 s left"


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_before_a_part_is_compared_no_time_left_is_known(share: float) -> None:
    assert seconds_left(states(share, share), 60, 0) is None
    assert seconds_left(states(share, found=3), 60, 0) is None, "an earlier attempt has compared the others"


def test_the_time_left_does_not_rise_while_nothing_is_compared_and_is_no_longer_told_when_it_is_over() -> None:
    at = states(1, 1, compared=1)
    assert [seconds_left(at, seconds, 30) for seconds in (30, 60, 89)] == [60, 30, 1]
    assert seconds_left(at, 90, 30) is None
    assert seconds_left(states(1, compared=2), 90, 90) == 45
    assert seconds_left(states(compared=3), 120, 120) is None


class TestReading:
    """Two logs of 500 offsets each; compaction has left 600 records."""

    @pytest.fixture
    def readings(self, monkeypatch: pytest.MonkeyPatch) -> Readings:
        monkeypatch.setattr(module, "begin_reading", lambda context: "reading")
        log = ComparedLog(topic="t", partitions=1, ranges={0: LogRange(0, 500)})
        readings, pair = Readings(), SimpleNamespace(logs=(log, log))
        readings.begin(SimpleNamespace(), ["totals"], [pair])  # type: ignore[list-item]
        return readings

    @pytest.mark.parametrize(
        ("read", "share"),
        [
            (Read(0, False), 0.0),
            (Read(600, False), 0.6),
            (Read(600, True), 1.0),
            (Read(1_000, False), 0.99),
        ],
    )
    def test_the_share_is_whole_only_if_nothing_is_left_to_be_read(
        self, readings: Readings, monkeypatch: pytest.MonkeyPatch, read: Read, share: float
    ) -> None:
        monkeypatch.setattr(module, "read_so_far", lambda context, name: read)
        assert readings.share("totals") == share
        assert readings.share("another") == 0.0


def spark_context(*stages: tuple[int, int] | None) -> Any:
    """A driver's context that has run one job. None stands for a stage that Spark has forgotten.

    :param stages: how many records each stage has read from a shuffle, and written for one.
    """

    def last_attempt(stage: int) -> Any:
        if (counts := stages[stage]) is None:
            raise KeyError(stage)
        return SimpleNamespace(shuffleReadRecords=lambda: counts[0], shuffleWriteRecords=lambda: counts[1])

    job = SimpleNamespace(stageIds=range(len(stages)))
    store = SimpleNamespace(lastStageAttempt=last_attempt)
    return SimpleNamespace(
        statusTracker=lambda: SimpleNamespace(getJobIdsForGroup=lambda name: [0], getJobInfo=lambda job_id: job),
        _jsc=SimpleNamespace(sc=lambda: SimpleNamespace(statusStore=lambda: store)),
    )


@pytest.mark.parametrize(
    ("stages", "read"),
    [
        ([], Read(0, False)),
        ([(0, 40)], Read(40, False)),
        ([(0, 40), (0, 0)], Read(40, False)),
        ([(0, 40), (1, 0)], Read(40, True)),
        ([(0, 40), (40, 8), (8, 0)], Read(40, True)),
        ([None, (0, 7)], Read(7, False)),
    ],
)
def test_everything_is_read_when_a_task_reads_a_shuffle(stages: list[tuple[int, int] | None], read: Read) -> None:
    assert read_so_far(spark_context(*stages), "reading") == read


def test_a_result_without_a_time_left_is_as_earlier_versions_write_it() -> None:
    result = JobResult(job="prove", run="r", attempt=1, state="running")
    assert "seconds_left" not in result.model_dump(mode="json")
    known = result.model_copy(update={"seconds_left": 4.5})
    assert JobResult.model_validate_json(known.model_dump_json()) == known
