"""The parts in which stores are compared: a large store in several parts, and small stores together.

A proof that was killed goes on after the parts that are already compared. Take the hashes of all keys modulo the
greatest common divisor of both partition counts. Keys with different remainders share no partition, neither in
blue nor in green. So a part reads some partitions of blue and of green, and no part reads what another part reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import ceil, gcd

from kafka_rescale.core.cluster import LogRange
from kafka_rescale.core.control.journal import PartitionOffsets
from kafka_rescale.core.control.progress import PartitionProgress
from kafka_rescale.core.formats.changelog_formats import format_of
from kafka_rescale.core.formats.key_layouts import Called
from kafka_rescale.core.partitioning.partitioners import PARTITIONERS, partitioner_named
from kafka_rescale.core.plan.plan import Move, Plan
from kafka_rescale.core.values import Value
from kafka_rescale.core.verify.fences import Fences
from kafka_rescale.core.verify.pairs import ComparedLog, StorePair
from kafka_rescale.core.verify.report import StoreReport

PART_RECORDS = 20_000_000
"""Size of a part in records of green, counted by offsets: a minute or some minutes of work."""
STORES_TOGETHER = 16
"""Most stores in one Spark plan. For each record, the plan looks its topic up in a list of so many."""


class Part(Value):
    """Some partitions of a store.

    :param number: which part, from 0 on.
    :param count: how many parts the store has.
    :param modulus: partitions with the same remainder modulo this number belong together.
    :param records: how many records of green it has, at most.
    """

    store: str
    number: int = 0
    count: int = 1
    modulus: int = 1
    records: int = 0

    @property
    def name(self) -> str:
        """Its name among the parts of a plan."""
        return f"{self.store}/{self.number + 1} of {self.count}"

    def has(self, partition: int) -> bool:
        """Whether a partition of blue or green is of this part."""
        return partition % self.modulus % self.count == self.number

    def own(self, offsets: Mapping[int, int]) -> dict[int, int]:
        """Return the offsets of its own partitions, which are all that can have its keys."""
        return {p: offset for p, offset in offsets.items() if self.has(p)}

    def narrowed(self, pair: StorePair) -> StorePair:
        """Return the pair with only this part's partitions to read."""
        return pair.model_copy(update={"blue": self._narrowed(pair.blue), "green": self._narrowed(pair.green)})

    def shortened(self, report: StoreReport) -> StoreReport:
        """Return the report of this part with only its own partitions.

        The record of a proof in progress has the reports of all parts. If each of them had all partitions, a store
        with many partitions and many parts would not fit into a control record.
        """
        blue = tuple(live for p, live in enumerate(report.blue_partitions) if self.has(p))
        green = tuple(each for each in report.partitions if self.has(each.partition))
        return report.model_copy(update={"partitions": green, "blue_partitions": blue})

    def widened(self, report: StoreReport, source_partitions: int) -> StoreReport:
        """Return a report with a place for each partition of blue.

        :param report: the report of this part. If an earlier version has noted it, it has all partitions already.
        :param source_partitions: blue's partition count.
        """
        if len(report.blue_partitions) == source_partitions:
            return report
        own = iter(report.blue_partitions)
        blue = tuple(next(own, 0) if self.has(p) else 0 for p in range(source_partitions))
        return report.model_copy(update={"blue_partitions": blue})

    def progress(self, topic: str, fences: Fences, share: float, *, is_ours: bool) -> Iterator[PartitionProgress]:
        """Yield how far its partitions of green are read.

        :param topic: green's topic.
        :param share: how much of this part has been read, from 0 to 1.
        :param is_ours: whether this attempt has read it.
        """
        for p, end in fences.green_ends[topic].items():
            if self.has(p):
                begin = min(fences.green_begins[topic].get(p, 0), end)
                read = int(share * (end - begin))
                records = read if is_ours else 0
                yield PartitionProgress(
                    topic=topic, partition=p, position=begin + read, end=end, records=records, begin=begin
                )

    def _narrowed(self, log: ComparedLog) -> ComparedLog:
        ranges = {p: of if self.has(p) else LogRange(of.end, of.end) for p, of in log.ranges.items()}
        return log.model_copy(update={"ranges": ranges})


