"""Topics that a source's pattern matches: those that an application file lists, and those that there are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

NEVER_MATCHED = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
"""Internal to brokers: consumers leave them out of patterns (``exclude.internal.topics``)."""


def matching(pattern: str, topics: Iterable[str]) -> set[str]:
    """Return the topics that a consumer with this pattern reads: it has to match their whole names.

    :param pattern: a regular expression.
    """
    return {topic for topic in topics if re.fullmatch(pattern, topic)} - NEVER_MATCHED


def unlisted(patterns: Mapping[str, Iterable[str]], topics: Iterable[str]) -> dict[str, list[str]]:
    """Return the topics per pattern that match it and that its list lacks; only patterns with such topics.

    :param patterns: the topics that are listed per pattern.
    :param topics: of the cluster.
    """
    topics = set(topics)
    found = {pattern: sorted(matching(pattern, topics) - set(listed)) for pattern, listed in patterns.items()}
    return {pattern: others for pattern, others in found.items() if others}
