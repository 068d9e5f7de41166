"""Comparing what was written between two fences, store by store.

A difference is not yet a finding, for the same reasons as in ``spark.verify.live``: blue's log is compacted
meanwhile. So this looks whether blue has later records of the key. And it reads both stretches again, until two
readings in a row have found the key's records at the same offsets.

A stretch is as long as what was copied while the last one was compared. So the time for it must not grow faster
than its length: a long stretch is read once as well, divided by its keys on disk (``Spool``), and again for all
differences together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass

from kafka_rescale.core.cluster import TopicDescription
from kafka_rescale.core.control.journal import PartitionOffsets
from kafka_rescale.core.errors import Outage
from kafka_rescale.core.plan.plan import Move, Plan
from kafka_rescale.core.verify.delta import CERTAIN, DeltaRules, Judged, judge
from kafka_rescale.core.verify.oracles import KeyFinding, Oracle, finding_of
from kafka_rescale.core.verify.pairs import kept_since, residue_modulus
from kafka_rescale.core.verify.report import MAX_FINDINGS, LogCount, StoreReport
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.reading.later_keys import later_keys
from kafka_rescale.kafka.reading.source_rules import SourceRules
from kafka_rescale.kafka.verify.spool import Spool
from kafka_rescale.kafka.verify.stretch import Abandoned, Stretch, Wanted, read_blue, read_green

READINGS = 8
STORES_AT_ONCE = 8
RECORDS_AT_ONCE = 1_000_000
"""Records of one side, counted by offsets, that are compared at once. If the job was away, or the copy has caught
up, a stretch is longer. Then its keys are compared in parts."""
PARTS_AT_ONCE = 32
"""Parts of the keys that all stores together keep on the driver's disk (``TMPDIR``). With about 100 bytes per
record, these are 7 GB of both sides. A stretch of more parts than a store's share is read once per share."""
SUSPECTS = 100_000
"""Keys with differences for which the stretch is read again at once, plus those of one part."""


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
    at_once = min(len(moves), STORES_AT_ONCE)
    deltas = (StoreDelta(connection, admin, move, stretch, topics, at_once) for move in moves)
    with ThreadPoolExecutor(STORES_AT_ONCE) as pool:
        return tuple(pool.map(StoreDelta.compare, deltas))


