"""What a run checks of its topics before it changes any."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from kafka_rescale.cli.declared import validated
from kafka_rescale.core.application.pipeline import PipelineApplication
from kafka_rescale.core.cluster import TopicDescription
from kafka_rescale.core.control.processors import PipelineProcessors
from kafka_rescale.core.errors import InvalidInput, Refused
from kafka_rescale.core.pipeline import Pipeline, StreamsBuilder
from kafka_rescale.operations.processing.topics import PipelineTopics

from tests.support.words_pipeline import write_pipeline


class Cluster:
    """A cluster of topics without any method that could change them."""

    def __init__(self, counts: dict[str, int]) -> None:
        self._counts = counts

    def describe_topics(self, names: Iterable[str]) -> dict[str, TopicDescription]:
        found = {name: self._counts[name] for name in names if name in self._counts}
        return {n: TopicDescription(name=n, partitions=count, replication_factor=1) for n, count in found.items()}


def joined() -> Pipeline:
    builder = StreamsBuilder()
    table = builder.table("prices")
    builder.stream("orders").join(table, lambda order, price: order).to("out")
    return builder.build()


def rekeyed() -> Pipeline:
    builder = StreamsBuilder()
    table = builder.table("prices")
    orders = (
        builder.stream("orders").select_key(lambda key, value: value).repartition(name="by-price", partitions=2)
    )
    orders.join(table, lambda order, price: order).to("out")
    return builder.build()


def record(
    pipeline: Pipeline, counts: dict[str, int], linear: dict[str, int], known: PipelineProcessors | None = None
) -> PipelineProcessors:
    declared = {"application_id": "app", "runtime": "spark", "pipeline": "a:b", "state.dir": "/s"}
    application = PipelineApplication.model_validate({**declared, "linear_hashing": linear})
    cluster: Any = Cluster({**counts, "out": 1})
    return PipelineTopics(application, pipeline, cluster).record(known or PipelineProcessors())


def test_joined_inputs_with_different_counts_are_refused() -> None:
    with pytest.raises(Refused, match="6 partitions of orders, 4 partitions of prices; expected equally many"):
        record(joined(), {"orders": 6, "prices": 4}, {})
    assert record(joined(), {"orders": 4, "prices": 4}, {}).tasks == {0: 4}


def test_names_that_kafka_takes_for_no_topic_are_refused_before_any_is_created() -> None:
    builder = StreamsBuilder()
    builder.stream("orders").group_by_key().count(store="s" * 235).to_stream().to("out")
    assert record(builder.build(), {"orders": 2}, {}).tasks == {0: 2}
    builder = StreamsBuilder()
    builder.stream("orders").group_by_key().count(store="s" * 236).to_stream().to("out")
    with pytest.raises(Refused, match="found names of 250 characters; expected at most 249, which Kafka takes"):
        record(builder.build(), {"orders": 2}, {})


def test_a_repartition_topic_whose_count_the_program_sets_must_fit_what_it_is_joined_with() -> None:
    with pytest.raises(Refused, match="2 partitions of by-price-repartition, 4 partitions of prices"):
        record(rekeyed(), {"orders": 3, "prices": 4}, {})
    assert record(rekeyed(), {"orders": 3, "prices": 2}, {}).tasks == {0: 2, 1: 3}


def test_one_input_may_have_grown_before_the_other_where_both_are_placed_by_linear_hashing() -> None:
    linear = {"orders": 2, "prices": 2}
    first = record(joined(), {"orders": 2, "prices": 2}, linear)
    grown = record(joined(), {"orders": 4, "prices": 2}, linear, first)
    assert grown.topics["orders"].partitions == 4


def test_a_topic_that_is_declared_by_another_name_is_not_passed_over(tmp_path: Path) -> None:
    counts = {"orders": 4, "prices": 4}
    with pytest.raises(InvalidInput, match=r"linear_hashing: found price; expected .*: orders, out, prices"):
        record(joined(), counts, {"orders": 2, "price": 2})
    file = write_pipeline(tmp_path, linear_hashing={"line": 2})
    with pytest.raises(InvalidInput, match=r"found line; expected .*: counted, lines"):
        validated(file)
    assert validated(write_pipeline(tmp_path, linear_hashing={"lines": 2, "counted": 2}))
    again = {"outputs": {"counted": "counted-again"}}
    assert validated(write_pipeline(tmp_path, linear_hashing={"counted-again": 2}, backfill=again))


def test_an_output_that_can_not_be_written_as_declared_is_not_written_otherwise() -> None:
    with pytest.raises(InvalidInput, match="linear_hashing of out: found 2, and a topic of 1 partitions"):
        record(joined(), {"orders": 4, "prices": 4}, {"orders": 4, "prices": 4, "out": 2})
