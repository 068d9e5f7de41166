"""Counting by another key: the smallest pipeline with a store and a repartition topic."""

from __future__ import annotations

import pytest
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.pipeline import LONG, STRING, Pipeline, StreamsBuilder
from kafka_rescale.core.pipeline.task import Emitted, Record

from tests.support.processing.pipeline_driver import PipelineDriver, Written


def first_words() -> Pipeline:
    builder = StreamsBuilder()
    (
        builder.stream("lines", key=STRING, value=STRING)
        .select_key(lambda key, line: line.split()[0], key=STRING)
        .group_by_key()
        .count(store="counts")
        .to_stream()
        .to("totals")
    )
    return builder.build()


def number(value: int) -> bytes:
    return LONG.encode(value)


def test_sub_topologies_are_cut_at_the_repartition_topic() -> None:
    before, behind = first_words().sub_topologies()
    assert (before.id, before.sources, before.sinks, before.stores) == (0, ("lines",), ("counts-repartition",), ())
    assert (behind.id, behind.sources, behind.sinks) == (1, ("counts-repartition",), ("totals",))
    (store,) = behind.stores
    assert (store.name, store.kind, store.changelog_topic) == (
        "counts",
        "timestamped-key-value",
        "counts-changelog",
    )


def test_every_record_updates_count_changelog_and_output() -> None:
    driver = PipelineDriver(first_words())
    assert driver.pipe("lines", None, b"a b", 5) == [Emitted("totals", b"a", number(1), 5)]
    assert driver.pipe("lines", None, b"c", 6) == [Emitted("totals", b"c", number(1), 6)]
    assert driver.pipe("lines", b"k", b"a", 4, (("h", b"1"),)) == [
        Emitted("totals", b"a", number(2), 5, (("h", b"1"),))
    ]
    assert driver.changelog("counts") == [
        Written(b"a", number(1), 5),
        Written(b"c", number(1), 6),
        Written(b"a", number(2), 5),
    ]


def test_stream_time_survives_a_restart() -> None:
    driver = PipelineDriver(first_words())
    driver.pipe("lines", None, b"a", 5)
    driver.restart()
    assert driver.tasks[1].stream_time() == 5
    assert driver.pipe("lines", None, b"a", 3) == [Emitted("totals", b"a", number(2), 5)]


def test_what_cannot_be_used_is_refused() -> None:
    before, behind = first_words().sub_topologies()
    task = before.processor({}, 3)
    with pytest.raises(InvalidInput, match="value of lines-3 at offset 7"):
        task.process(Record("lines", 3, 7, 0, None, b"\xff"))
    with pytest.raises(InvalidInput, match="timestamp -1"):
        task.process(Record("lines", 3, 7, -1, None, b"a"))
    with pytest.raises(InvalidInput, match="a topic that the task does not read"):
        task.process(Record("totals", 3, 7, 0, None, b"a"))
    with pytest.raises(InvalidInput, match="no store counts"):
        behind.processor({}, 0)
    for text in ("[", "[1]", '{"a": "x"}', "AAE="):
        with pytest.raises(InvalidInput, match="checkpoint of task 0_3"):
            task.restore(text)
