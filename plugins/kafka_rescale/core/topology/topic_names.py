"""The names that Kafka allows for topics: ``org.apache.kafka.common.internals.Topic``."""

from __future__ import annotations

import re
from collections.abc import Iterable

LONGEST_NAME = 249
"""The limit on a topic's name. Brokers name a directory by the topic, a dash and the partition."""
TOPIC_NAME = rf"^[a-zA-Z0-9._-]{{1,{LONGEST_NAME}}}$"
SAID = f"up to {LONGEST_NAME} letters, digits, dots, underscores and hyphens, other than `.` and `..`"

_DIRECTORIES = (".", "..")


def is_topic_name(name: str) -> bool:
    """Return whether a topic can have the name."""
    return re.fullmatch(TOPIC_NAME, name) is not None and name not in _DIRECTORIES


def too_long(names: Iterable[str]) -> list[str]:
    """Return the names with more characters than Kafka allows."""
    return [name for name in names if len(name) > LONGEST_NAME]
