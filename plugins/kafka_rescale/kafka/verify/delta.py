"""Comparing what was written between two fences, store by store.

A difference is not yet a finding, for the same reasons as in ``spark.verify.live``: blue's log is compacted
meanwhile. So this looks whether blue has later records of the key. And it reads both stretches again, until two
readings in a row have found the key's records at the same offsets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from kafka_rescale.core.cluster import TopicDescription
from kafka_rescale.core.control.journal import PartitionOffsets
from kafka_rescale.core.errors import Outage
from kafka_rescale.core.plan.plan import Move, Plan
from kafka_rescale.core.verify.delta import DeltaRules, Judged, judge
from kafka_rescale.core.verify.oracles import KeyFinding, Oracle, finding_of
from kafka_rescale.core.verify.pairs import kept_since, residue_modulus
from kafka_rescale.core.verify.report import MAX_FINDINGS, LogCount, StoreReport
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.reading.later_keys import later_keys
from kafka_rescale.kafka.reading.source_rules import SourceRules
from kafka_rescale.kafka.verify.stretch import KeyPart, Stretch, read_blue, read_green

READINGS = 8
STORES_AT_ONCE = 8
RECORDS_AT_ONCE = 1_000_000
"""Records of blue, counted by offsets, that are compared at once. If the job was away, a stretch is longer. Then
its keys are compared in parts."""


def compared_topics(connection: KafkaConnection, plan: Plan) -> dict[str, TopicDescription]:
    """Return descriptions of the topics that ``compare_stretch`` compares.

    :raises ClusterOutage: brokers don't know one of them.
    """
    return ClusterAdmin(connection).existing_topics([t for m in plan.changelogs for t in (m.source, m.target)])


def compare_stretch(
    connection: KafkaConnection, plan: Plan, stretch: Stretch, topics: Mapping[str, TopicDescription]
) -> tuple[StoreReport, ...]:
    """Compare a stretch of every store, in the order of the plan's changelogs.

    :param topics: descriptions of all topics of the changelogs.
    :raises Abandoned: the comparison was told to end.
    :raises Outage: the brokers don't answer, or blue was compacted too fast to tell.
    :raises UnsafeState: a key of blue lies where it does not belong.
    """
    admin, moves = ClusterAdmin(connection), plan.changelogs
    with ThreadPoolExecutor(STORES_AT_ONCE) as pool:
        return tuple(pool.map(lambda move: StoreDelta(connection, admin, move, stretch, topics).compare(), moves))


@dataclass(frozen=True)
class StoreDelta:
    """A stretch of one store.

    :param topics: descriptions of blue's and green's topic.
    """

    connection: KafkaConnection
    admin: ClusterAdmin
    move: Move
    stretch: Stretch
    topics: Mapping[str, TopicDescription]

    def compare(self) -> StoreReport:
        """Return the report. Without a difference, both stretches are read once per part of the keys.

        If neither blue nor green has a new offset, no broker is asked, as many partitions take long.
        """
        blue, green = self.stretch.of_blue(self.move.source), self.stretch.of_green(self.move.target)
        of_blue, of_green = (sum(end - begin for begin, end in ranges.values()) for ranges in (blue, green))
        parts = 1 + int(of_blue) // RECORDS_AT_ONCE if of_blue or of_green else 0
        found = Judged.sum(self._settled(KeyPart(number, parts)) for number in range(parts))
        self._assert_deletions_kept(found)
        return _report(self.move, found)

    def _settled(self, part: KeyPart) -> Judged:
        known: dict[bytes, frozenset[tuple[bool, int, int]]] = {}
        for _ in range(READINGS):
            found = self._judged(part)
            if found.rows and not self.stretch.is_last:
                found = found.without(self._written_later(set(found.places)))
            if all(known.get(key) == places for key, places in found.places.items()):
                return found
            known = found.places
        raise Outage(
            f"topic {self.move.source!r}",
            found=f"keys that were compacted during each of {READINGS} comparisons",
            expected="a log that can be read between two compactions",
            remedy="Raise min.compaction.lag.ms of the topic until the expansion ends.",
        )

    def _judged(self, part: KeyPart) -> Judged:
        source, target = self.move.source, self.move.target
        expires = {topic: self._rules(topic).expires for topic in (source, target)}
        with ThreadPoolExecutor(1) as beside:
            copied = beside.submit(
                lambda: list(read_green(self.connection, self.move, self.stretch, part, expires=expires[target]))
            )
            blue = list(read_blue(self.connection, self.move, self.stretch, part, expires=expires[source]))
            green = copied.result()
        begins = self.admin.begin_offsets([source, target])
        return judge(blue, green, self._asked(Counter(r.partition for r in blue), begins))

    def _rules(self, topic: str) -> SourceRules:
        return SourceRules.of(self.topics[topic])

    def _asked(self, read: Mapping[int, int], begins: PartitionOffsets) -> DeltaRules:
        """Return the rules.

        :param read: number of records by partition of blue.
        :param begins: log starts after the reading.
        """
        move, stretch = self.move, self.stretch
        blue, green = stretch.of_blue(move.source), stretch.of_green(move.target)
        versions_since_ms, expires_before_ms = kept_since(move, self.topics, now_ms())
        return DeltaRules(
            since=stretch.before.fence[move.source],
            until=None if stretch.is_last else stretch.now.fence[move.source],
            complete=frozenset(p for p, (begin, end) in blue.items() if read.get(p, 0) == end - begin),
            versions_since_ms=versions_since_ms,
            expires_before_ms=expires_before_ms,
            trimmed_blue=any(begins[move.source][p] > begin for p, (begin, _) in blue.items()),
            trimmed_green=any(begins[move.target][p] > begin for p, (begin, _) in green.items()),
            modulus=residue_modulus(
                move.partitioner, move.key_topic, move.source_partitions, move.target_partitions
            ),
        )

    def _written_later(self, keys: set[bytes]) -> set[bytes]:
        source = self.move.source
        return later_keys(self.connection, source, self.stretch.now.blue_ends[source], keys)

    def _assert_deletions_kept(self, found: Judged) -> None:
        """Refuse to call it a violation that only green has a record, if blue may have lost its deletion by now.

        :raises Outage: the comparison comes too late.
        """
        source = self.move.source
        kept_ms = self._rules(source).tombstone_ms
        age_ms = now_ms() - self.stretch.before.copied_as_of_ms[source]
        if kept_ms is None or age_ms <= kept_ms or all(at.blue is not None for _, at in found.rows):
            return
        raise Outage(
            f"topic {source!r}",
            found=f"records of the last {age_ms / 1000:.0f} s to be compared",
            expected=f"no longer than deletions are kept (delete.retention.ms is {kept_ms})",
            remedy="Run again; if it comes again, raise delete.retention.ms for the time of the expansion.",
        )


def _report(move: Move, found: Judged) -> StoreReport:
    listed: dict[Oracle, list[KeyFinding]] = {}
    for oracle, at in sorted(found.rows, key=lambda row: (row[1].rank, row[1].key)):
        listed.setdefault(oracle, []).append(finding_of(oracle, move.store, at))
    return StoreReport(
        store=move.store,
        store_type=move.store_type,
        blue_topic=move.source,
        green_topic=move.target,
        blue=LogCount(records=found.blue_records),
        green=LogCount(records=found.green_records, live=found.live, tombstoned=found.deleted),
        expired=0,
        surplus=0,
        partitions=(),
        excused=found.touched,
        failures={oracle: len(rows) for oracle, rows in listed.items()},
        findings=tuple(finding for rows in listed.values() for finding in rows[:MAX_FINDINGS]),
    )
