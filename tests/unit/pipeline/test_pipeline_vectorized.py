"""Vectorised functions: their arguments, and results that don't depend on batches."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow.compute as pc
import pytest
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.pipeline import BYTES, DOUBLE, INTEGER, JSON, LONG, STRING, Pipeline, StreamsBuilder, avro
from kafka_rescale.core.pipeline.serdes import Serde
from kafka_rescale.core.pipeline.task import Emitted, Record
from kafka_rescale.core.pipeline.vectorized import Vectorized
from kafka_rescale.spark.vectorized import on_arrow, on_pandas

from tests.support.processing.pipeline_driver import PipelineDriver

RECORDS = [
    Record("in", 0, number, number, None if number % 5 == 0 else b"k%d" % (number % 3), LONG.encode(number))
    for number in range(40)
]


def doubled_of_odd(double: Callable[..., Any], is_odd: Callable[..., Any], key: Callable[..., Any]) -> Pipeline:
    builder = StreamsBuilder()
    stream = builder.stream("in", key=STRING, value=LONG).filter(is_odd).map_values(double, value=LONG)
    stream.select_key(key, key=STRING).group_by_key().reduce(lambda a, v: a + v).to_stream().to("out")
    stream.to("doubled")
    return builder.build()


PLAIN = doubled_of_odd(lambda v: v * 2, lambda k, v: v % 2, lambda k, v: str(v % 7))


@pytest.mark.parametrize(
    "pipeline",
    [
        doubled_of_odd(on_pandas(lambda v: v * 2), on_pandas(lambda k, v: v % 2 == 1), lambda k, v: str(v % 7)),
        doubled_of_odd(
            on_arrow(lambda v: pc.multiply(v, 2)), lambda k, v: v % 2, on_pandas(lambda k, v: (v % 7).astype(str))
        ),
        doubled_of_odd(
            Vectorized(lambda v: [2 * each for each in v]), lambda k, v: v % 2, lambda k, v: str(v % 7)
        ),
    ],
)
@pytest.mark.parametrize("size", [1, 7, 40])
def test_results_are_those_of_functions_of_one_record(pipeline: Pipeline, size: int) -> None:
    def emitted(of: Pipeline, batch: int) -> list[Emitted]:
        task = PipelineDriver(of).task_of("in")
        batches = (RECORDS[at : at + batch] for at in range(0, len(RECORDS), batch))
        return [each for records in batches for each in task.process_batch(records)]

    assert emitted(pipeline, size) == emitted(PLAIN, 1)


def test_a_whole_batch_is_one_call_as_far_as_the_stream_does_not_branch() -> None:
    calls: list[int] = []

    def noted(values: list[Any]) -> list[Any]:
        calls.append(len(values))
        return values

    builder = StreamsBuilder()
    mapped = builder.stream("in", value=LONG).map_values(Vectorized(noted), value=LONG)
    mapped.to("out")
    mapped.map_values(Vectorized(noted), value=LONG).to("out-2")
    task = PipelineDriver(builder.build()).tasks[0]
    found = task.process_batch(RECORDS[:4])
    assert calls == [4, 1, 1, 1, 1]
    assert [e.topic for e in found] == ["out", "out-2"] * 4
    assert task.stream_time() == 3


def test_records_of_other_sources_keep_their_places_between_those_of_a_batch() -> None:
    builder = StreamsBuilder()
    builder.stream("in", value=LONG).map_values(on_pandas(lambda v: v + 1), value=LONG).to("out")
    table = builder.table("table", key=STRING, value=LONG)
    builder.stream("other", key=STRING, value=LONG).filter(Vectorized(lambda k, v: [True] * len(v))).join(
        table, lambda v, t: t
    ).to("out", value=LONG)
    number = LONG.encode
    task = PipelineDriver(builder.build()).task_of("other")
    batch = [
        Record("table", 0, 0, 1, b"k", number(1)),
        Record("other", 0, 0, 2, b"k", number(0)),
        Record("table", 0, 1, 3, b"k", number(2)),
        Record("other", 0, 1, 4, b"k", number(0)),
    ]
    found = task.process_batch(batch)
    assert [e.value for e in found] == [number(1), number(2)]


def test_what_is_missing_in_a_column_is_a_tombstone() -> None:
    builder = StreamsBuilder()
    builder.stream("in", value=LONG).map_values(on_pandas(lambda v: v.where(v > 1)), value=DOUBLE).to("out")
    task = PipelineDriver(builder.build()).tasks[0]
    found = task.process_batch(RECORDS[1:4])
    assert [e.value is None for e in found] == [True, False, False]


@pytest.mark.parametrize(
    ("serde", "values", "expected"),
    [
        (LONG, [2**60 + 1, None, 3], ("Int64", "int64")),
        (INTEGER, [1, None], ("Int64", "int64")),
        (LONG, [None, None], ("Int64", "int64")),
        (DOUBLE, [1.0, 2.0], ("float64", "double")),
        (DOUBLE, [None], ("float64", "double")),
        (STRING, ["a", None], ("string", "string")),
        (STRING, [None, None], ("string", "string")),
        (BYTES, [None], ("object", "binary")),
        (JSON, [1, 2], ("object", "int64")),
        (None, [None], ("object", "null")),
    ],
)
def test_the_type_of_a_column_is_that_of_the_serde_whatever_a_batch_holds(
    serde: Serde | None, values: list[Any], expected: tuple[str, str]
) -> None:
    seen: list[str] = []

    def on_series(keys: Any, column: Any) -> Any:
        seen.append(str(column.dtype))
        return keys.isna() | True

    def on_array(column: Any) -> Any:
        seen.append(str(column.type))
        return column

    builder = StreamsBuilder()
    stream = builder.stream("in", key=STRING, value=serde).filter(on_pandas(on_series))
    stream.map_values(on_arrow(on_array), value=serde).to("out")
    encoded = [None if value is None else (serde or BYTES).encode(value) for value in values]
    records = [Record("in", 0, at, at, None, value) for at, value in enumerate(encoded)]
    emitted = PipelineDriver(builder.build()).tasks[0].process_batch(records)
    assert ((seen[0], seen[-1]), set(seen)) == (expected, set(expected))
    assert [each.value for each in emitted] == encoded


def test_functions_of_strings_take_a_batch_of_nothing_but_tombstones() -> None:
    builder = StreamsBuilder()
    upper = on_arrow(pc.utf8_upper)
    builder.stream("in", value=STRING).map_values(upper, value=STRING).to("out")
    task = PipelineDriver(builder.build()).tasks[0]
    assert [e.value for e in task.process_batch([Record("in", 0, 0, 0, None, None)])] == [None]


def test_a_result_for_every_record_is_needed() -> None:
    builder = StreamsBuilder()
    builder.stream("in", value=LONG).map_values(Vectorized(lambda v: v[:1])).to("out")
    task = PipelineDriver(builder.build()).tasks[0]
    with pytest.raises(InvalidInput, match="1 results for 3 records"):
        task.process_batch(RECORDS[:3])


def of_each(field: str) -> Vectorized:
    """A function of pandas objects. Pandas infers the type of its results from all of them."""
    return on_pandas(lambda values: values.map(lambda value: value[field]))


SAME = on_arrow(lambda values: values)
AMOUNTS = avro('{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}')
BIG = 2**53 + 1


@pytest.mark.parametrize("size", [2, 9])
@pytest.mark.parametrize(
    ("function", "serde", "values", "result", "expected"),
    [
        (SAME, JSON, [{"a": 1}, {"b": 2}], JSON, None),
        (SAME, JSON, [{"a": 1, "b": 2}, {"b": 2, "a": 1}], JSON, None),
        (SAME, JSON, [{"a": 1}, {"a": None}, {"a": 2.5}, {}], JSON, None),
        (SAME, JSON, [1, 2.5, None, True, BIG], JSON, None),
        (SAME, JSON, [1, "x", [1], [2.5], [], [None, 1]], JSON, None),
        (SAME, JSON, [[{"a": 1}, {"a": None}], [{"a": 2.5}, {"a": 1.5}], {}, [{}]], JSON, None),
        (SAME, AMOUNTS, [Decimal("1.10"), Decimal("2.20"), None], AMOUNTS, None),
        (SAME, None, [b"x", None, b""], BYTES, None),
        (on_pandas(lambda values: values), JSON, [1, None, 2.5, "x", {"a": None}, [1]], JSON, None),
        (of_each("n"), JSON, [{"n": 1}, {"n": None}], JSON, [1, None]),
        (of_each("n"), JSON, [{"n": BIG}, {"n": None}], JSON, [BIG, None]),
        (of_each("n"), JSON, [{"n": 1}, {"n": 2.5}, {"n": 3.0}], JSON, [1, 2.5, 3.0]),
        (of_each("n"), JSON, [{"n": True}, {"n": None}, {"n": 1}], JSON, [True, None, 1]),
        (of_each("n"), JSON, [{"n": -1}, {"n": 2**63}], JSON, [-1, 2**63]),
        (of_each("n"), JSON, [{"n": BIG}, {"n": None}], LONG, [BIG, None]),
        (of_each("n"), JSON, [{"n": BIG}, {"n": None}, {"n": 0.5}], DOUBLE, [BIG, None, 0.5]),
        (on_pandas(lambda v: v.map(lambda n: n)), LONG, [BIG, None, 3], LONG, None),
        (on_pandas(lambda v: v.map(str)), LONG, [BIG, 3], STRING, [str(BIG), "3"]),
        (on_pandas(lambda v: v.fillna(0).map(str)), LONG, [BIG, None, 3], STRING, [str(BIG), "0", "3"]),
        (on_pandas(lambda v: v.map(str, na_action="ignore")), LONG, [BIG, None], STRING, [str(BIG), None]),
    ],
)
def test_a_result_is_the_same_whatever_is_in_the_batch_beside_it(
    function: Vectorized,
    serde: Serde | None,
    values: list[Any],
    result: Serde,
    expected: list[Any] | None,
    size: int,
) -> None:
    builder = StreamsBuilder()
    builder.stream("in", value=serde).map_values(function, value=result).to("out")
    task = PipelineDriver(builder.build()).tasks[0]
    encoded = [None if value is None else (serde or BYTES).encode(value) for value in values]
    records = [Record("in", 0, at, at, None, value) for at, value in enumerate(encoded)]

    def written(batch: int) -> list[bytes | None]:
        batches = (records[at : at + batch] for at in range(0, len(records), batch))
        return [each.value for of in batches for each in task.process_batch(of)]

    exact = [None if each is None else result.encode(each) for each in (values if expected is None else expected)]
    assert written(1) == exact
    assert written(size) == exact


def test_records_that_are_alike_are_one_call() -> None:
    calls: list[int] = []

    def noted(values: Any) -> Any:
        calls.append(len(values))
        return values

    builder = StreamsBuilder()
    builder.stream("in", value=JSON).map_values(on_arrow(noted), value=JSON).to("out")
    values = [{"a": 1, "b": "x"}, {"a": 2.5, "b": "x"}] * 5
    records = [Record("in", 0, at, at, None, JSON.encode(value)) for at, value in enumerate(values)]
    emitted = PipelineDriver(builder.build()).tasks[0].process_batch(records)
    assert [JSON.decode(each.value or b"") for each in emitted] == values
    assert calls == [5, 5]


def test_values_that_arrow_has_no_type_for_are_named_with_what_can_be_done() -> None:
    builder = StreamsBuilder()
    builder.stream("in", value=JSON).map_values(SAME, value=JSON).to("out")
    task = PipelineDriver(builder.build()).tasks[0]
    with pytest.raises(InvalidInput, match=r"on_arrow: found a list .*on_pandas"):
        task.process_batch([Record("in", 0, 0, 0, None, b'[1,"x"]')])
