"""The parser reads ``Topology#describe()`` as Kafka Streams prints it and as people paste it."""

from __future__ import annotations

from pathlib import Path

import pytest
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.topology.describe import parse_describe
from kafka_rescale.core.topology.topology import SubTopology, Topology

FLIGHTS = Path(__file__).parents[3] / "applications" / "flights.topology.txt"

WORD_COUNT = """\
Topologies:
   Sub-topology: 0
    Source: KSTREAM-SOURCE-0000000000 (topics: [lines])
      --> KSTREAM-FLATMAPVALUES-0000000001
    Processor: KSTREAM-FLATMAPVALUES-0000000001 (stores: [])
      --> counts-repartition-filter
      <-- KSTREAM-SOURCE-0000000000
    Processor: counts-repartition-filter (stores: [])
      --> counts-repartition-sink
      <-- KSTREAM-FLATMAPVALUES-0000000001
    Sink: counts-repartition-sink (topic: counts-repartition)
      <-- counts-repartition-filter

  Sub-topology: 1
    Source: counts-repartition-source (topics: [counts-repartition])
      --> KSTREAM-AGGREGATE-0000000002
    Processor: KSTREAM-AGGREGATE-0000000002 (stores: [counts])
      --> KSTREAM-SINK-0000000008
      <-- counts-repartition-source
    Sink: KSTREAM-SINK-0000000008 (topic: totals)
      <-- KSTREAM-AGGREGATE-0000000002

"""
WORD_COUNT_PARSED = Topology(
    (
        SubTopology(0, ("lines",), (), ("counts-repartition",)),
        SubTopology(1, ("counts-repartition",), ("counts",), ("totals",)),
    )
)

GLOBAL_TABLE = """\
Topologies:
   Sub-topology: 0 for global store (will not generate tasks)
    Source: KSTREAM-SOURCE-0000000001 (topics: [rates])
      --> KTABLE-SOURCE-0000000002
    Processor: KTABLE-SOURCE-0000000002 (stores: [rates-store])
      --> none
      <-- KSTREAM-SOURCE-0000000001
  Sub-topology: 1
    Source: KSTREAM-SOURCE-0000000003 (topics: [b, a])
      --> KSTREAM-LEFTJOIN-0000000004
    Processor: KSTREAM-LEFTJOIN-0000000004 (stores: [])
      --> KSTREAM-SINK-0000000005
      <-- KSTREAM-SOURCE-0000000003
    Sink: KSTREAM-SINK-0000000005 (topic: out)
      <-- KSTREAM-LEFTJOIN-0000000004

"""

NAMED = """\
Topology: orders:
   Sub-topology: 0
    Source: s (topics: [orders])
      --> k
    Sink: k (topic: by-id-repartition)
      <-- s

  Sub-topology: 1
    Source: r (topics: [by-id-repartition])
      --> p
    Processor: p (stores: [totals])
      --> none
      <-- r

Topology: refunds:
   Sub-topology: 0
    Source: s (topics: [refunds])
      --> p
    Processor: p (stores: [totals])
      --> none
      <-- s
"""


def test_the_demo_has_three_subtopologies_with_their_topics_and_stores() -> None:
    topology = parse_describe(FLIGHTS.read_text())
    assert [s.id for s in topology.subtopologies] == [0, 1, 2]
    assert topology.inputs == ("flights", "planes")
    assert topology.repartitions == {"by-aircraft-repartition", "by-airport-repartition"}
    assert topology.outputs == ("aircraft-sessions-output", "aircraft-totals-output", "airport-hourly-output")
    assert set(topology.stores) == {"planes", "aircraft-totals", "aircraft-sessions", "airport-hourly"}
    assert topology.subtopology_of("planes").id == 1
    assert topology.subtopology_of("airport-hourly").sources == ("by-airport-repartition",)


def test_a_text_of_the_printer_is_parsed() -> None:
    assert parse_describe(WORD_COUNT) == WORD_COUNT_PARSED


def test_log_prefixes_and_foreign_lines_are_ignored() -> None:
    logged = "\n".join(
        f"2026-01-02 03:04:05.678 INFO  [main] o.e.App : {line}" for line in WORD_COUNT.splitlines() if line
    )
    text = f"Starting up\n{logged}\n2026-01-02 INFO stream-client State transition from CREATED to REBALANCING\n"
    assert parse_describe(text) == WORD_COUNT_PARSED


