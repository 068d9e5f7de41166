"""Sinks that choose their topic: which outputs may they write?"""

from __future__ import annotations

from kafka_rescale.core.topology.topology import SubTopology, Topology

STATIC = SubTopology(0, ("a",), (), ("x",))
READER = SubTopology(1, ("x",), ("per-x",), ())
CHOOSING = SubTopology(2, ("z",), (), (), dynamic_sinks=("dead-letters",))


def test_they_may_write_every_output_that_no_other_sink_names() -> None:
    topology = Topology((STATIC, READER, CHOOSING)).with_chosen(["x", "dlq"])
    assert [s.sinks for s in topology.subtopologies] == [("x",), (), ("dlq",)]


def test_without_such_a_sink_nothing_changes() -> None:
    topology = Topology((STATIC, READER))
    assert topology.with_chosen(["x", "dlq"]) == topology
