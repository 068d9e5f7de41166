"""The topics that the pattern of a source matches, on the cluster and by the application file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

NEVER_MATCHED = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
"""The internal topics of brokers. Consumers leave them out of patterns (``exclude.internal.topics``)."""


def matching(pattern: str, topics: Iterable[str]) -> set[str]:
    """Return the topics that a consumer with this pattern reads. The pattern must match the whole name.

    :param pattern: a regular expression.
    """
    return {topic for topic in topics if re.fullmatch(pattern, topic)} - NEVER_MATCHED


def unlisted(patterns: Mapping[str, Iterable[str]], topics: Iterable[str]) -> dict[str, list[str]]:
    """Return for each pattern the topics that match it and that its list lacks. Leave out patterns without any.

    :param patterns: by pattern, the topics that the application file lists.
    :param topics: the topics of the cluster.
    """
    topics = set(topics)
    found = {pattern: sorted(matching(pattern, topics) - set(listed)) for pattern, listed in patterns.items()}
    return {pattern: others for pattern, others in found.items() if others}
