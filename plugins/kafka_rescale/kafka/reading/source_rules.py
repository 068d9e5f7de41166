"""What a topic's configs mean for a process that reads it from time to time."""

from __future__ import annotations

from dataclasses import dataclass

from kafka_rescale.core.cluster import TopicDescription
from kafka_rescale.core.expansion.deletions import kept_deletions_ms


@dataclass(frozen=True)
class SourceRules:
    """What the configs of a topic mean for its copy.

    :param tombstone_ms: how long a reader may take from one end to the next without missing a tombstone; None if
        the topic isn't compacted.
    :param expires: whether retention may delete records at the log start.
    """

    tombstone_ms: int | None
    expires: bool

    @classmethod
    def of(cls, topic: TopicDescription) -> SourceRules:
        """Return the rules of a topic."""
        return cls(kept_deletions_ms(topic), expires="delete" in topic.cleanup_policy)
