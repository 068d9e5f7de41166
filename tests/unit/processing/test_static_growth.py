"""How a pipeline handles the growth of an input with a static partitioner (KIP-878)."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from kafka_rescale.core.control.processors import PipelineProcessors
from kafka_rescale.core.errors import InvalidInput, Refused, UnsafeState
from kafka_rescale.core.pipeline import BYTES, Pipeline, StreamsBuilder
from kafka_rescale.core.pipeline.task import StoreDefinition
from kafka_rescale.core.processing.growth import Declared, grown_static_topics, observed
from kafka_rescale.core.processing.static_topic import Placement, StaticTopic, require_static_topics

FUNCTIONS = "tests.support.user_partitioners"
PINNED = f"{FUNCTIONS}:pinned"
STATIC = Declared({}, (), {"in": PINNED})


@dataclass(frozen=True)
class Part:
    """The counts of a sub-topology."""

    id: int = 0
    sources: tuple[str, ...] = ("in",)
    sinks: tuple[str, ...] = ()
    stores: tuple[StoreDefinition, ...] = (StoreDefinition("counts", "timestamped-key-value"),)


def grown(declared: Declared) -> PipelineProcessors:
    """An input with two partitions, then four."""
    first = observed(PipelineProcessors(), [Part()], {"in": 2}, declared, (0,), at_ms=1_000)
    return observed(first, [Part()], {"in": 4}, declared, (), at_ms=2_000)


def test_an_input_with_state_may_grow_if_its_partitioner_is_static() -> None:
    record = grown(STATIC)
    assert (record.topics["in"].partitions, record.tasks) == (4, {0: 2})
    assert [record.sub_topologies[0].of(n, 4) for n in range(2)] == [[0, 2], [1, 3]]
    assert PipelineProcessors.model_validate_json(record.model_dump_json()).static == {"in": PINNED}
    assert grown_static_topics(Part(), record, STATIC) == {"in": StaticTopic("in", PINNED, 4)}
    with pytest.raises(Refused, match="declare it under `static_partitioners`"):
        grown(Declared({}, ()))


def test_the_state_of_a_key_is_where_the_function_puts_the_key() -> None:
    keys = [b"k-0", b"k-1", b"k-2", b"k-3"]
    placement = STATIC.placement(Part(), grown(STATIC))
    assert placement.owners(keys, 2) == [0, 1, 0, 1]
    assert placement.owners(keys, 3) == [0, 1, 2, 1]
    assert placement.owners(keys, 4) == [0, 1, 2, 3]
    assert Placement(2).owners(keys, 4) != placement.owners(keys, 4)


def test_a_record_elsewhere_is_named() -> None:
    topic = StaticTopic("in", PINNED, 4)
    topic.check([(0, 7, b"k-0"), (3, 8, b"k-3"), (1, 9, None)])
    with pytest.raises(UnsafeState, match=r"partition 1 offset 9: key 0x6b2d33.*it in partition 3, by the static"):
        topic.check([(0, 7, b"k-0"), (1, 9, b"k-3")])


def test_a_partition_number_outside_of_the_topic_is_an_error() -> None:
    with pytest.raises(UnsafeState, match="one partition of 0 to 3"):
        StaticTopic("in", f"{FUNCTIONS}:one_too_high", 4).homes([b"k-0"])


def joined() -> Pipeline:
    builder = StreamsBuilder()
    table = builder.table("other", key=BYTES, value=BYTES)
    builder.stream("in", key=BYTES, value=BYTES).join(table, lambda a, b: a, value=BYTES).to("out")
    return builder.build()


@pytest.mark.parametrize(
    ("static", "linear", "message"),
    [
        ({"out": PINNED}, {}, "found out; expected inputs of the pipeline: in, other"),
        ({"in": PINNED, "other": PINNED}, {"in": 2}, "in under `linear_hashing` as well"),
        ({"in": PINNED}, {}, "other: none; expected one function for all inputs of sub-topology 0"),
        ({"in": f"{FUNCTIONS}:missing"}, {}, "has no attribute 'missing'"),
    ],
)
def test_a_declaration_that_would_tear_keys_apart_is_refused(
    static: dict[str, str], linear: dict[str, int], message: str
) -> None:
    pipeline = joined()
    with pytest.raises(InvalidInput, match=message):
        require_static_topics(static, linear, pipeline.topology, pipeline.sub_topologies())
    require_static_topics({"in": PINNED, "other": PINNED}, {}, pipeline.topology, pipeline.sub_topologies())