def test_lines_without_indentation_are_parsed() -> None:
    assert parse_describe("\n".join(line.strip() for line in WORD_COUNT.splitlines())) == WORD_COUNT_PARSED


def test_wrapped_lines_are_joined() -> None:
    wrapped = GLOBAL_TABLE.replace("(topics: [b, a])", "\n  (topics: [b,\n      a])").replace(
        "      --> KSTREAM-SINK-0000000005", "      -->\n   KSTREAM-SINK-0000000005"
    )
    assert parse_describe(wrapped) == parse_describe(GLOBAL_TABLE)


def test_windows_line_ends_are_parsed() -> None:
    assert parse_describe(WORD_COUNT.replace("\n", "\r\n")) == WORD_COUNT_PARSED


def test_global_stores_are_named_but_have_no_tasks() -> None:
    topology = parse_describe(GLOBAL_TABLE)
    assert topology.global_stores == ("rates-store",)
    assert topology.global_topics == ("rates",)
    assert topology.subtopologies == (SubTopology(1, ("b", "a"), (), ("out",)),)
    assert topology.inputs == ("b", "a")


def test_a_sink_that_chooses_its_topic_is_known_by_its_name() -> None:
    text = WORD_COUNT.replace("topic: totals", "extractor class: app.Router$$Lambda/0x1@5a39699c")
    topology = parse_describe(text)
    assert topology.subtopologies[1].dynamic_sinks == ("KSTREAM-SINK-0000000008",)
    assert topology.outputs == ()


def test_named_topologies_prefix_stores_and_repartition_topics_but_no_external_topic() -> None:
    assert parse_describe(NAMED).subtopologies == (
        SubTopology(0, ("orders",), (), ("orders-by-id-repartition",)),
        SubTopology(1, ("orders-by-id-repartition",), ("orders-totals",), ()),
        SubTopology(2, ("refunds",), ("refunds-totals",), ()),
    )


def test_a_custom_processor_with_spaces_in_its_name_is_parsed() -> None:
    text = WORD_COUNT.replace("KSTREAM-AGGREGATE-0000000002", "My own Processor")
    assert parse_describe(text) == WORD_COUNT_PARSED


ONE_LINE = """\
Sub-topologies:
  Sub-topology: 1
    Source: KSTREAM-SOURCE-0000000006(topics: Counts-repartition) --> KSTREAM-AGGREGATE-0000000003
    Processor: KSTREAM-AGGREGATE-0000000003(stores: [Counts]) -->  <-- KSTREAM-SOURCE-0000000006
  Sub-topology: 0
    Source: KSTREAM-SOURCE-0000000000(topics: lines.raw, more-lines) --> KSTREAM-KEY-SELECT-0000000002, filter
    Processor: KSTREAM-KEY-SELECT-0000000002(stores: []) --> filter <-- KSTREAM-SOURCE-0000000000
    Processor: filter(stores: []) --> sink <-- KSTREAM-KEY-SELECT-0000000002, KSTREAM-SOURCE-0000000000
    Sink: sink(topic: Counts-repartition) <-- filter
Global Stores:
  GlobalStore: KSTREAM-SOURCE-0000000010(topic: rates) -> KTABLE-SOURCE-0000000011(store: rates-store)

"""
"""The text of Kafka Streams before 1.1, with its sub-topologies in the order of a hash table."""

ONE_LINE_PARSED = (
    SubTopology(0, ("lines.raw", "more-lines"), (), ("Counts-repartition",)),
    SubTopology(1, ("Counts-repartition",), ("Counts",), ()),
)


def test_arrows_beside_their_nodes_are_parsed() -> None:
    topology = parse_describe(ONE_LINE)
    assert topology.subtopologies == ONE_LINE_PARSED
    assert (topology.global_stores, topology.global_topics) == (("rates-store",), ("rates",))
    alone = ONE_LINE.replace("Sub-topology: 1", "Sub-topology: 2")
    assert [s.id for s in parse_describe(alone).subtopologies] == [0, 2]
    without, _, _ = ONE_LINE.partition("Global Stores:")
    assert parse_describe(f"{without}Global Stores:\n  none\n").subtopologies == ONE_LINE_PARSED
    bracketed = ONE_LINE.replace("topics: lines.raw, more-lines", "topics: [lines.raw, more-lines]")
    assert parse_describe(bracketed) == topology


