"""How a copy is tuned, and what its source topics allow."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from kafka_rescale.core.errors import Outage, UnsafeState
from kafka_rescale.core.expansion.deletions import more_time
from kafka_rescale.core.formats.record_limits import RecordLimits
from kafka_rescale.core.plan.plan import Move, MoveKind
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.reading.source_rules import SourceRules
from kafka_rescale.kafka.writing.settings import BATCH_BYTES, MIB


@dataclass(frozen=True)
class CopySettings:
    """Tuning of one worker.

    :param poll_records: most records that one call takes from the consumer; with 20,000 they no longer fit the
        processor's cache, and the copy took a quarter more processor time than with 2,000 (measured).
    :param commit_records: a transaction of one unit is committed when it has this many records.
    :param commit_bytes: it is also committed when its keys and values have this many bytes.
    :param commit_seconds: it is also committed when it is this old.
    :param fetch_kib: how much the client reads ahead, over all partitions.
    :param fetch_wait_ms: how long a broker may hold an empty answer.
    :param step_seconds: how long a step waits for ``poll_records`` records. The last step before given ends waits
        as long.
    :param look_seconds: how often the worker asks for the ends, to know how old the copy is.
    :param refresh_seconds: how old the recorded age of an idle partition may become.
    :param stall_seconds: if a partition sends neither a record nor its end for so long, that is an outage.
    :param still_seconds: how long a commit may take, or existing records may stay uncopied, before the worker
        replaces its clients.
    """

    poll_records: int = 2_000
    commit_records: int = 200_000
    commit_bytes: int = 128 * MIB
    commit_seconds: float = 5.0
    fetch_kib: int = 32 * 1024
    fetch_wait_ms: int = 100
    step_seconds: float = 0.1
    look_seconds: float = 5.0
    refresh_seconds: float = 30.0
    stall_seconds: float = 120.0
    still_seconds: float = 30.0

    def consumer(self) -> dict[str, int]:
        """Return the consumer's part, as librdkafka settings."""
        return {
            "fetch.wait.max.ms": self.fetch_wait_ms,
            "queued.max.messages.kbytes": self.fetch_kib,
            "queued.min.messages": 100_000,
            "max.partition.fetch.bytes": 4 * MIB,
        }


BULK = CopySettings()
LIVE = CopySettings(
    commit_records=10_000,
    commit_seconds=0.0,
    fetch_kib=4 * 1024,
    fetch_wait_ms=20,
    step_seconds=0.02,
    still_seconds=12.0,
)
"""Small steps, committed at once, so that a record that blue wrote is soon in green."""

POSITIONS_PER_SECOND = 20_000
"""How many positions all workers of a job may commit in a second. One broker keeps all positions of a group, in
one partition of ``__consumer_offsets``; each has about 150 bytes."""

PARTITIONS_PER_MS = 50
"""For each ms that a broker may hold an empty answer."""


def live(partitions: int) -> CopySettings:
    """Return the settings for following: the more partitions there are, the rarer are commits and empty answers.

    What a commit costs the coordinator of the group grows with its positions. At the end of the copy everything is
    committed at once, so the pause does not become longer by this. What an empty answer costs grows as well,
    because each request for records names all partitions again. A broker answers at once when there are records.
    Only an end behind a transaction's marker shows later by that time.

    :param partitions: source partitions of the whole job, of which each may have records at any time.
    """
    return replace(
        LIVE,
        commit_seconds=min(BULK.commit_seconds, partitions / POSITIONS_PER_SECOND),
        fetch_wait_ms=max(LIVE.fetch_wait_ms, min(BULK.fetch_wait_ms, partitions // PARTITIONS_PER_MS)),
    )


@dataclass(frozen=True)
class Rules:
    """Rules per source topic, and the largest batch that a target accepts (bytes)."""

    sources: dict[str, SourceRules]
    batch_bytes: dict[str, int]


def rules_of(admin: ClusterAdmin, moves: Sequence[Move]) -> Rules:
    """Return the rules of the topics of some moves.

    :raises UnsafeState: a topic does not exist.
    :raises Outage: the brokers don't answer.
    """
    wanted_sources, wanted_targets = sorted({m.source for m in moves}), sorted({m.target for m in moves})
    found = admin.existing_topics([*wanted_sources, *wanted_targets], otherwise=_gone)
    # A tombstone that an input lost before it was read is lost to every consumer of the input. A topic that grows
    # in place gets no records meanwhile and is kept from compaction: it loses no tombstone.
    patient = {m.source for m in moves if m.kind is MoveKind.INPUT or m.is_in_place}
    rules = {topic: SourceRules.of(found[topic]) for topic in wanted_sources}
    return Rules(
        {topic: replace(of, tombstone_ms=None) if topic in patient else of for topic, of in rules.items()},
        # librdkafka does not split a batch that the topic's limits refuse.
        {t: min(BATCH_BYTES, RecordLimits.of(found[t], 0, 0).batch_bytes) for t in wanted_targets},
    )


def _gone(topics: Collection[str]) -> UnsafeState:
    return UnsafeState(
        f"topics {', '.join(sorted(topics))}",
        found="nothing",
        expected="the topics of the plan",
        remedy="Before the promotion, trigger the expansion again: its expand task creates green's topics. If "
        "blue's are gone, restore them first.",
    )


class StaleCopy(Outage):
    """The copy may lack tombstones, or the target is not whole; the next attempt copies the topic from scratch.

    :param age_ms: time since the copy has last reached an end.
    :param allowed_ms: how old it may be.
    :param state: state of the mark, if it says that the target is not whole; then the age means nothing.
    """

    def __init__(self, what: str, age_ms: int = 0, allowed_ms: int = 0, state: str = "") -> None:
        remedy = "Run again: the copy of this topic starts from scratch."
        if state:
            found = f"a target that is not whole: the attempt before ended while it was {state}"
            super().__init__(what, found=found, expected="all that was copied", remedy=remedy)
            return
        super().__init__(
            what,
            found=f"a copy that last reached an end {age_ms} ms ago",
            expected=f"at most delete.retention.ms ({allowed_ms}), or deletions are missed",
            remedy=f"{remedy} If it happens again, {more_time('raise delete.retention.ms of the topic')}.",
        )
