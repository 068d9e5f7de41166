"""Counts of repartition topics, by cases of ``RepartitionTopicsTest`` and ``CopartitionedTopicsEnforcerTest``."""

from __future__ import annotations

import pytest
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.topology.partition_counts import partition_counts
from kafka_rescale.core.topology.topology import SubTopology, Topology


def topology(*subtopologies: tuple[str, str]) -> Topology:
    """Sub-topologies, written as (sources, sinks). A name in capitals is a repartition topic."""

    def names(text: str) -> tuple[str, ...]:
        return tuple(f"{n}-repartition" if n.isupper() else n for n in text.split())

    return Topology(tuple(SubTopology(i, names(a), (), names(b)) for i, (a, b) in enumerate(subtopologies)))


def counts(given: Topology, external: dict[str, int], **enforced: int) -> dict[str, int]:
    """The computed counts. Repartition topics have names in capitals."""
    suffixed = {f"{t}-repartition": n for t, n in enforced.items()}
    computed = partition_counts(given, external, suffixed)
    return {t.removesuffix("-repartition"): n for t, n in computed.items()}


def test_should_set_repartition_topic_partition_count_from_upstream_external_source_topic() -> None:
    assert counts(topology(("a b", "R"), ("R", "")), {"a": 3, "b": 5}) == {"R": 5}


def test_should_set_repartition_topic_partition_count_from_upstream_internal_repartition_source_topic() -> None:
    assert counts(topology(("a", "R"), ("R", "S"), ("S", "")), {"a": 3}) == {"R": 3, "S": 3}


def test_the_order_of_the_subtopologies_does_not_matter() -> None:
    assert counts(topology(("S", "out"), ("R", "S"), ("a", "R")), {"a": 3}) == {"R": 3, "S": 3}


def test_several_writers_the_largest_source_decides() -> None:
    assert counts(topology(("a", "R"), ("b", "R"), ("R", "")), {"a": 3, "b": 7}) == {"R": 7}


def test_should_not_setup_repartition_topics_when_topology_does_not_contain_any() -> None:
    assert counts(topology(("a", "out")), {"a": 3}) == {}


def test_should_refuse_if_partition_count_can_not_be_computed() -> None:
    with pytest.raises(InvalidInput) as error:
        counts(topology(("a unknown", "R"), ("R", "")), {"a": 3})
    assert str(error.value) == (
        "topology: found no partition count for what feeds R-repartition; expected a count for every source "
        "topic. Declare every input topic of the topology in the application file."
    )


def test_should_enforce_copartitioning_on_repartition_topics_to_the_external_topic() -> None:
    joined = topology(("a", "R"), ("R table", ""))
    assert counts(joined, {"a": 12, "table": 4}) == {"R": 4}
    assert counts(joined, {"a": 2, "table": 4}) == {"R": 4}


def test_should_set_num_partitions_to_maximum_if_all_topics_are_repartition_topics() -> None:
    assert counts(topology(("a", "R"), ("b", "S"), ("R S", "")), {"a": 2, "b": 6}) == {"R": 6, "S": 6}


def test_should_deduct_num_partitions_from_repartition_topic_with_enforced_num_of_partitions() -> None:
    assert counts(topology(("a", "R"), ("b", "S"), ("R S", "")), {"a": 9, "b": 6}, S=2) == {"R": 2, "S": 2}


def test_an_enforced_count_replaces_the_derived_one() -> None:
    assert counts(topology(("a", "R"), ("R", "S"), ("S", "")), {"a": 3}, R=8) == {"R": 8, "S": 8}


def test_an_external_topic_named_like_a_repartition_topic_is_an_input() -> None:
    given = Topology((SubTopology(0, ("other-app-x-repartition",), (), ("out",)),))
    assert given.repartitions == frozenset()
    assert given.inputs == ("other-app-x-repartition",)


@pytest.mark.parametrize(
    ("circle", "ids"), [([("R", "S"), ("S", "R")], "[0, 1]"), ([("a R", "R")], "[0]")], ids=["two", "one"]
)
def test_subtopologies_that_feed_each_other_or_themselves_are_refused(
    circle: list[tuple[str, str]], ids: str
) -> None:
    with pytest.raises(InvalidInput) as error:
        topology(*circle).downstream_first()
    assert str(error.value) == (
        f"topology: found sub-topologies {ids} that feed themselves or each other by repartition topics; expected "
        "sub-topologies of which one is the most downstream. Such a circle can't be expanded. Cut it, for example "
        "into two applications."
    )


def test_downstream_first_puts_every_reader_before_its_writers() -> None:
    diamond = topology(("a", "R S"), ("R", "T"), ("S", "T"), ("T", "out"))
    assert [s.id for s in diamond.downstream_first()] == [3, 2, 1, 0]
