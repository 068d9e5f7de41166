"""A task that is made anew from its stores and its checkpoint goes on as if nothing had been."""

from __future__ import annotations

import random

import pytest
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.pipeline import STRING, JoinWindows, StreamsBuilder
from kafka_rescale.core.pipeline.task import CHECKPOINT_CHARACTERS

from tests.support.pipeline_driver import PipelineDriver
from tests.support.pipeline_programs import PROGRAMS, built, program_records, seconds


@pytest.mark.parametrize("name", PROGRAMS)
def test_restarts_change_nothing(name: str) -> None:
    records = program_records(name, 120)
    chance, restarted = random.Random(name), PipelineDriver(built(name))
    for each in records:
        if chance.random() < 0.3:
            restarted.restart()
        restarted.pipe(each.topic, each.key, each.value, each.timestamp, (("h", each.header),))
    assert {t: w for t, w in restarted.written.items() if w} == PipelineDriver(built(name)).pipe_all(records)


@pytest.mark.parametrize("name", ["windows", "sessions", "narrow_stream_stream_joins"])
def test_without_its_checkpoint_a_task_would_not_know_what_is_late(name: str) -> None:
    records = program_records(name, 120)
    forgetful = PipelineDriver(built(name))
    for each in records:
        for sub in built(name).sub_topologies():
            forgetful.tasks[sub.id] = sub.processor(forgetful.stores, 0)
        forgetful.pipe(each.topic, each.key, each.value, each.timestamp, (("h", each.header),))
    assert forgetful.written != PipelineDriver(built(name)).pipe_all(records)


def test_a_checkpoint_fits_into_the_metadata_of_an_offset() -> None:
    for name in PROGRAMS:
        driver = PipelineDriver(built(name))
        driver.pipe_all(program_records(name, 50))
        assert all(len(t.checkpoint()) <= CHECKPOINT_CHARACTERS for t in driver.tasks.values())


def test_a_task_whose_checkpoint_could_become_too_long_is_refused() -> None:
    builder = StreamsBuilder()
    left, right = (builder.stream(topic, key=STRING, value=STRING) for topic in ("left", "right"))
    for number in range(20):
        left.join(right, lambda one, two: one, JoinWindows.of(seconds(1))).to(f"out-{number}")
    with pytest.raises(InvalidInput, match="fit into the metadata of offsets"):
        PipelineDriver(builder.build())


def test_what_a_checkpoint_does_not_know_begins_anew() -> None:
    task = PipelineDriver(built("windows")).tasks[0]
    task.restore('{"":7,"an operation that is gone":9}')
    assert task.stream_time() == 7