@dataclass(frozen=True)
class StoreDelta:
    """A stretch of one store.

    :param topics: descriptions of blue's and green's topic.
    :param stores_at_once: how many stores are compared at the same time, and share the disk.
    """

    connection: KafkaConnection
    admin: ClusterAdmin
    move: Move
    stretch: Stretch
    topics: Mapping[str, TopicDescription]
    stores_at_once: int = 1

    def compare(self) -> StoreReport:
        """Return the report. Without a difference, both stretches are read once, or once per share of the disk.

        If neither blue nor green has a new offset, no broker is asked, as many partitions take long.
        """
        blue, green = self.stretch.of_blue(self.move.source), self.stretch.of_green(self.move.target)
        longest = max(sum(end - begin for begin, end in ranges.values()) for ranges in (blue, green))
        parts = 1 + int(longest) // RECORDS_AT_ONCE if longest else 0
        found = Judged.sum(self._settled(suspects, parts) for suspects in self._suspected(parts))
        self._assert_deletions_kept(found)
        return _report(self.move, found)

    def _suspected(self, parts: int) -> Iterator[Judged]:
        """Yield the results of one reading, in groups of parts whose differences are looked into together."""
        group = Judged()
        for judged in self._judged(parts):
            group = Judged.sum((group, judged))
            if len(group.places) > SUSPECTS:
                yield group
                group = Judged()
        yield group

    def _settled(self, suspected: Judged, parts: int) -> Judged:
        """Return what is left of the differences when they are looked into."""
        found = self._without_later(suspected)
        for _ in range(READINGS - 1):
            if not found.places:
                return found
            again = self._without_later(Judged.sum(self._judged(parts, found.places.keys())))
            is_settled = all(found.places[key] == places for key, places in again.places.items())
            found = found.read_again(again)
            if is_settled:
                return found
        raise Outage(
            f"topic {self.move.source!r}",
            found=f"keys that were compacted during each of {READINGS} comparisons",
            expected="a log that can be read between two compactions",
            # Not a longer min.compaction.lag.ms: versions that are gone would count as missing then.
            remedy="Set min.cleanable.dirty.ratio of the topic to 1 until the expansion ends: brokers compact it "
            "less often then.",
        )

    def _without_later(self, found: Judged) -> Judged:
        """Leave to the next stretch what blue has written behind this one."""
        if not found.places or self.stretch.is_last:
            return found
        self._assert_wanted()
        source = self.move.source
        later = later_keys(self.connection, source, self.stretch.now.blue_ends[source], set(found.places))
        return found.without(later)

    def _judged(self, parts: int, keys: Set[bytes] | None = None) -> Iterator[Judged]:
        """Read both stretches, and yield the result of each part of the keys.

        :param parts: into how many parts the keys are divided.
        :param keys: the keys to judge; all if None.
        """
        at_once = max(1, PARTS_AT_ONCE // self.stores_at_once)
        for first in range(0, parts, at_once):
            numbers = range(first, min(first + at_once, parts))
            self._assert_wanted()
            with closing(Spool(numbers, parts)) as blue, closing(Spool(numbers, parts)) as green:
                rules = self._read(blue, green, keys)
                for number in numbers:
                    self._assert_wanted()
                    yield judge(blue.taken(number), green.taken(number), rules)

    def _assert_wanted(self) -> None:
        """Give up if the comparison is over: it would take the processor from the last stretch, in the pause."""
        if self.stretch.over.is_set():
            raise Abandoned

    def _read(self, blue: Spool, green: Spool, keys: Set[bytes] | None) -> DeltaRules:
        """Read both stretches; return the rules by which they are to be judged."""
        source, target = self.move.source, self.move.target
        expires = {topic: self._rules(topic).expires for topic in (source, target)}
        has = (lambda key: key in keys and blue.has(key)) if keys is not None else blue.has
        of_blue, of_green = Wanted(has, Counter()), Wanted(has, Counter())
        with ThreadPoolExecutor(1) as beside:
            copied = beside.submit(
                lambda: green.fill(
                    read_green(self.connection, self.move, self.stretch, of_green, expires=expires[target])
                )
            )
            blue.fill(read_blue(self.connection, self.move, self.stretch, of_blue, expires=expires[source]))
            copied.result()
        return self._asked(of_blue.read, self.admin.begin_offsets([source, target]))

    def _rules(self, topic: str) -> SourceRules:
        return SourceRules.of(self.topics[topic])

    def _asked(self, read: Mapping[int, int], begins: PartitionOffsets) -> DeltaRules:
        """Return the rules.

        :param read: number of records by partition of blue, of all keys.
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

    def _assert_deletions_kept(self, found: Judged) -> None:
        """Refuse to call it a violation that only green has a record, if blue may have lost its deletion by now.

        :raises Outage: the comparison comes too late.
        """
        source = self.move.source
        kept_ms = self._rules(source).tombstone_ms
        age_ms = now_ms() - self.stretch.before.copied_as_of_ms[source]
        lost = [at for oracle, at in found.rows if at.blue is None and oracle not in CERTAIN]
        if kept_ms is None or age_ms <= kept_ms or not lost:
            return
        raise Outage(
            f"topic {source!r}",
            found=f"records of the last {age_ms / 1000:.0f} s to be compared",
            expected=f"no longer than deletions are kept (delete.retention.ms is {kept_ms})",
            remedy="Clear the task prove, or trigger again after a rollback: a new proof begins with what is "
            "copied now. If it comes again, raise delete.retention.ms of the topic before: a larger value "
            "protects only a proof that begins after it.",
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
