"""The parser of ``Topology#describe()`` against the objects that Kafka Streams prints it from.

Kafka Streams 3.9.1 and 4.3.1 were compared: they print the same, except for the names of lambdas.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass

import pytest
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.topology.describe import parse_describe

from testbed.jars import JVM_DIRECTORY, java_command

pytestmark = pytest.mark.integration

Fact = tuple[tuple[str, ...], ...]
"""The sources, stores, fixed sinks, and sinks that choose their topic. Each is sorted."""


@dataclass(frozen=True)
class Printed:
    """One topology: the output of ``describe()``, and the content of Kafka Streams' objects."""

    text: str
    streams: list[Fact]
    global_stores: list[Fact]


@pytest.fixture(scope="module")
def printed() -> dict[str, Printed]:
    """Every topology of ``PrintTopologies``, by name. One JVM prints them all."""
    command = java_command(str(JVM_DIRECTORY / "tests" / "PrintTopologies.java"))
    output = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    found = {}
    for block in output.split("=== ")[1:]:
        name, _, rest = block.partition("\n")
        lines = rest.splitlines()
        text = "\n".join(line for line in lines if not line.startswith("!"))
        found[name] = Printed(text, _facts(lines, "!streams"), _facts(lines, "!global"))
    return found


def _facts(lines: list[str], kind: str) -> list[Fact]:
    """Return the sets of every line ``!kind|id|set|set…``. Names have no comma."""
    facts = [line.split("|")[2:] for line in lines if line.startswith(f"{kind}|")]
    return [tuple(tuple(sorted(filter(None, each.split(",")))) for each in fact) for fact in facts]


NAMES = [
    "stateless",
    "several inputs of one source",
    "counts behind a repartition",
    "enforced count",
    "a global table",
    "windows, sessions, suppression",
    "joins of streams",
    "a foreign-key join",
    "branches, merge, two sub-topologies",
    "a sink that chooses",
    "an optimised table",
    "the processor API",
]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_parsed_is_what_kafka_streams_knows(printed: dict[str, Printed], name: str) -> None:
    topology = parse_describe(printed[name].text)
    found = [(s.sources, s.stores, s.sinks, s.dynamic_sinks) for s in topology.subtopologies]
    assert [tuple(tuple(sorted(each)) for each in fact) for fact in found] == printed[name].streams
    expected = printed[name].global_stores
    assert topology.global_topics == tuple(topic for topics, _ in expected for topic in topics)
    assert topology.global_stores == tuple(store for _, stores in expected for store in stores)


def test_every_topology_is_looked_at(printed: dict[str, Printed]) -> None:
    assert set(printed) == {*NAMES, "a pattern", "named topologies"}


def test_a_pattern_is_refused(printed: dict[str, Printed]) -> None:
    with pytest.raises(InvalidInput, match=r"a source that reads the pattern in-\(a\|b\)\[0-9\]\+"):
        parse_describe(printed["a pattern"].text)


def test_listed_topics_stand_for_a_pattern(printed: dict[str, Printed]) -> None:
    topology = parse_describe(printed["a pattern"].text, {"in-(a|b)[0-9]+": ["in-a1", "in-b1"]})
    assert topology.inputs == ("in-a1", "in-b1")


def test_named_topologies_share_an_input_and_keep_their_stores_apart(printed: dict[str, Printed]) -> None:
    topology = parse_describe(printed["named topologies"].text)
    assert len(topology.subtopologies) == len(printed["named topologies"].streams) == 4
    assert topology.inputs == ("lines",)
    assert topology.stores == (
        "orders-counts",
        "orders-KSTREAM-AGGREGATE-STATE-STORE-0000000010",
        "refunds-counts",
    )
    assert topology.repartitions == {
        "orders-by-word-repartition",
        "orders-KSTREAM-AGGREGATE-STATE-STORE-0000000010-repartition",
    }
