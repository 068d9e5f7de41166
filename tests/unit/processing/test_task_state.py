"""The saved state with which a task may begin, and the offsets from which it goes on."""

from __future__ import annotations

import bisect
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka_rescale.core.cluster import LogRange
from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.pipeline.stores import sorted_keys
from kafka_rescale.core.pipeline.stores.sorted_keys import SortedKeys
from kafka_rescale.core.processing.task_start import task_start
from kafka_rescale.core.processing.task_state import (
    FORMAT,
    Changelog,
    SavedFile,
    SavedState,
    TaskMark,
    newest,
    objection,
)

DAY_MS = 86_400_000
NOW = 1_700_000_000_000
LOG = Changelog("a-counts-changelog", "id-1", 3, begin=10, end=200, tombstone_ms=DAY_MS)
SAVED = SavedState(topic=LOG.topic, topic_id="id-1", partition=3, position=150, as_of_ms=NOW - 1000)
LEFT = ("left", 0)


@pytest.mark.parametrize(
    ("saved", "log", "why"),
    [
        ({}, {}, ""),
        ({"format": FORMAT + 1}, {}, "format"),
        ({"topic": "b-counts-changelog"}, {}, "it is of b-counts-changelog-3"),
        ({"partition": 2}, {}, "it is of a-counts-changelog-2"),
        ({"topic_id": "id-0"}, {}, "made anew"),
        ({"position": 201}, {}, "ends at 200"),
        ({"position": 9}, {}, "begins at 10"),
        ({"as_of_ms": NOW - DAY_MS}, {}, "delete.retention.ms"),
        ({"as_of_ms": NOW - DAY_MS}, {"tombstone_ms": None}, ""),
        ({"as_of_ms": 0, "position": 200}, {}, ""),
        ({"as_of_ms": 0, "position": 199}, {}, ""),
        ({"as_of_ms": 0, "position": 198}, {}, "delete.retention.ms"),
    ],
)
def test_a_saved_state_is_used_only_if_the_rest_of_the_changelog_makes_it_the_present_one(
    saved: dict[str, object], log: dict[str, object], why: str
) -> None:
    found = objection(SAVED.model_copy(update=saved), replace(LOG, **log), NOW)
    assert why in found
    assert bool(found) == bool(why)


def test_the_nearest_to_the_end_of_the_changelog_is_taken() -> None:
    others = [SAVED.model_copy(update={"position": at}) for at in (20, 190, 500, 100)]
    assert [s.position for s in newest(others, LOG, NOW)] == [190, 100, 20]


@pytest.mark.parametrize(
    ("deltas", "rows", "expected"), [((), 1, False), ((9_000,), 1_001, True), ((1,), 9_999, False)]
)
def test_a_new_base_is_written_once_the_deltas_have_outgrown_it(
    deltas: tuple[int, ...], rows: int, expected: bool
) -> None:
    files = [SavedFile(name="f", rows=count, sha256="") for count in (100, *deltas)]
    assert SAVED.model_copy(update={"files": tuple(files)}).needs_base(rows) is expected
    large = [SavedFile(name="f", rows=1_000_000, sha256=""), *files[1:]]
    assert not SAVED.model_copy(update={"files": tuple(large)}).needs_base(rows)
    assert SAVED.needs_base(0), "nothing to add a delta to"


def test_a_mark_survives_and_that_of_a_stranger_is_the_beginning() -> None:
    mark = TaskMark(at_ms=5, checkpoint='{"a": "ü"}')
    assert TaskMark.of(mark.model_dump_json()) == mark
    assert TaskMark.of("") == TaskMark.of(None) == TaskMark.of("what is this") == TaskMark()


def test_a_task_goes_on_where_it_has_committed_and_begins_at_the_log_start() -> None:
    sources = {LEFT: LogRange(5, 50), ("right", 0): LogRange(7, 70)}
    assert task_start("0_0", {LEFT: 20, ("other", 0): 3}, sources, has_state=True) == {LEFT: 20, ("right", 0): 7}
    assert task_start("0_0", {}, sources, has_state=False) == {LEFT: 5, ("right", 0): 7}
    assert task_start("0_0", {LEFT: 50, ("right", 0): 7}, sources, has_state=True) == {LEFT: 50, ("right", 0): 7}


@pytest.mark.parametrize(
    ("committed", "found"),
    [({}, "no committed offset"), ({LEFT: 4}, "records from 5 on"), ({LEFT: 51}, "an end of 50")],
)
def test_a_task_whose_offsets_contradict_its_topics_does_not_begin(
    committed: dict[tuple[str, int], int], found: str
) -> None:
    with pytest.raises(UnsafeState, match=found):
        task_start("0_0", committed, {LEFT: LogRange(5, 50)}, has_state=True)


@given(*[st.lists(st.binary(max_size=3))] * 3, st.binary(max_size=3), st.binary(max_size=3))
def test_sorted_keys_are_what_sorting_makes(
    at_first: list[bytes], added: list[bytes], gone: list[bytes], first: bytes, last: bytes
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorted_keys, "BLOCK", 3)
        keys = SortedKeys(at_first)
        for key in added:
            keys.add(key)
        for key in gone:
            keys.discard(key)
        expected = sorted({*at_first, *added} - {*gone})
        assert keys.range(b"", b"\xff" * 4) == expected
        within = expected[bisect.bisect_left(expected, first) : bisect.bisect_right(expected, last)]
        assert keys.range(first, last) == within