class ProofProgress(Value):
    """What a proof has compared so far.

    :param plan: fingerprint of the plan.
    :param attempt: number of the attempt in the journal.
    :param fences: the fences with which it began.
    :param done: reports by the names of the parts, each with its own partitions (``Part.shortened``).
    """

    plan: str
    attempt: int
    fences: Fences
    done: dict[str, StoreReport]


def parts_of(plan: Plan, fences: Fences) -> tuple[Part, ...]:
    """Return the parts of all stores, in the order of the plan's changelogs."""
    return tuple(part for move in plan.changelogs for part in _parts(move, _records(fences, move.target)))


def whole_stores(moves: Iterable[Move], ends: PartitionOffsets) -> tuple[Part, ...]:
    """Return one part per store, each of them the whole store.

    :param ends: ends of green's topics.
    """
    return tuple(Part(store=move.store, records=sum(ends[move.target].values())) for move in moves)


def together(parts: Iterable[Part], moves: Mapping[str, Move]) -> tuple[tuple[Part, ...], ...]:
    """Return the parts by Spark plan: small parts share a plan, as long as they have at most ``PART_RECORDS``.

    If Python places the keys of one store, all keys of the plan go through Python. So such stores share no plan
    with others. Nor do stores in which an earlier growth has left records behind.

    :param moves: by the names of the stores.
    """
    batches: list[list[Part]] = []
    for part in sorted(parts, key=lambda part: _kind(moves[part.store])):
        last = batches[-1] if batches else []
        fits = sum(p.records for p in last) + part.records <= PART_RECORDS and len(last) < STORES_TOGETHER
        is_alike = bool(last) and _kind(moves[last[-1].store]) == _kind(moves[part.store])
        if fits and is_alike and part.store not in {p.store for p in last}:
            last.append(part)
        else:
            batches.append([part])
    return tuple(map(tuple, batches))


def _kind(move: Move) -> tuple[bool, bool]:
    partitioners = {move.partitioner, move.left.partitioner if move.left else move.partitioner}
    layout = format_of(move.store_type, move.partitioning_key).layout
    in_python = isinstance(layout, Called) or not partitioners <= PARTITIONERS.keys()
    return in_python, bool(move.grown_from)


def report_of(parts: Mapping[str, StoreReport], plan: Plan, fences: Fences) -> tuple[StoreReport, ...]:
    """Return the reports of all stores, in the order of the plan's changelogs, from the reports of their parts."""
    found: dict[str, StoreReport] = {}
    sources = {move.store: move.source_partitions for move in plan.changelogs}
    for part in parts_of(plan, fences):
        report = part.widened(parts[part.name], sources[part.store])
        found[part.store] = found[part.store].plus(report) if part.store in found else report
    return tuple(found[move.store] for move in plan.changelogs)


def _parts(move: Move, records: int) -> tuple[Part, ...]:
    modulus = _modulus(move)
    count = min(modulus, max(1, ceil(records / PART_RECORDS)))
    return tuple(
        Part(store=move.store, number=number, count=count, modulus=modulus, records=records // count)
        for number in range(count)
    )


def _modulus(move: Move) -> int:
    partitioner = partitioner_named(move.partitioner, move.key_topic)
    if partitioner.is_static:
        return max(move.source_partitions, move.target_partitions)
    return gcd(move.source_partitions, move.target_partitions) if partitioner.is_modulo else 1


def _records(fences: Fences, topic: str) -> int:
    begins = fences.green_begins[topic]
    return sum(end - begins.get(p, 0) for p, end in fences.green_ends[topic].items())
