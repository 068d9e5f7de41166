"""A partition that was processed before never begins at its log start by itself, and no record is skipped."""

from __future__ import annotations

import pytest
from kafka_rescale.core.assignment.tasks import TaskId
from kafka_rescale.core.cluster import LogRange
from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.processors import PipelineProcessors
from kafka_rescale.core.control.progress import PartitionProgress
from kafka_rescale.core.errors import InvalidInput, UnsafeState
from kafka_rescale.core.processing.growth import Declared, observed
from kafka_rescale.core.processing.lost_offsets import positions_of, require_no_rest, require_offsets, with_begun
from kafka_rescale.core.processing.new_offset import kept_mark, offset_of, task_of
from kafka_rescale.core.processing.task_state import TaskMark

from tests.unit.processing.test_growth import Part

STATELESS = Part(stores=())
NAMES = {"in": "in"}
P0, P1, P2 = ("in", 0), ("in", 1), ("in", 2)
UNDECLARED = Declared({}, ())


def seen(known: PipelineProcessors, partitions: int, at_ms: int = 1_000) -> PipelineProcessors:
    anew = () if known.sub_topologies else (0,)
    return observed(known, [STATELESS], {"in": partitions}, UNDECLARED, anew, at_ms)


def result(state: str, as_of_ms: int, job: str = "process/1/t", **positions: int) -> JobResult:
    partitions = (
        PartitionProgress(topic="in", partition=int(name[1:]), position=at, end=at)
        for name, at in positions.items()
    )
    return JobResult(job=job, run="r", attempt=1, state=state, as_of_ms=as_of_ms, partitions=tuple(partitions))


FIRST = seen(PipelineProcessors(), 2)


def test_a_first_run_begins_at_the_log_start_wherever_that_is() -> None:
    require_offsets(with_begun(FIRST, NAMES, (), {}), NAMES, (), {"in": {0: 70, 1: 0}}, {})


def test_an_attempt_that_failed_before_it_committed_may_begin_again() -> None:
    half = with_begun(FIRST, NAMES, [P0], positions_of([result("running", 2_000, p0=3, p1=0)]))
    require_offsets(half, NAMES, [P0], {"in": {0: 70, 1: 70}}, {})


def test_without_state_too_offsets_that_were_there_and_are_gone_are_refused() -> None:
    begun = with_begun(FIRST, NAMES, [P0, P1], {})
    assert PipelineProcessors.model_validate_json(begun.model_dump_json()) == begun
    with pytest.raises(UnsafeState, match=r"found none of in-1; expected .*set-offset FILE"):
        require_offsets(seen(begun, 2), NAMES, [P0], {}, {})


def test_what_a_first_run_has_said_counts_before_anybody_has_looked_at_its_offsets() -> None:
    said = positions_of([result("done", 2_000, p0=12), result("failed", 2_500, "process/1/u", p1=4)])
    with pytest.raises(UnsafeState, match=r"in-0, processed up to 12; in-1, processed up to 4; .*named here"):
        require_offsets(with_begun(FIRST, NAMES, (), said), NAMES, (), {}, said)


@pytest.mark.parametrize(
    ("changelogs", "remedy"),
    [
        ((), r"--to OFFSET`, or `--to earliest` to process everything once more\.$"),
        (
            ("p-counts-changelog",),
            r"delete all changelogs, all repartition topics and the consumer group to begin anew.* twice\.$",
        ),
    ],
    ids=["without state", "beside state, which has the records already"],
)
def test_processing_from_the_log_start_is_offered_only_if_no_state_would_count_twice(
    changelogs: tuple[str, ...], remedy: str
) -> None:
    begun = with_begun(FIRST, NAMES, [P0], {}).model_copy(update={"changelogs": changelogs})
    with pytest.raises(UnsafeState, match=remedy):
        require_offsets(begun, NAMES, (), {}, {})


