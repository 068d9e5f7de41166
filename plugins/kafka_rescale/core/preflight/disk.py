"""Preflight: would the disks of the brokers hold what the expansion writes?

Brokers place new replicas themselves, so it is not known beforehand what a single log dir will get. These checks
assume that the brokers spread every topic over all brokers that are up, and over the log dirs of each: then no
broker gets more than one replica beyond its share. Log dirs that share one volume are checked one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kafka_rescale.core.acls.needed import DESCRIBE
from kafka_rescale.core.cluster import Disks, LogDir, TopicPartition
from kafka_rescale.core.errors import Finding
from kafka_rescale.core.expansion.pacing_disk import untold
from kafka_rescale.core.plan.disk_need import TopicNeed, carried_share, topic_need
from kafka_rescale.core.plan.plan import Move, MoveKind
from kafka_rescale.core.preflight.counts import changes_anything
from kafka_rescale.core.preflight.situation import Situation, counted
from kafka_rescale.core.values import listed, size


@dataclass(frozen=True)
class Room:
    """One log dir, and what is to be written there.

    :param needed: bytes at most; without what an earlier attempt has written there already.
    """

    log_dir: LogDir
    needed: int

    def allowed(self, free_percent: int) -> int:
        """Return how many bytes may be written.

        :param free_percent: the part of the usable bytes that must stay free.
        """
        return (self.log_dir.usable or 0) * (100 - free_percent) // 100

    @property
    def taken(self) -> float:
        """The part of the usable bytes that is written, as a number from 0 on."""
        return self.needed / self.log_dir.usable if self.log_dir.usable else float(self.needed > 0)

    def __str__(self) -> str:
        return f"log dir {self.log_dir.path!r} of broker {self.log_dir.broker}"


def needs(situation: Situation) -> list[TopicNeed]:
    """Return what is written to each topic, if a broker tells the size of its source."""
    sizes = sizes_by_topic(situation.cluster.disks)
    found = []
    for move in (*situation.plan.moves, *situation.plan.bridges):
        source = situation.cluster.topics.get(move.source)
        lies_there = sizes.get(move.source)
        if source is not None and lies_there is not None:
            found.append(topic_need(move, lies_there, source.replication_factor, _share(situation, move)))
    return found


def rooms(situation: Situation) -> list[Room]:
    """Return the log dirs that take replicas and whose space is known, the fullest first."""
    disks, needed = situation.cluster.disks, needs(situation)
    taking = [each for each in disks.log_dirs if each.takes_replicas]
    brokers = {each.broker for each in taking} | set(disks.untold)
    found = []
    for each in taking:
        beside, there = sum(other.broker == each.broker for other in taking), _by_topic(each.sizes)
        # In place, the records in the topic are the application's own, and no copy of an earlier attempt.
        left = {n.target: there.get(n.target, 0) for n in needed if n.source != n.target}
        written = sum(max(0, n.on_one(len(brokers), beside) - left.get(n.target, 0)) for n in needed)
        if each.usable is not None:
            found.append(Room(each, written))
    return sorted(found, key=lambda room: (-room.taken, room.log_dir.broker, room.log_dir.path))


def disk_space(situation: Situation) -> Iterator[Finding]:
    """Yield one finding if a log dir would not hold what may come to lie there."""
    percent = situation.application.free_disk_percent
    if percent is None:
        return
    full = [room for room in rooms(situation) if room.needed > room.allowed(percent)]
    if not full:
        return
    worst, *others = full
    beside = f", and {len(others)} more: {listed(list(map(str, others)))}" if others else ""
    usable = worst.log_dir.usable or 0
    yield Finding(
        f"log dir {worst.log_dir.path!r} of broker {worst.log_dir.broker}",
        f"{usable:,} usable bytes ({size(usable)}){beside}",
        f"room for {worst.needed:,} bytes of copies ({size(worst.needed)}), with {percent} % left free",
        f"{_assumed(situation)} Free space there, add a disk or a broker, or lower `min.cleanable.dirty.ratio` of "
        f"the largest changelogs until they are compacted: {listed(_largest(situation))}. If it is enough "
        "nevertheless, lower `free_disk_percent:` in the application file; `null` turns this check off.",
    )


def disk_messages(situation: Situation) -> Iterator[str]:
    """Yield what is written and what is free, and one message about everything that brokers don't tell."""
    journal = situation.control.journal
    if (journal is not None and journal.in_progress) or not changes_anything(situation):
        return
    found = rooms(situation)
    if found:
        total, worst = sum(n.everywhere for n in needs(situation)), found[0]
        yield (
            f"Disk: at most {size(total)} are written, replicas included. Most is taken of {worst}: "
            f"{size(worst.needed)} of {size(worst.log_dir.usable or 0)} usable. "
            f"{_assumed(situation)}"
        )
    if unknown := sorted(_unknown(situation)):
        yield f"Disk: unknown, and not checked: {listed(unknown)}. {_to_know(situation.cluster.disks)}".rstrip()


def sizes_by_topic(disks: Disks) -> dict[str, int]:
    """Return the bytes of each topic's log. Of each partition, the largest replica counts."""
    largest: dict[TopicPartition, int] = {}
    for log_dir in disks.log_dirs:
        for at, number in log_dir.sizes.items():
            largest[at] = max(number, largest.get(at, 0))
    return _by_topic(largest)


def _by_topic(of: Mapping[TopicPartition, int]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for (topic, _), number in of.items():
        sizes[topic] = sizes.get(topic, 0) + number
    return sizes


def _share(situation: Situation, move: Move) -> float:
    """Return the part of a topic that is carried over: all of a changelog, else what is not yet processed."""
    if move.kind is MoveKind.CHANGELOG:
        return 1.0
    cluster = situation.cluster
    begins, committed, ends = (
        {p: offset for (topic, p), offset in offsets.items() if topic == move.source}
        for offsets in (cluster.begins, cluster.committed, cluster.ends)
    )
    return carried_share(begins, committed, ends)


def _unknown(situation: Situation) -> Iterator[str]:
    disks = situation.cluster.disks
    yield from untold(disks)
    if disks.log_dirs:
        sizes = sizes_by_topic(disks)
        absent = {m.source for m in situation.plan.moves} - sizes.keys()
        yield from (f"the size of {topic}" for topic in sorted(absent))


def _to_know(disks: Disks) -> str:
    if any(f"{DESCRIBE} on the cluster" in reason for reason in disks.untold.values()):
        return "`python -m kafka_rescale acls FILE` prints the permission."
    return ""


def _largest(situation: Situation) -> list[str]:
    found = sorted(needs(situation), key=lambda need: -need.everywhere)
    return [f"{need.source} ({size(need.source_bytes)})" for need in found if need.everywhere]


def _assumed(situation: Situation) -> str:
    brokers = {d.broker for d in situation.cluster.disks.log_dirs if d.takes_replicas}
    count = len(brokers | set(situation.cluster.disks.untold))
    what = (
        "in place, the records of keys that move and as many bytes of tombstones"
        if situation.is_in_place
        else "the whole log of each changelog as it lies on disk, and what is in flight"
    )
    over = f"over the log dirs of {counted(count, 'broker')}"
    spread = f"spread evenly {over}" if count == 1 else f"spread {over}, up to a replica beyond an even share"
    return f"Assumed: {what}, {spread}; nothing is compacted."