@pytest.mark.parametrize("change", ["in the topics", "in the arrows", "prefixed"])
def test_wrapped_and_prefixed_lines_with_arrows_are_parsed(change: str) -> None:
    text = {
        "in the topics": ONE_LINE.replace("lines.raw, more", "lines.raw,\n    more"),
        "in the arrows": ONE_LINE.replace(" filter\n    Proc", "\n       filter\n    Proc", 1),
        "prefixed": "\n".join(f"12:00:01 INFO App - {line}" for line in ONE_LINE.splitlines()),
    }[change]
    assert text != ONE_LINE
    assert parse_describe(text) == parse_describe(ONE_LINE)


def test_the_same_topology_is_the_same_on_one_line() -> None:
    """A person has joined the lines. The brackets are those of later versions."""
    joined = WORD_COUNT.replace("\n      -->", " -->").replace("\n      <--", " <--")
    assert parse_describe(joined) == WORD_COUNT_PARSED


@pytest.mark.parametrize("kind", ["Source", "Processor", "Sink", "Sub-topology"])
def test_spaces_after_the_colon_are_of_no_meaning(kind: str) -> None:
    assert parse_describe(WORD_COUNT.replace(f"{kind}: ", f"{kind}:  ")) == WORD_COUNT_PARSED


BAD = {
    "pattern source beside its arrow": (
        ONE_LINE.replace("lines.raw, more-lines", "lines-.*"),
        "topology, line 6: found a source that reads the pattern lines-.*; expected sources that read named "
        "topics, or a pattern whose topics of today `source_patterns:` lists. What matches can change during an "
        "expansion: name the topics in the program, or agree to those of today: `source_patterns: {'lines-.*': "
        "[TOPIC, …]}`. Preflight compares them with the cluster.",
    ),
    "a line that is cut off": (
        ONE_LINE.replace(
            " --> sink <-- KSTREAM-KEY-SELECT-0000000002, KSTREAM-SOURCE-0000000000", " --> sink <--"
        ),
        "topology, line 8: found `Processor: filter(stores: [])` without its whole line `<-- …`; expected the "
        "arrows below every node, with `none` where there is no other: the text has been cut. "
        "Paste the text that Topology#describe() prints, whole and unchanged.",
    ),
    "a sub-topology that is left out": (
        ONE_LINE.replace("Sub-topology: 1", "Sub-topology: 3"),
        "topology, line 2: found sub-topology 3; expected sub-topology 2. "
        "Paste the text that Topology#describe() prints, whole and unchanged.",
    ),
    "pattern source": (
        WORD_COUNT.replace("[lines]", "lines-.*"),
        "topology, line 3: found a source that reads the pattern lines-.*; expected sources that read named "
        "topics, or a pattern whose topics of today `source_patterns:` lists. What matches can change during an "
        "expansion: name the topics in the program, or agree to those of today: `source_patterns: {'lines-.*': "
        "[TOPIC, …]}`. Preflight compares them with the cluster.",
    ),
    "pattern source that begins with a bracket": (
        WORD_COUNT.replace("[lines]", "[a-z]+-lines"),
        "topology, line 3: found a source that reads the pattern [a-z]+-lines; expected sources that read named "
        "topics, or a pattern whose topics of today `source_patterns:` lists. What matches can change during an "
        "expansion: name the topics in the program, or agree to those of today: `source_patterns: "
        "{'[a-z]+-lines': [TOPIC, …]}`. Preflight compares them with the cluster.",
    ),
    "first sub-topology cut off": (
        WORD_COUNT[WORD_COUNT.index("  Sub-topology: 1") :],
        "topology, line 1: found sub-topology 1; expected sub-topology 0. "
        "Paste the text that Topology#describe() prints, whole and unchanged.",
    ),
    "cut in the middle": (
        WORD_COUNT[: WORD_COUNT.index("    Sink: KSTREAM-SINK-0000000008")],
        "topology, line 18: found an arrow to KSTREAM-SINK-0000000008, which sub-topology 1 does not have; "
        "expected every node of the arrows. Paste the text that Topology#describe() prints, whole and unchanged.",
    ),
    "pasted twice": (
        WORD_COUNT + WORD_COUNT,
        "topology, line 24: found sub-topology 0; expected sub-topology 2. "
        "Paste the text that Topology#describe() prints, whole and unchanged.",
    ),
    "head cut off": (
        WORD_COUNT[WORD_COUNT.index("    Source: KSTREAM") :],
        "topology, line 1: found a node before any sub-topology; expected a line `Sub-topology: 0` above it. "
        "Paste the text that Topology#describe() prints, whole and unchanged.",
    ),
    "name wrapped in the middle": (
        WORD_COUNT.replace("[lines]", "[li\n  nes]"),
        "topology, line 3: found the name `li nes`; expected a name without spaces: it was wrapped in the middle. "
        "Paste the text that Topology#describe() prints, whole and unchanged.",
    ),
    "a store's name that no topic can have": (
        WORD_COUNT.replace("(stores: [counts])", "(stores: [co/unts])"),
        "topology, line 17: found the name `co/unts`; expected letters, digits, `.`, `_` and `-`, as topics have "
        "them. Paste the text that Topology#describe() prints, whole and unchanged.",
    ),
    "broken node": (
        WORD_COUNT.replace("(stores: [counts])", "(shops: [counts])"),
        "topology, line 17: found `Processor: KSTREAM-AGGREGATE-0000000002 (shops: [counts])`; expected "
        "`Source: … (topics: [...])`, `Processor: … (stores: [...])` or a sink. "
        "Paste the text that Topology#describe() prints, whole and unchanged.",
    ),
    "no source": (
        "Sub-topology: 0\n  Processor: p (stores: [s])\n    --> none\n",
        "topology, line 1: found sub-topology 0 without a source; expected at least one source. "
        "Paste the text that Topology#describe() prints, whole and unchanged.",
    ),
    "something else": (
        "hello",
        "topology: found no line `Sub-topology: 0`; expected the text that Topology#describe() prints. "
        "Call `System.out.println(topology.describe())` in the program and paste what it prints.",
    ),
}


