"""The parts in which a proof compares a large store, so that a proof that is killed has something to go on from.

Keys whose hashes have the same remainder by the greatest common divisor of both counts share no partition with
other keys, on neither side. So a part reads some partitions of blue and of green, and nothing twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, gcd

from kafka_rescale.core.cluster import LogRange
from kafka_rescale.core.partitioning.partitioners import partitioner_named
from kafka_rescale.core.plan.plan import Move, Plan
from kafka_rescale.core.values import Value
from kafka_rescale.core.verify.fences import Fences
from kafka_rescale.core.verify.pairs import ComparedLog, StorePair
from kafka_rescale.core.verify.report import StoreReport

PART_RECORDS = 20_000_000
"""Of green, by offsets: a minute or some minutes of work."""


class Part(Value):
    """Some partitions of a store.

    :param number: which part, from 0 on.
    :param of: how many parts the store has.
    :param modulus: partitions with the same remainder by it belong together.
    :param records: how many records of green it has, at most.
    """

    store: str
    number: int = 0
    of: int = 1
    modulus: int = 1
    records: int = 0

    @property
    def name(self) -> str:
        """Its name among the parts of a plan."""
        return f"{self.store}/{self.number + 1} of {self.of}"

    def has(self, partition: int) -> bool:
        """Whether a partition of blue or green is of this part."""
        return partition % self.modulus % self.of == self.number

    def narrowed(self, pair: StorePair) -> StorePair:
        """Return what is compared of a store; other partitions have nothing to read."""
        return pair.model_copy(update={"blue": self._narrowed(pair.blue), "green": self._narrowed(pair.green)})

    def _narrowed(self, log: ComparedLog) -> ComparedLog:
        ranges = {p: of if self.has(p) else LogRange(of.end, of.end) for p, of in log.ranges.items()}
        return log.model_copy(update={"ranges": ranges})


class ProofProgress(Value):
    """What a proof has compared so far.

    :param plan: fingerprint of the plan.
    :param attempt: the journal's.
    :param fences: those with which it began.
    :param done: reports by the names of the parts.
    """

    plan: str
    attempt: int
    fences: Fences
    done: dict[str, StoreReport]


def parts_of(plan: Plan, fences: Fences) -> tuple[Part, ...]:
    """Return the parts of all stores, in the order of the plan's changelogs."""
    return tuple(part for move in plan.changelogs for part in _parts(move, _records(fences, move.target)))


def report_of(parts: Mapping[str, StoreReport], plan: Plan, fences: Fences) -> tuple[StoreReport, ...]:
    """Return the reports of all stores, in the order of the plan's changelogs, from those of their parts."""
    found: dict[str, StoreReport] = {}
    for part in parts_of(plan, fences):
        report = parts[part.name]
        found[part.store] = found[part.store].plus(report) if part.store in found else report
    return tuple(found[move.store] for move in plan.changelogs)


def _parts(move: Move, records: int) -> tuple[Part, ...]:
    modulus = _modulus(move)
    of = min(modulus, max(1, ceil(records / PART_RECORDS)))
    return tuple(
        Part(store=move.store, number=number, of=of, modulus=modulus, records=records // of)
        for number in range(of)
    )


def _modulus(move: Move) -> int:
    partitioner = partitioner_named(move.partitioner, move.key_topic)
    if partitioner.is_static:
        return max(move.source_partitions, move.target_partitions)
    return gcd(move.source_partitions, move.target_partitions) if partitioner.is_modulo else 1


def _records(fences: Fences, topic: str) -> int:
    begins = fences.green_begins[topic]
    return sum(end - begins.get(p, 0) for p, end in fences.green_ends[topic].items())
