"""The text of a pipeline's description, and the Java orders that it depends on.

``I/test_pipelines_of_kafka_streams.py`` compares every operation with Kafka Streams itself.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka_rescale.core.errors import InvalidInput, Refused
from kafka_rescale.core.pipeline import STRING, StreamsBuilder
from kafka_rescale.core.pipeline.java_order import TreeOrder, hash_order
from kafka_rescale.core.pipeline.task import Record
from kafka_rescale.core.topology.partition_counts import partition_counts

from tests.support.processing.pipeline_programs import PROGRAMS, built

GROUPED = """\
Topologies:
   Sub-topology: 0
    Source: KSTREAM-SOURCE-0000000000 (topics: [lines])
      --> KSTREAM-KEY-SELECT-0000000001
    Processor: KSTREAM-KEY-SELECT-0000000001 (stores: [])
      --> counts-repartition-filter
      <-- KSTREAM-SOURCE-0000000000
    Processor: counts-repartition-filter (stores: [])
      --> counts-repartition-sink
      <-- KSTREAM-KEY-SELECT-0000000001
    Sink: counts-repartition-sink (topic: counts-repartition)
      <-- counts-repartition-filter

  Sub-topology: 1
    Source: counts-repartition-source (topics: [counts-repartition])
      --> KSTREAM-AGGREGATE-0000000002
    Processor: KSTREAM-AGGREGATE-0000000002 (stores: [counts])
      --> KTABLE-TOSTREAM-0000000006
      <-- counts-repartition-source
    Processor: KTABLE-TOSTREAM-0000000006 (stores: [])
      --> KSTREAM-SINK-0000000007
      <-- KSTREAM-AGGREGATE-0000000002
    Sink: KSTREAM-SINK-0000000007 (topic: totals)
      <-- KTABLE-TOSTREAM-0000000006

"""


def test_a_description_has_nodes_neighbours_topics_and_stores() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("lines").select_key(lambda key, value: value)
    stream.group_by_key().count(store="counts").to_stream().to("totals")
    assert builder.build().describe() == GROUPED


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_topology_of_a_description_is_that_of_the_sub_topologies(name: str) -> None:
    pipeline = built(name)
    described = [(s.id, set(s.sources), set(s.sinks), set(s.stores)) for s in pipeline.topology.subtopologies]
    assert described == [
        (s.id, set(s.sources), set(s.sinks), {store.name for store in s.stores}) for s in pipeline.sub_topologies()
    ]


def test_partition_counts_are_derived_as_for_any_application() -> None:
    pipeline = built("repartition")
    counts = partition_counts(pipeline.topology, {"left": 6}, pipeline.enforced_partitions)
    assert counts == {"KSTREAM-REPARTITION-0000000002-repartition": 6, "again-repartition": 3}


def test_names_come_in_the_order_of_a_java_hash_set() -> None:
    # in the order in which `new HashSet<>(List.of(…))` prints them
    assert hash_order(["topic", "left", "right", "third", "in"]) == ["third", "left", "in", "topic", "right"]


@given(st.lists(st.integers(), unique=True))
def test_a_tree_whose_order_does_not_change_is_sorted(numbers: list[int]) -> None:
    tree = TreeOrder[int](lambda one, two: one - two)
    for number in numbers:
        tree.add(number)
    assert list(tree) == sorted(numbers)


def test_topics_that_are_joined_have_equally_many_partitions() -> None:
    builder = StreamsBuilder()
    table = builder.table("prices")
    builder.stream("orders").join(table, lambda order, price: order).to("out")
    builder.stream("returns").select_key(lambda k, v: v).join(table, lambda r, p: r, name="back").to("out-2")
    pipeline = builder.build()
    assert pipeline.copartitioned == ({"orders", "prices"}, {"back-repartition", "prices"})
    counts = {"orders": 4, "prices": 4, "back-repartition": 4, "returns": 6}
    pipeline.check_copartitioned(counts)
    with pytest.raises(
        Refused, match="6 partitions of orders, 4 partitions of prices; expected equally many partitions"
    ):
        pipeline.check_copartitioned({**counts, "orders": 6})


def test_a_pipeline_is_built_once() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in")
    stream.to("out")
    assert builder.build() is builder.build()
    with pytest.raises(InvalidInput, match="has been built already"):
        stream.to("late")


@pytest.mark.parametrize("name", ["with space", "slash/", "", ".", "..", "x" * 250])
def test_a_name_that_no_topic_can_have_is_refused(name: str) -> None:
    for make in (
        lambda stream: stream.to(name),
        lambda stream: stream.group_by_key().count(store=name or "!"),
        lambda stream: stream.filter(bool, name=name or "!"),
    ):
        builder = StreamsBuilder()
        make(builder.stream("in"))
        with pytest.raises(InvalidInput, match="can't be the name of a topic"):
            builder.build()


def test_a_stream_reads_something() -> None:
    with pytest.raises(InvalidInput, match="no topic"):
        StreamsBuilder().stream()


def test_what_cannot_be_one_program_is_refused() -> None:
    builder = StreamsBuilder()
    builder.stream("in", name="same").to("out", name="same")
    with pytest.raises(InvalidInput, match="node 'same'"):
        builder.build()

    builder = StreamsBuilder()
    for _ in range(2):
        builder.stream("in").group_by_key().count(store="counts")
    with pytest.raises(InvalidInput, match="store 'counts'"):
        builder.build()

    builder = StreamsBuilder()
    for _ in range(2):
        builder.stream("in").repartition(name="again")
    with pytest.raises(InvalidInput, match="repartition topic 'again-repartition'"):
        builder.build()

    builder = StreamsBuilder()
    builder.stream("in").to("out")
    builder.table("in").to_stream().to("out")
    with pytest.raises(InvalidInput, match="two sources that read it"):
        builder.build()

    builder = StreamsBuilder()
    builder.stream("a", "b").to("out")
    builder.stream("b", "c").to("out")
    with pytest.raises(InvalidInput, match="source of b, c"):
        builder.build()


@pytest.mark.parametrize(
    ("key", "value", "found"),
    [(None, None, "a str and no serde"), (STRING, None, "a int and no serde"), (STRING, STRING, "a int: ")],
)
def test_what_cannot_be_written_is_named_with_its_remedy(key: object, value: object, found: str) -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in", value=STRING).select_key(lambda k, v: v).map_values(len)
    stream.to("out", key=key, value=value)  # type: ignore[arg-type]
    (sub,) = builder.build().sub_topologies()
    with pytest.raises(InvalidInput, match=f"for topic 'out': found {found}"):
        sub.processor({}, 0).process(Record("in", 0, 0, 0, None, b"x"))
