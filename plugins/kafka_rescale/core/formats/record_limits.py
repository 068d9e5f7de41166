"""The limits that the configs of a topic set for records which are written to the topic again.

The brokers have accepted these records before. But then the records may have been compressed or new, or the topic
may have had no such limit.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafka_rescale.core.cluster import TopicDescription
from kafka_rescale.core.errors import Finding, UnsafeState

LARGEST, SEGMENT = "max.message.bytes", "segment.bytes"
BEFORE, AFTER, EITHER = (f"message.timestamp.{which}.max.ms" for which in ("before", "after", "difference"))
"""``EITHER`` is the config of brokers before Kafka 4.0. It limits both sides."""

AFTER_VERIFY = "until verify has passed; then trigger again."

UNLIMITED = 2**63 - 1
DEFAULT_BYTES = 1_048_588
LATEST_MS = UNLIMITED // 1000
"""The latest timestamp that Spark can read, because Spark counts in µs. If a topic has a later timestamp, such as
one in ns, every scan of the topic fails."""


@dataclass(frozen=True)
class RecordLimits:
    """The limits of one topic.

    :param batch_bytes: the size of the largest batch that brokers accept.
    :param oldest_ms: the oldest timestamp that brokers accept.
    :param newest_ms: the newest timestamp that brokers accept.
    :param size_config: the config that limits the batch.
    :param has_to_be_keyed: whether brokers refuse records without a key.
    """

    topic: str
    batch_bytes: int
    oldest_ms: int
    newest_ms: int
    size_config: str = LARGEST
    has_to_be_keyed: bool = False

    @classmethod
    def of(cls, topic: TopicDescription, now_ms: int, within_ms: int) -> RecordLimits:
        """Return the limits of a topic for records that are written soon.

        :param now_ms: the wall clock in ms since the epoch.
        :param within_ms: the longest time until the records are written.
        """
        configs = topic.configs
        # With any other kind of timestamp, brokers set the timestamp themselves and don't check it.
        is_checked = configs.get("message.timestamp.type", "CreateTime") == "CreateTime"
        before, after = (
            min(int(configs.get(name, UNLIMITED)) for name in (side, EITHER)) if is_checked else UNLIMITED
            for side in (BEFORE, AFTER)
        )
        sizes = (
            (int(configs.get(LARGEST, DEFAULT_BYTES)), LARGEST),
            (int(configs.get(SEGMENT, UNLIMITED)), SEGMENT),
        )
        batch_bytes, size_config = min(sizes)
        return cls(
            topic=topic.name,
            batch_bytes=batch_bytes,
            oldest_ms=now_ms + within_ms - before,
            newest_ms=now_ms + after,
            size_config=size_config,
            has_to_be_keyed="compact" in topic.cleanup_policy,
        )

    def check(
        self, where: str, timestamp_ms: int, batch_bytes: int, until: str = AFTER_VERIFY, *, has_key: bool = True
    ) -> None:
        """Refuse a record that the brokers would refuse.

        :param where: the place of the record.
        :param batch_bytes: the size of a batch with this record alone, without compression.
        :param until: the end of the sentence "Set the limit …": how long the limit has to stay raised, and what to
            do then.
        :raises UnsafeState: the size or the timestamp of the record is beyond a limit, or the record needs a key.
        """
        if finding := self.finding(where, timestamp_ms, batch_bytes, until, has_key=has_key):
            raise UnsafeState.of(finding)

    def finding(
        self, where: str, timestamp_ms: int, batch_bytes: int, until: str = AFTER_VERIFY, *, has_key: bool = True
    ) -> Finding | None:
        """Return the reason why brokers would refuse a record. The parameters are those of ``check``."""
        if batch_bytes > self.batch_bytes:
            return Finding(
                where,
                f"a record of {batch_bytes} bytes without compression",
                f"at most {self.size_config} of {self.topic}, {self.batch_bytes}",
                f"Set {self.size_config}={batch_bytes} or more on {self.topic} {until}",
            )
        if not self.oldest_ms <= timestamp_ms <= self.newest_ms:
            too_old = timestamp_ms < self.oldest_ms
            side = BEFORE if too_old else AFTER
            bound = f"{self.oldest_ms} or later" if too_old else f"{self.newest_ms} or earlier"
            return Finding(
                where,
                f"timestamp {timestamp_ms}, which brokers refuse when the record is written again",
                f"one within {side} of {self.topic}, {bound}",
                f"Set {side}, and {EITHER} where the brokers know it, to {UNLIMITED} on {self.topic} {until}",
            )
        if self.has_to_be_keyed and not has_key:
            return Finding(
                where,
                "a record without a key",
                f"a key: cleanup.policy of {self.topic} is compact",
                f"Give the records keys, or set cleanup.policy=delete on {self.topic}; then run again.",
            )
        return None


def retention_ms(topic: TopicDescription) -> int | None:
    """Return how long a topic keeps records, counted from their timestamps. ``None``: it doesn't delete by age."""
    kept = int(topic.configs.get("retention.ms", "-1"))
    return kept if "delete" in topic.cleanup_policy and kept >= 0 else None


def compaction_lag_ms(topic: TopicDescription) -> int:
    """Return how long compaction keeps every record of a topic, counted from the records' own timestamps."""
    return int(topic.configs.get("min.compaction.lag.ms", "0"))
