"""Preflight: does the topology know every internal topic of the running generation?

A store that an outdated topology does not name would be left behind: green would begin without its state.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kafka_rescale.core.errors import Finding
from kafka_rescale.core.preflight.situation import Situation
from kafka_rescale.core.topology.topology import CHANGELOG_SUFFIX, is_internal

_LATER_GENERATION = re.compile(r"g\d+-")


def unexplained_topics(situation: Situation) -> Iterator[Finding]:
    """Yield topics with names of internal topics of the running generation that the topology does not explain.

    They may also belong to another application whose id begins with this one's and a dash: names can't tell.
    """
    unknown = sorted(
        t for t in situation.visible if _looks_internal(situation, t) and not _explained(situation, t)
    )
    if unknown:
        yield Finding(
            f"internal topics of {situation.blue!r}",
            f"{', '.join(unknown)}, which the topology does not know",
            "every store and repartition topic of the running program in the topology: others are left behind",
            "Print Topology#describe() of the running program again. If one is another application's, name that "
            f"application's id in `unrelated:`; if an older version of {situation.application.application_id} has "
            f"left it and it is not needed, delete it, or name it there: `unrelated: [{unknown[0]}]`.",
        )


def _looks_internal(situation: Situation, topic: str) -> bool:
    prefix = f"{situation.names.prefix}-"
    name = topic.removeprefix(prefix)
    if not topic.startswith(prefix) or not (name.endswith(CHANGELOG_SUFFIX) or is_internal(name)):
        return False
    is_first = situation.blue == situation.application.application_id
    return not (is_first and _LATER_GENERATION.match(name))


def _explained(situation: Situation, topic: str) -> bool:
    application, topology = situation.application, situation.topology
    denied = map(situation.changelog, topology.without_changelog)
    external = [*map(situation.full_name, topology.inputs), *topology.outputs, *topology.global_topics]
    external += [o.topic for o in application.outputs]
    # ``denied_changelogs`` yields the findings about changelogs that the file says don't exist.
    known = {*situation.names.all_of(topology), *denied, *external}
    return topic in known or any(topic == u or topic.startswith(f"{u}-") for u in application.unrelated)
