"""A past interval is processed again: what is read, what is written, where, and what is refused."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.airflow.backfills import END, START, generation_of
from kafka_rescale.core.application.pipeline import PipelineApplication
from kafka_rescale.core.cluster import LogRange
from kafka_rescale.core.errors import InvalidInput, Refused
from kafka_rescale.core.formats.record_batches import Batch
from kafka_rescale.core.pipeline import STRING, JoinWindows, StreamsBuilder
from kafka_rescale.core.pipeline.task import Emitted, Record
from kafka_rescale.core.processing.backfill import Backfill, backfill_of, first_needed, require_history
from kafka_rescale.core.processing.task_start import task_start
from kafka_rescale.core.snapshots.exactness import Coverage, coverage_of
from kafka_rescale.operations.application.load import load_pipeline_application
from kafka_rescale.operations.processing.backfills import require_live
from kafka_rescale.spark.processing.task_records import process

from tests.support.processing.pipeline_driver import PipelineDriver
from tests.support.words_pipeline import words, write_pipeline

DAY = ("2026-01-02T00:00:00+00:00", "2026-01-03T00:00:00+00:00")
DAY_MS = 86_400_000
START_MS = 1_767_312_000_000
DECLARED = {"outputs": {"counted": "counted-again"}}


def application(directory: Path, **backfill: Any) -> PipelineApplication:
    declared = {"backfill": {**DECLARED, **backfill}}
    return load_pipeline_application(write_pipeline(directory, **declared))


def of_day(directory: Path, **backfill: Any) -> Backfill:
    return backfill_of(application(directory, **backfill), words().topology, *DAY)


def test_every_interval_has_a_generation_of_its_own(tmp_path: Path) -> None:
    day = of_day(tmp_path)
    assert (day.start_ms, day.end_ms) == (START_MS, START_MS + DAY_MS)
    assert day.generation("words") == "words-backfill-20260102T000000-20260103T000000"
    assert day.application("words-backfill-20260102T000000-20260103T000000") == "words"
    assert day.outputs == {"counted": "counted-again"}
    part = day.model_copy(update={"end_ms": day.end_ms + 5})
    assert part.generation("words") != day.generation("words")


def test_a_file_that_does_not_say_where_outputs_go_is_refused(tmp_path: Path) -> None:
    plain = load_pipeline_application(write_pipeline(tmp_path))
    with pytest.raises(Refused, match="where counted should go"):
        backfill_of(plain, words().topology, *DAY)


@pytest.mark.parametrize("topic", ["counted", "lines"])
def test_outputs_never_go_where_the_pipeline_itself_reads_or_writes(tmp_path: Path, topic: str) -> None:
    with pytest.raises(Refused, match=f"outputs that go to {topic}"):
        of_day(tmp_path, outputs={"counted": topic})


def test_an_interval_has_a_start_before_its_end(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="a start before its end"):
        backfill_of(application(tmp_path), words().topology, DAY[0], DAY[0])
    with pytest.raises(InvalidInput, match="a start and an end"):
        backfill_of(application(tmp_path), words().topology, DAY[0], "")


def test_only_backfills_and_those_who_ask_for_an_interval_have_a_generation_of_their_own(tmp_path: Path) -> None:
    from datetime import datetime

    start, end = map(datetime.fromisoformat, DAY)
    run = SimpleNamespace(run_type="backfill", data_interval_start=start, data_interval_end=end)
    declared = application(tmp_path)
    backfilled, backfill = generation_of(declared, {"dag_run": run})
    assert backfill is not None
    assert backfilled.application_id == backfill.generation("words")
    scheduled = SimpleNamespace(**{**vars(run), "run_type": "scheduled"})
    assert generation_of(declared, {"dag_run": scheduled}) == (declared, None)
    asked = {"dag_run": scheduled, "params": {START: DAY[0], END: DAY[1]}}
    assert generation_of(declared, asked) == (backfilled, backfill)


def test_a_backfill_has_the_processors_that_its_inputs_began_with(tmp_path: Path) -> None:
    require_live(application(tmp_path), 4, None)
    with pytest.raises(Refused, match="4 processors that are asked for"):
        require_live(application(tmp_path), 4, of_day(tmp_path))


def test_the_replay_begins_where_the_state_does(tmp_path: Path) -> None:
    assert of_day(tmp_path).replayed_from_ms is None
    assert of_day(tmp_path, history_seconds=60).replayed_from_ms == START_MS - 60_000
    assert first_needed(7, None, is_compacted=False) == 0
    assert first_needed(7, 30, is_compacted=False) == 30
    assert first_needed(7, 30, is_compacted=True) == 0, "a table is made of all of its records"
    assert first_needed(7, 7, is_compacted=False) == 6, "nobody knows whether what was deleted would be needed"
    assert first_needed(0, 0, is_compacted=False) == 0


def test_an_interval_of_which_records_were_deleted_is_refused(tmp_path: Path) -> None:
    require_history("lines-0", of_day(tmp_path), Coverage(0, 50, begin=0), is_compacted=False)
    with pytest.raises(Refused, match=r"begins at offset 7.*every record since its beginning"):
        require_history("lines-0", of_day(tmp_path), Coverage(0, 50, begin=7), is_compacted=False)
    day = of_day(tmp_path, history_seconds=86_400)
    require_history("lines-0", day, Coverage(30, 50, begin=7), is_compacted=False)
    with pytest.raises(Refused, match="every record since 2026-01-01T00:00:00"):
        require_history("lines-0", day, Coverage(6, 50, begin=7), is_compacted=False)


def test_a_table_of_which_records_were_compacted_away_is_refused(tmp_path: Path) -> None:
    whole = [Batch(0, 9, 10, 0), Batch(10, 19, 10, 0)]
    holed = [Batch(0, 9, 10, 0), Batch(15, 19, 5, 0)]
    require_history("table-0", of_day(tmp_path), coverage_of(whole, 0, 20, 0), is_compacted=True)
    with pytest.raises(Refused, match="compacted away before offset 15"):
        require_history("table-0", of_day(tmp_path), coverage_of(holed, 0, 20, 0), is_compacted=True)


def test_records_that_are_deleted_before_they_are_replayed_stop_the_task() -> None:
    source = ("lines", 0)
    assert task_start("0_0", {}, {source: LogRange(5, 50)}, has_state=False, begins={source: 9}) == {source: 9}
    with pytest.raises(Exception, match="every record from offset 3 on"):
        task_start("0_0", {}, {source: LogRange(5, 50)}, has_state=False, begins={source: 3})


class Echo:
    """Emits every record to an output and to a repartition topic."""

    def process_batch(self, records: list[Record]) -> list[Emitted]:
        topics = ("out", "by-word-repartition")
        return [Emitted(topic, r.key, r.value, r.timestamp_ms) for r in records for topic in topics]


def test_records_before_the_interval_make_state_and_no_output() -> None:
    day = Backfill(start_ms=10, end_ms=20, outputs={"out": "again"})
    batch = [Record("in", 0, i, at, b"k", b"v") for i, at in enumerate((1, 12, 5, 11))]
    processor: Any = Echo()
    written = [(e.topic, e.timestamp_ms) for e in process(processor, batch, day)]
    assert [at for topic, at in written if topic == "out"] == [12, 11]
    assert [at for topic, at in written if topic != "out"] == [1, 12, 5, 11]
    assert len(process(processor, batch, None)) == 8


def test_what_a_late_record_makes_of_records_of_the_interval_is_written() -> None:
    """A join result has the later time of its two records.

    If that is in the interval, only this backfill writes it.
    """
    day = Backfill(start_ms=10, end_ms=20, outputs={"out": "again"})
    builder = StreamsBuilder()
    left, right = (builder.stream(name, key=STRING, value=STRING) for name in ("left", "right"))
    near = JoinWindows.of(timedelta(milliseconds=5))
    left.join(right, lambda one, other: one + other, near).to("out", value=STRING)
    processor = PipelineDriver(builder.build()).tasks[0]
    times = (("left", 12, b"a"), ("right", 9, b"b"), ("right", 8, b"c"), ("left", 4, b"d"))
    batch = [Record(topic, 0, i, at, b"k", value) for i, (topic, at, value) in enumerate(times)]
    written = [(e.value, e.timestamp_ms) for e in process(processor, batch, day)]
    assert written == [(b"ab", 12), (b"ac", 12)], "what is wholly before the interval is not"
