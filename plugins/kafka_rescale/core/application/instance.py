"""One generation's instance set, as the user's commands and classes get it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Instance:
    """One generation's instance set.

    :param application_id: its ``application.id``.
    :param generation: its number; the first is 1.
    :param partitions: the parallelism that it is started for.
    :param inputs: the topic to read as each input of the application file, by the name there.
    :param internal_topic_prefix: what the names of its internal topics begin with. A lifecycle always gets it; if
        the file has no ``internal_topic_prefix:``, it is the ``application.id``.
    """

    application_id: str
    generation: int
    partitions: int
    inputs: Mapping[str, str] = field(default_factory=dict)
    internal_topic_prefix: str = ""
