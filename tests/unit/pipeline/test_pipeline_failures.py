"""If a function of a pipeline fails, the message names the record, the error, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import pytest
from kafka_rescale.core.errors import InvalidInput, RescaleError
from kafka_rescale.core.pipeline import JSON, LONG, STRING, Pipeline, StreamsBuilder
from kafka_rescale.core.pipeline.serdes import Serde
from kafka_rescale.core.pipeline.task import Record
from kafka_rescale.spark.jobs.task_errors import TaskFailure, as_text, from_text
from kafka_rescale.spark.vectorized import on_pandas

from tests.support.processing.pipeline_driver import PipelineDriver

RECORDS = [Record("in", 3, 100 + n, n, b"k%d" % n, LONG.encode(n)) for n in range(8)]


def mapped(mapper: Callable[[Any], Any]) -> Pipeline:
    builder = StreamsBuilder()
    builder.stream("in", key=STRING, value=LONG).map_values(mapper, value=LONG).to("out")
    return builder.build()


def inverse(value: int) -> int:
    return 60 // (value - 5)


def fails_alone(values: Any) -> Any:
    assert not (values == 5).any(), "five"
    return values


def fails_together(values: Any) -> Any:
    assert len(values) == 1, "several"
    return values


@pytest.mark.parametrize(
    ("function", "named", "cause"),
    [
        (inverse, "record in-3 at offset 105 in task 0_0", ZeroDivisionError),
        (on_pandas(fails_alone), "record in-3 at offset 105 in task 0_0", AssertionError),
        (on_pandas(fails_together), "records in-3 at offset 100 to in-3 at offset 107", AssertionError),
    ],
)
def test_a_function_that_fails_is_told_by_its_record(function: Any, named: str, cause: type[Exception]) -> None:
    with pytest.raises(TaskFailure) as raised, as_text():
        PipelineDriver(mapped(function)).task_of("in").process_batch(RECORDS)
    error = from_text(raised.value)
    assert type(error) is RescaleError, "a retry may help, as with any other failure of a thread"
    assert error.what.startswith(named)
    assert error.found.startswith(cause.__name__)
    assert "test_pipeline_failures.py, line " in error.found
    assert isinstance(raised.value.__cause__, cause), "its traceback comes along"


def test_what_a_store_has_met_with_its_brokers_stays_what_it_is() -> None:
    builder = StreamsBuilder()
    builder.stream("in", key=STRING, value=LONG).group_by_key().count(store="counts").to_stream().to("out")
    task = PipelineDriver(builder.build()).task_of("in")
    lost = BufferError("the queue is full")
    task._context.views["counts"].put = Mock(side_effect=lost)
    with pytest.raises(BufferError) as raised:
        task.process_batch(RECORDS)
    assert raised.value is lost


def test_state_of_another_serde_is_told_by_its_store() -> None:
    def counted(value: Serde) -> Pipeline:
        builder = StreamsBuilder()
        stream = builder.stream("in", key=STRING, value=LONG).group_by_key()
        stream.aggregate(lambda: 0, lambda k, v, a: v, store="latest", value=value).to_stream().to("out")
        return builder.build()

    task = PipelineDriver(counted(LONG)).task_of("in")
    task.process(RECORDS[0])
    views = task._context.views
    again = counted(JSON).sub_topologies()[0].processor(views, 0)
    with pytest.raises(InvalidInput, match="value in store 'latest': found bytes that its serde can't read"):
        again.process(RECORDS[0])
