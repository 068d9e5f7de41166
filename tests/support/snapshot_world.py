"""An application as its topics show it: an input of some days, its changelog, and requests for snapshots.

The expected snapshots are computed from the input alone, not from the changelog.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
from confluent_kafka import Consumer, TopicPartition
from kafka_rescale.core.partitioning.partitioners import partitioner_named
from kafka_rescale.core.snapshots.day import DAY_MS, SnapshotDay
from kafka_rescale.core.snapshots.request import SnapshotRequest, StoreRequest
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.spark.jobs.arguments import Arguments
from kafka_rescale.spark.jobs.job import Job
from kafka_rescale.spark.snapshots.job import snapshot

from tests.support.changelogs import Placed, Record, append, log_range, write_log

PARTITIONS = 3
STORE = "totals"
FIRST = SnapshotDay.named("2026-01-05")
GRACE_MS = 600_000
HOUR_MS = 3_600_000


@dataclass(frozen=True)
class Order:
    """One input record. A record without an amount deletes the customer's total."""

    customer: str
    amount: int | None
    timestamp: int


def orders_of_days(days: int, *, per_day: int = 40, seed: int = 1) -> list[Order]:
    """Return the orders of some days as they are processed: their times are a few minutes out of order."""
    chance = random.Random(seed)
    orders = []
    for day in range(days):
        begin = FIRST.minus(-day).end_ms - DAY_MS
        times = sorted(chance.randrange(begin, begin + DAY_MS - HOUR_MS) for _ in range(per_day))
        times[-1], times[0] = begin + DAY_MS - 1, begin
        for at in times:
            amount = None if chance.random() < 0.1 else chance.randrange(100)
            orders.append(Order(f"customer-{chance.randrange(14)}", amount, at))
    return _shuffled_within(orders, GRACE_MS // 2, chance)


def _shuffled_within(orders: Sequence[Order], ms: int, chance: random.Random) -> list[Order]:
    """Return the orders a little out of order. The orders of one customer stay in order."""
    arrival = {}
    latest: dict[str, int] = {}
    for index, order in enumerate(orders):
        at = max(order.timestamp + chance.randrange(ms), latest.get(order.customer, 0) + 1)
        arrival[index] = latest[order.customer] = at
    return [orders[i] for i in sorted(arrival, key=lambda i: arrival[i])]


def totals_as_of(orders: Iterable[Order], end_ms: int) -> dict[str, int]:
    """Return the totals of an application that has processed exactly the orders before a point in time."""
    totals: dict[str, int] = {}
    for order in orders:
        if order.timestamp < end_ms:
            if order.amount is None:
                totals.pop(order.customer, None)
            else:
                totals[order.customer] = totals.get(order.customer, 0) + order.amount
    return totals


def _as_long(total: int, _: int) -> bytes:
    return struct.pack(">q", total)


def changelog_of(orders: Iterable[Order], encode: Callable[[int, int], bytes] = _as_long) -> list[Placed]:
    """Return what the application logs: the new total, with the time of the order.

    :param encode: makes the value's bytes from a total and the number of the order.
    """
    totals: dict[str, int] = {}
    placed = []
    for number, order in enumerate(orders):
        key = order.customer.encode()
        if order.amount is None:
            totals.pop(order.customer, None)
        else:
            totals[order.customer] = totals.get(order.customer, 0) + order.amount
        value = encode(totals[order.customer], number) if order.customer in totals else None
        partition = partitioner_named("murmur2").partition(key, PARTITIONS)
        placed.append((partition, Record(key, value, order.timestamp, (("trace", b"%d" % order.timestamp),))))
    return placed


@dataclass
class SnapshotWorld:
    """The application's topics on a broker, and its snapshots in a directory.

    :param serde: the serde of the totals, and the function that makes their bytes.
    """

    client: Mapping[str, str]
    application: str
    directory: Path
    orders: list[Order] = field(default_factory=list)
    attempts: int = 0
    serde: str = "long"
    encode: Callable[[int, int], bytes] = _as_long

    @property
    def changelog(self) -> str:
        """The changelog of the first generation."""
        return f"{self.application}-{STORE}-changelog"

    @property
    def input(self) -> str:
        """The input topic."""
        return f"{self.application}-orders"

    def create(self, orders: list[Order], *, transactional: bool = False, **config: str) -> None:
        """Write input, changelog and committed offsets, as if the application had processed everything."""
        self.orders = orders
        write_log(self.client, self.input, PARTITIONS, self._inputs(orders), config={"retention.ms": "-1"})
        # A transaction marker has the time of its commit. Behind records of long ago it closes the segment, which
        # is then compacted.
        keep = {"cleanup.policy": "compact", "min.compaction.lag.ms": str(2**62)}
        cleanup = {**keep, **{k.replace("_", "."): v for k, v in config.items()}}
        records = changelog_of(orders, self.encode)
        write_log(self.client, self.changelog, PARTITIONS, records, transactional=transactional, config=cleanup)
        self.commit()

    def go_on(self, more: list[Order]) -> None:
        """Let the application process more orders."""
        before = len(self.orders)
        self.orders = [*self.orders, *more]
        append(self.client, self.input, self._inputs(more))
        append(self.client, self.changelog, changelog_of(self.orders, self.encode)[before:])
        self.commit()

    def commit(self, behind: int = 0) -> None:
        """Commit offsets as if everything had been processed, or all but some records of each partition."""
        ends = dict(enumerate(log_range(self.client, self.input).ends))
        consumer = Consumer({**self.client, "group.id": self.application})
        offsets = [TopicPartition(self.input, p, max(0, end - behind)) for p, end in ends.items()]
        consumer.commit(offsets=offsets, asynchronous=False)
        consumer.close()

    def request(self, day: SnapshotDay, **changes: Any) -> SnapshotRequest:
        """Return the request for a day."""
        store = StoreRequest(name=STORE, store_type="timestamped-key-value", key="string", value=self.serde)
        fields = {
            "application": self.application,
            "date": str(day),
            "location": str(self.directory),
            "grace_ms": GRACE_MS,
            "max_wait_seconds": 10,
            "stores": (store,),
            "inputs": (self.input,),
        }
        return SnapshotRequest(**{**fields, **changes})

    def job(self, day: SnapshotDay, spark: object | None = None, **changes: Any) -> Job:
        """Return the job of a day. Without a session, it runs in this process."""
        self.attempts += 1
        request = self.request(day, **changes).model_dump_json()
        arguments = Arguments(self.application, f"shell/test/{self.attempts}", 1, request=request)
        job = Job("snapshot", arguments, KafkaConnection(dict(self.client)))
        job.spark = lambda: spark or InProcess()  # type: ignore[method-assign, assignment, return-value]
        return job

    def take(self, day: SnapshotDay, spark: object | None = None, **changes: Any) -> int:
        """Take the snapshot of a day and return how many records were read."""
        job = self.job(day, spark, **changes)
        snapshot(job)
        return job.control.read().results[f"snapshot/{day}"].records

    def totals(self, day: SnapshotDay) -> dict[str, int]:
        """Return the totals in a day's snapshot, as pandas reads it."""
        place = self.directory / self.application / STORE / f"date={day}"
        table = pd.read_parquet(place)
        assert table["decoded_key"].is_unique
        assert list(table["key"]) == [key.encode() for key in table["decoded_key"]]
        return {str(k): int(v) for k, v in zip(table["decoded_key"], table["decoded_value"], strict=True)}

    def expected(self, day: SnapshotDay) -> dict[str, int]:
        """Return the totals of a day, computed from the input."""
        return totals_as_of(self.orders, day.end_ms)

    def _inputs(self, orders: Iterable[Order]) -> Iterator[Placed]:
        for order in orders:
            key = order.customer.encode()
            value = None if order.amount is None else str(order.amount).encode()
            yield partitioner_named("murmur2").partition(key, PARTITIONS), Record(key, value, order.timestamp)


class InProcess:
    """The part of a Spark session that a snapshot uses, without Spark: elements run one by one in this process."""

    def __init__(self) -> None:
        self.elements: Sequence[Any] = ()
        self.function: Callable[[Iterable[Any]], Iterable[Any]] = list

    @property
    def sparkContext(self) -> InProcess:  # noqa: N802
        """The session is its own context."""
        return self

    def parallelize(self, elements: Sequence[Any], _: int) -> InProcess:
        """Remember the elements."""
        self.elements = elements
        return self

    def mapPartitions(self, function: Callable[[Iterable[Any]], Iterable[Any]]) -> InProcess:  # noqa: N802
        """Remember the function."""
        self.function = function
        return self

    def collect(self) -> list[Any]:
        """Apply the function to each element, and return the results."""
        return [result for element in self.elements for result in self.function([element])]
