"""From the text that ``Topology#describe()`` prints to a ``Topology``.

The printers are ``TopologyDescription``, ``Subtopology``, ``GlobalStore``, ``Source``, ``Processor`` and ``Sink``
in Kafka Streams' ``InternalTopologyBuilder``. ``describe_one_line`` takes the texts of versions before 1.1. Users
paste the text from logs and terminals. So the parser allows prefixes, foreign lines and wrapped lines. It refuses
a text that has been cut: arrows to unknown nodes, nodes without their arrows, and gaps between ids show a cut.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.topology.describe_one_line import has_arrows, of_global_store, of_node
from kafka_rescale.core.topology.topology import SubTopology, Topology, is_internal

_HEAD = re.compile(r"(?:^|\s)(?:Topologies:|Topology: (?P<name>[\w.-]+):)\s*$")
_SUBTOPOLOGY = re.compile(r"(?:^|\s)Sub-topology:\s+(?P<id>\d+|\?)(?P<is_global> for global store)?")
_NODE_BEGINS = re.compile(r"(?:^|\s)(?P<statement>(?:Source|Processor|Sink):\s+\S.*)$")
_EDGE_BEGINS = re.compile(r"(?:^|\s)(?P<statement>(?:-->|<--).*)$")
_NODE = re.compile(
    r"^(?P<kind>Source|Processor|Sink):\s+(?P<name>.+?)\s*"
    r"\((?P<label>topics|stores|topic|extractor class):\s*(?P<value>.*)\)\s*$"
)
_NAME = re.compile(r"^[\w.-]+$")
_ARROWS = {"Source": ("-->",), "Processor": ("-->", "<--"), "Sink": ("<--",)}
"""The lines that every version prints below a node. If a node has no such arrow, its line says ``none``."""
_UNNUMBERED = -1
_NO_PATTERNS: Mapping[str, Sequence[str]] = {}
_PASTE_AGAIN = "Paste the text that Topology#describe() prints, whole and unchanged."


@dataclass(frozen=True)
class _Statement:
    line: int
    text: str

    def wrong(self, found: str, expected: str, remedy: str = _PASTE_AGAIN) -> InvalidInput:
        return InvalidInput(f"topology, line {self.line}", found=found, expected=expected, remedy=remedy)


@dataclass
class _Node:
    """A node, and the kinds of arrows that the parser has not yet seen below the node."""

    statement: _Statement
    missing: list[str]


@dataclass
class _Section:
    """One ``Sub-topology:`` paragraph. Dicts serve as sets that keep the order."""

    head: _Statement
    id: int
    topology_name: str
    is_global: bool
    sources: dict[str, None] = field(default_factory=dict)
    stores: dict[str, None] = field(default_factory=dict)
    sinks: dict[str, None] = field(default_factory=dict)
    dynamic_sinks: dict[str, None] = field(default_factory=dict)
    nodes: dict[str, _Node] = field(default_factory=dict)
    arrows: list[tuple[_Statement, list[str]]] = field(default_factory=list)


def parse_describe(text: str, patterns: Mapping[str, Sequence[str]] = _NO_PATTERNS) -> Topology:
    """Return the topology that ``Topology#describe()`` has printed, of any Kafka Streams version that has it.

    The sub-topologies of several named topologies get new numbers that count through. The name of a topology
    becomes the prefix of its stores and repartition topics, as their topics have it on the cluster.

    :param text: the output, possibly with log prefixes, foreign lines and wrapped lines.
    :param patterns: by pattern of a source, the topics that it stands for. Any other pattern is refused.
    :raises InvalidInput: a line is wrong. The error has the number of this line.
    """
    sections = _sections(text, patterns)
    if not sections:
        raise InvalidInput(
            "topology",
            found="no line `Sub-topology: 0`",
            expected="the text that Topology#describe() prints",
            remedy="Call `System.out.println(topology.describe())` in the program and paste what it prints.",
        )
    for section in sections:
        _check_complete(section)
    sections = _in_order(sections)
    _check_ids(sections)
    streams = [s for s in sections if not s.is_global]
    return Topology(
        subtopologies=tuple(_to_subtopology(number, s) for number, s in _numbered(streams)),
        global_stores=tuple(store for s in sections if s.is_global for store in s.stores),
        global_topics=tuple(dict.fromkeys(topic for s in sections if s.is_global for topic in s.sources)),
    )


def _sections(text: str, patterns: Mapping[str, Sequence[str]]) -> list[_Section]:
    sections: list[_Section] = []
    topology_name = ""
    for statement in _statements(text):
        if head := _HEAD.search(statement.text):
            topology_name = head["name"] or ""
        elif begin := _SUBTOPOLOGY.search(statement.text):
            is_global = begin["is_global"] is not None
            number = _UNNUMBERED if begin["id"] == "?" else int(begin["id"])
            sections.append(_Section(statement, number, topology_name, is_global))
        elif sections:
            _add(sections[-1], statement, patterns)
        elif _NODE.match(statement.text):
            raise statement.wrong("a node before any sub-topology", "a line `Sub-topology: 0` above it")
    return sections


def _statements(text: str) -> Iterator[_Statement]:
    """Yield each node and each line of arrows as its own statement."""
    for statement in _joined(text):
        for part in of_global_store(statement.text) or of_node(statement.text):
            yield _Statement(statement.line, part)


def _joined(text: str) -> Iterator[_Statement]:
    """Join wrapped lines and drop foreign lines. A statement has the number of its first line."""
    current: _Statement | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        begins = _NODE_BEGINS.search(line)
        is_wrapped = (
            current is not None and _is_open(current.text) and not line.lstrip().startswith(("-->", "<--"))
        )
        if not begins and not is_wrapped:
            begins = _EDGE_BEGINS.search(line)
        if begins or _SUBTOPOLOGY.search(line) or _HEAD.search(line) or of_global_store(line):
            if current:
                yield current
            current = _Statement(number, (begins["statement"] if begins else line).rstrip())
        elif current and _is_open(current.text):
            current = _Statement(current.line, f"{current.text} {line.strip()}")
    if current:
        yield current


def _is_open(statement: str) -> bool:
    if statement.startswith(("-->", "<--")) or has_arrows(statement):
        return statement.endswith((",", "-->", "<--"))
    is_node = statement.startswith(("Source:", "Processor:", "Sink:"))
    return is_node and ("(" not in statement or statement.count("(") > statement.count(")"))


def _add(section: _Section, statement: _Statement, patterns: Mapping[str, Sequence[str]]) -> None:
    if statement.text.startswith(("-->", "<--")):
        _add_arrow(section, statement)
        return
    node = _NODE.match(statement.text)
    if node is None:
        raise statement.wrong(
            f"`{statement.text[:60]}`", "`Source: … (topics: [...])`, `Processor: … (stores: [...])` or a sink"
        )
    section.nodes[node["name"]] = _Node(statement, list(_ARROWS[node["kind"]]))
    if node["label"] == "topics":
        section.sources |= dict.fromkeys(_topics(statement, node["value"], patterns))
    elif node["label"] == "stores":
        # Global stores have no changelog, so no topic was ever named after them.
        names = _parts if section.is_global else partial(_names, statement)
        section.stores |= dict.fromkeys(names(node["value"].strip("[]")))
    elif node["label"] == "topic":
        section.sinks |= dict.fromkeys(_names(statement, node["value"]))
    else:
        section.dynamic_sinks[node["name"]] = None


def _add_arrow(section: _Section, statement: _Statement) -> None:
    arrow, names = statement.text[:3], [n.strip() for n in statement.text[3:].split(",")]
    section.arrows.append((statement, [n for n in names if n and n != "none"]))
    node = next(reversed(section.nodes.values()), None)
    if node and all(names) and arrow in node.missing:
        node.missing.remove(arrow)


def _topics(statement: _Statement, value: str, patterns: Mapping[str, Sequence[str]]) -> list[str]:
    if value in patterns:
        return list(patterns[value])
    # A pattern may begin with a bracket, too.
    if not (value.startswith("[") and value.endswith("]")):
        raise statement.wrong(
            f"a source that reads the pattern {value}",
            "sources that read named topics, or a pattern whose topics of today `source_patterns:` lists",
            "What matches can change during an expansion: name the topics in the program, or agree to those of "
            f"today: `source_patterns: {{'{value}': [TOPIC, …]}}`. Preflight compares them with the cluster.",
        )
    return _names(statement, value.strip("[]"))


def _names(statement: _Statement, value: str) -> list[str]:
    names = _parts(value)
    for name in names:
        if not _NAME.match(name):
            wrapped = "a name without spaces: it was wrapped in the middle"
            letters = "letters, digits, `.`, `_` and `-`, as topics have them"
            raise statement.wrong(f"the name `{name}`", wrapped if " " in name else letters)
    return names


def _parts(value: str) -> list[str]:
    return [part.strip() for part in value.split(",") if part.strip()]


def _check_complete(section: _Section) -> None:
    for statement, names in section.arrows:
        if (name := _unknown(names, section.nodes)) is not None:
            raise statement.wrong(
                f"an arrow to {name}, which sub-topology {section.id} does not have", "every node of the arrows"
            )
    if not section.sources:
        raise section.head.wrong(f"sub-topology {section.id} without a source", "at least one source")
    for node in section.nodes.values():
        if node.missing:
            raise node.statement.wrong(
                f"`{node.statement.text[:60]}` without its whole line `{node.missing[0]} …`",
                "the arrows below every node, with `none` where there is no other: the text has been cut",
            )


def _unknown(parts: list[str], nodes: Mapping[str, _Node]) -> str | None:
    """Return the first name of an arrow that is no node. Names of nodes may have commas in them."""
    if not parts:
        return None
    ends = (end for end in range(len(parts), 0, -1) if ", ".join(parts[:end]) in nodes)
    rests = [_unknown(parts[end:], nodes) for end in ends]
    return parts[0] if not rests else None if None in rests else rests[-1]


def _in_order(sections: list[_Section]) -> list[_Section]:
    """Return the sections in the order of their ids if all ids differ. Else keep the order of the text.

    Sections without a number get the ids that are left: versions that printed no id for a global store printed the
    sub-topologies in any order.
    """
    left = sorted(set(range(len(sections))) - {s.id for s in sections})
    for section, number in zip((s for s in sections if s.id == _UNNUMBERED), left, strict=False):
        section.id = number
    differ = len({s.id for s in sections}) == len(sections)
    return sorted(sections, key=lambda s: s.id) if differ else sections


def _check_ids(sections: list[_Section]) -> None:
    """Refuse gaps between ids: they show that a paragraph is missing.

    In each topology, the ids of sub-topologies and global stores count from 0.
    """
    expected: dict[str, int] = {}
    for section in sections:
        number = expected.get(section.topology_name, 0)
        if section.id != number:
            raise section.head.wrong(f"sub-topology {section.id}", f"sub-topology {number}")
        expected[section.topology_name] = number + 1


def _numbered(sections: list[_Section]) -> Iterator[tuple[int, _Section]]:
    """Keep the ids of Kafka Streams, unless several named topologies use the same id."""
    is_unique = len({s.id for s in sections}) == len(sections)
    for number, section in enumerate(sections):
        yield (section.id if is_unique else number), section


def _to_subtopology(number: int, section: _Section) -> SubTopology:
    prefix = f"{section.topology_name}-" if section.topology_name else ""

    def named(topic: str) -> str:
        return f"{prefix}{topic}" if is_internal(topic) else topic

    return SubTopology(
        id=number,
        sources=tuple(named(t) for t in section.sources),
        stores=tuple(f"{prefix}{s}" for s in section.stores),
        sinks=tuple(named(t) for t in section.sinks),
        dynamic_sinks=tuple(section.dynamic_sinks),
    )