@pytest.mark.parametrize("last", ["", "      ARROW\n", "      ARROW KSTREAM-AGGREGATE-0000000002,\n"])
@pytest.mark.parametrize(("begins", "node", "arrow"), [(16, 15, "-->"), (18, 17, "-->"), (21, 20, "<--")])
def test_a_text_that_was_cut_below_a_node_is_refused(begins: int, node: int, arrow: str, last: str) -> None:
    lines = WORD_COUNT.splitlines(keepends=True)
    text = "".join(lines[: begins - 1]) + last.replace("ARROW", arrow)
    if begins == 16:
        text = text.replace("KSTREAM-AGGREGATE-0000000002", "none")
    with pytest.raises(InvalidInput) as error:
        parse_describe(text)
    assert str(error.value) == (
        f"topology, line {node}: found `{lines[node - 1].strip()[:60]}` without its whole line `{arrow} …`; "
        "expected the arrows below every node, with `none` where there is no other: the text has been cut. "
        "Paste the text that Topology#describe() prints, whole and unchanged."
    )


@pytest.mark.parametrize("case", BAD)
def test_a_text_that_can_not_be_used_is_refused_with_its_line(case: str) -> None:
    text, message = BAD[case]
    with pytest.raises(InvalidInput) as error:
        parse_describe(text)
    assert str(error.value) == message


def test_names_of_nodes_may_have_commas() -> None:
    text = """Topologies:
   Sub-topology: 0
    Source: Source, orders (topics: [orders])
      --> Enrich, then count, Log
    Processor: Enrich, then count (stores: [counts])
      --> none
      <-- Source, orders
    Processor: Log (stores: [])
      --> none
      <-- Source, orders
"""
    assert parse_describe(text).stores == ("counts",)
    with pytest.raises(InvalidInput, match="an arrow to Lag, which"):
        parse_describe(text.replace("count, Log", "count, Lag"))


def test_global_stores_may_have_any_name_as_no_topic_is_named_after_them() -> None:
    text = """Topologies:
   Sub-topology: 0 for global store (will not generate tasks)
    Source: ref-source (topics: [reference])
      --> ref
    Processor: ref (stores: [ref/store: all, other])
      --> none
      <-- ref-source
  Sub-topology: 1
    Source: lines (topics: [lines])
      --> count
    Processor: count (stores: [counts])
      --> none
      <-- lines
"""
    assert parse_describe(text).global_stores == ("ref/store: all", "other")
