"""Windows and stream joins behind repartition topics: a hint before a run, and a warning of what was dropped."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from kafka_rescale.cli.declared import validated
from kafka_rescale.core.pipeline import (
    LONG,
    STRING,
    JoinWindows,
    Pipeline,
    SessionWindows,
    StreamsBuilder,
    TimeWindows,
)
from kafka_rescale.core.pipeline.streams import KStream
from kafka_rescale.core.pipeline.task import Record
from kafka_rescale.core.processing.late_records import late_hints, told_dropped

from tests.support.processing.pipeline_driver import MemoryStore
from tests.support.words_pipeline import write_pipeline

HOUR = timedelta(hours=1)
T0 = 1_700_000_000_000 // 3_600_000 * 3_600_000


def rekeyed(builder: StreamsBuilder) -> KStream:
    return builder.stream("in", key=STRING, value=STRING).select_key(lambda key, value: value, key=STRING)


def windowed(grace: timedelta = timedelta()) -> Pipeline:
    builder = StreamsBuilder()
    grouped = rekeyed(builder).group_by_key(name="by-word")
    grouped.windowed_by(TimeWindows(HOUR, grace=grace)).count(store="hourly").to_stream().to("out")
    return builder.build()


def sessions() -> Pipeline:
    builder = StreamsBuilder()
    grouped = rekeyed(builder).group_by_key(name="by-word")
    grouped.windowed_by(SessionWindows(HOUR)).count(store="visits").to_stream().to("out")
    return builder.build()


def joined() -> Pipeline:
    builder = StreamsBuilder()
    other = builder.stream("other", key=STRING, value=STRING)
    near = JoinWindows.of(HOUR)
    both = rekeyed(builder).join(other, lambda one, two: one + two, near, name="near", store="near")
    both.to("out", key=STRING, value=STRING)
    return builder.build()


def twice() -> Pipeline:
    """Windows behind a second repartition topic, whose only task reads the first one."""
    builder = StreamsBuilder()
    again = rekeyed(builder).repartition(name="first").select_key(lambda key, value: value, key=STRING)
    grouped = again.group_by_key(name="second")
    grouped.windowed_by(TimeWindows(HOUR)).count(store="hourly").to_stream().to("out")
    return builder.build()


def counted() -> Pipeline:
    builder = StreamsBuilder()
    rekeyed(builder).group_by_key(name="by-word").count(store="counts").to_stream().to("out")
    return builder.build()


def direct() -> Pipeline:
    builder = StreamsBuilder()
    grouped = builder.stream("in", key=STRING, value=STRING).group_by_key()
    grouped.windowed_by(TimeWindows(HOUR)).count(store="hourly").to_stream().to("out")
    return builder.build()


def hints(pipeline: Pipeline, **tasks: int) -> list[str]:
    """The hints; ``reads`` is the number of tasks that read the input, all others are one."""
    reader = next(part.id for part in pipeline.sub_topologies() if "in" in part.sources)
    known = {part.id: 1 for part in pipeline.sub_topologies()} | {reader: tasks["reads"]} if tasks else None
    return late_hints(pipeline.topology, pipeline.sub_topologies(), known)


@pytest.mark.parametrize(
    ("pipeline", "named"),
    [
        (windowed, "(hourly) behind by-word-repartition"),
        (sessions, "(visits) behind by-word-repartition"),
        (joined, "behind near-left-repartition"),
        (twice, "(hourly) behind second-repartition"),
    ],
)
def test_windows_behind_what_several_tasks_write_are_named(pipeline: Callable[[], Pipeline], named: str) -> None:
    for found in (hints(pipeline()), hints(pipeline(), reads=2)):
        (hint,) = found
        assert named in hint
        assert "Late records behind a repartition topic" in hint
    assert hints(pipeline(), reads=1) == [], "one task writes its records in the order of its input"


@pytest.mark.parametrize("pipeline", [counted, direct])
def test_what_has_no_times_or_no_repartition_topic_drops_nothing_for_its_order(
    pipeline: Callable[[], Pipeline],
) -> None:
    assert hints(pipeline()) == hints(pipeline(), reads=2) == []


@pytest.mark.parametrize(("grace", "counted"), [(timedelta(minutes=10), 420), (6 * HOUR, 720)])
def test_a_grace_period_as_long_as_what_a_run_reads_lets_every_record_count(
    grace: timedelta, counted: int
) -> None:
    """Two tasks read six hours, one after the other, as they do on one core."""
    pipeline = windowed(grace)
    reads, counts = sorted(pipeline.sub_topologies(), key=lambda part: "in" not in part.sources)
    stores = {store.name: MemoryStore([]) for store in counts.stores}
    windows = counts.processor(stores, 0)
    for task in (0, 1):
        reader = reads.processor({}, task)
        for minute in range(360):
            at = T0 + 60_000 * minute + 1_000 * task
            for each in reader.process(Record("in", task, minute, at, b"k", b"word")):
                windows.process(Record(each.topic, 0, 0, each.timestamp_ms, each.key, each.value))
    entries = stores["hourly"].entries.values()
    assert sum(LONG.decode(entry.value) or 0 for entry in entries) == counted
    assert windows.dropped_records() == 720 - counted


def test_the_page_that_is_named_has_the_section() -> None:
    page = Path(__file__).parents[3] / "docs/pipelines.md"
    assert "### Late records behind a repartition topic" in page.read_text()


def test_validate_says_it(tmp_path: Path) -> None:
    warned = validated(write_pipeline(tmp_path, pipeline=f"{__name__}:windowed"))
    (warning,) = warned.data["warnings"]
    assert "hourly" in warning
    assert f"warning: {warning}" in warned.closing
    plain = validated(write_pipeline(tmp_path))
    assert (plain.data["warnings"], plain.closing) == ([], "")


def test_dropped_records_are_told_with_their_number() -> None:
    assert told_dropped(0) == ""
    told = told_dropped(1_300)
    assert told.startswith("records dropped: 1,300. ")
    assert "Attempts before the last one may have dropped more; see docs" in told
