"""The change from the lines that Kafka Streams before 1.1 printed to the lines of later versions.

At that time, ``TopologyDescription`` printed a node with its arrows in one line: ``Processor: P(stores: [S]) --> A
<-- B``. It printed topics without brackets, and nothing where later versions print ``none``. Behind the
sub-topologies, it printed ``GlobalStore: S(topic: T) -> P(store: G)``.
"""

from __future__ import annotations

import re

_NODE = re.compile(r"^(?P<kind>Source|Processor|Sink):\s+(?P<node>.*?\))\s*(?P<arrows>(?:-->|<--).*)$")
_TOPICS = re.compile(r"\(topics:\s*(?P<topics>[\w.-]+(?:,\s*[\w.-]+)*)\)$")
_ARROW = re.compile(r"-->|<--")
_GLOBAL = re.compile(
    r"(?:^|\s)GlobalStore:\s+(?P<source>\S.*?)\s*\(topic:\s*(?P<topic>.+?)\)\s*->\s*"
    r"(?P<processor>.+?)\s*\(store:\s*(?P<store>.+?)\)\s*$"
)


def has_arrows(statement: str) -> bool:
    """Return whether a node has arrows beside it."""
    return _NODE.match(statement) is not None


def of_node(statement: str) -> list[str]:
    """Return the lines of a node and of each of its arrows.

    :param statement: a node, with or without arrows beside it.
    """
    found = _NODE.match(statement)
    if found is None:
        return [statement]
    # A pattern has no brackets in any version. If a pattern could also be the name of a topic, it counts as this
    # name.
    node = _TOPICS.sub(r"(topics: [\g<topics>])", found["node"])
    begins = [m.start() for m in _ARROW.finditer(found["arrows"])]
    arrows = [found["arrows"][a:b].rstrip() for a, b in zip(begins, [*begins[1:], None], strict=True)]
    # Only the end of the line can be cut off.
    named = [f"{arrow} none" if arrow in ("-->", "<--") else arrow for arrow in arrows[:-1]]
    return [f"{found['kind']}: {node}", *named, arrows[-1]]


def of_global_store(line: str) -> list[str] | None:
    """Return the lines of a global store, which had no number, or None if this is another line."""
    found = _GLOBAL.search(line)
    if found is None:
        return None
    source, processor = found["source"], found["processor"]
    return [
        "Sub-topology: ? for global store",
        f"Source: {source} (topics: [{found['topic'].strip('[]')}])",
        f"--> {processor}",
        f"Processor: {processor} (stores: [{found['store']}])",
        "--> none",
        f"<-- {source}",
    ]
