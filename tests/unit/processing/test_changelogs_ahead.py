"""Changelogs that have grown ahead of the processors of a pipeline (KIP-878)."""

from __future__ import annotations

from kafka_rescale.core.control.processors import PipelineProcessors, ProcessorCounts


def counts(*present: int) -> PipelineProcessors:
    each = {n: ProcessorCounts(initial=count, count=count) for n, count in enumerate(present)}
    return PipelineProcessors(sub_topologies=each)


def test_they_may_have_the_largest_count_that_was_begun() -> None:
    record = counts(2, 2).growing({0: 8}).growing({0: 4})
    assert (record.sub_topologies[0].growing_to, record.sub_topologies[1].growing_to) == (8, 0)


def test_they_are_ahead_no_longer_once_as_many_processors_were_asked_for() -> None:
    asked = counts(2).growing({0: 4}).asked_for(0, 4).sub_topologies[0]
    assert (asked.expanding_to, asked.growing_to) == (4, 0)


def test_they_stay_ahead_of_fewer_processors() -> None:
    asked = counts(2).growing({0: 8}).asked_for(0, 4).sub_topologies[0]
    assert (asked.expanding_to, asked.growing_to) == (4, 8)


def test_the_record_does_not_mention_them_if_there_are_none() -> None:
    """A version that does not know them reads the record."""
    assert "growing_to" not in counts(2).model_dump_json()
    stored = counts(2).growing({0: 4})
    assert PipelineProcessors.model_validate_json(stored.model_dump_json()) == stored