def test_results_from_before_a_pipeline_was_begun_anew_count_for_nothing() -> None:
    said = positions_of([result("done", 2_000, p0=12), result("done", 9_000, "keep_warm/c", p0=12)])
    anew = with_begun(FIRST, NAMES, [P0], said).forgotten(at_ms=3_000)
    require_offsets(with_begun(anew, NAMES, (), said), NAMES, (), {}, said)


def test_what_a_repartition_topic_has_left_would_count_twice_beside_inputs_that_are_read_again() -> None:
    ends = {"p-a-repartition": {0: 12, 1: 7}, "p-b-repartition": {0: 3}}
    require_no_rest(ends, ends)
    begins = {"p-a-repartition": {0: 12, 1: 5}, "p-b-repartition": {0: 3}}
    with pytest.raises(UnsafeState, match=r"^repartition topics p-a-repartition: .*Delete these topics, and run"):
        require_no_rest(begins, ends)


def test_an_added_partition_has_all_its_records_or_is_refused() -> None:
    grown = seen(with_begun(FIRST, NAMES, [P0, P1], {}), 3)
    require_offsets(grown, NAMES, [P0, P1], {"in": {2: 0}}, {})
    with pytest.raises(UnsafeState, match=r"partition 2, which was added.*records from 5 on.*offset 0 on"):
        require_offsets(grown, NAMES, [P0, P1], {"in": {0: 9, 2: 5}}, {})
    require_offsets(grown, NAMES, [P0, P1, P2], {"in": {2: 5}}, {})


def test_what_an_older_version_has_noted_is_not_taken_for_added() -> None:
    known = {"partitions": 2, "grown_at_ms": 0, "settled": {}}
    old = PipelineProcessors.model_validate(
        {"sub_topologies": {0: {"initial": 2, "count": 2}}, "topics": {"in": known}}
    )
    require_offsets(with_begun(seen(old, 2), NAMES, [P0], {}), NAMES, [P0], {"in": {1: 5}}, {})
    grown = with_begun(seen(old, 3), NAMES, [P0, P1], {})
    with pytest.raises(UnsafeState, match="partition 2"):
        require_offsets(grown, NAMES, [P0, P1], {"in": {2: 5}}, {})


def test_an_offset_is_set_for_the_task_that_reads_the_partition() -> None:
    grown = seen(FIRST, 4)
    assert task_of(("in", 3), [STATELESS], grown, NAMES) == (TaskId(0, 1), [("in", 1), ("in", 3)])
    for source, record in ((("in", 4), grown), (("out", 0), grown), (P0, PipelineProcessors())):
        with pytest.raises(InvalidInput, match="no task that reads it"):
            task_of(source, [STATELESS], record, NAMES)


@pytest.mark.parametrize(("to", "expected"), [("earliest", 5), ("latest", 9), ("7", 7), ("9", 9)])
def test_an_offset_is_named_or_a_number_within_the_log(to: str, expected: int) -> None:
    assert offset_of(P0, to, LogRange(5, 9)) == expected


@pytest.mark.parametrize("to", ["4", "10", "-1", "newest", ""])
def test_an_offset_beside_the_log_is_refused(to: str) -> None:
    with pytest.raises(InvalidInput, match="a number from 5 to 9"):
        offset_of(P0, to, LogRange(5, 9))


def test_what_is_committed_beside_an_offset_outlives_its_setting() -> None:
    old, new = (TaskMark(at_ms=at, checkpoint=f"c{at}", processors=4).model_dump_json() for at in (1, 2))
    told = [result("done", 0).model_copy(update={"marks": {"0_1": old, "0_2": new}})]
    assert kept_mark(TaskId(0, 1), [old, None, new], told).checkpoint == "c2"
    assert kept_mark(TaskId(0, 1), [], told).checkpoint == "c1"
    assert kept_mark(TaskId(0, 7), [], told) == TaskMark()
