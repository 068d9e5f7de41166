"""How many partitions would a sub-topology need? From measured rates, and by trying real keys with other counts.

The rate that one task can process is known only if a task has more to do than it can do: then its measured rate is
the limit. Keys decide how far more partitions help: the records of one key always go to one partition.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from kafka_rescale.core.partitioning.partitioners import Partitioner

HEADROOM = 0.7
"""The share of a task's capacity that is used; the rest is for bursts, rebalances and catching up."""

LARGEST_FACTOR = 32
HEAVIEST = 5


@dataclass(frozen=True)
class TaskLoad:
    """The load of one partition of a source topic, hence of one task, as it was measured.

    :param arrived: records per second.
    :param processed: records per second.
    :param lag: offsets at the end of the measurement.
    """

    partition: int
    arrived: float
    processed: float
    lag: int

    @property
    def is_saturated(self) -> bool:
        """Whether it has more to do than it can do: it is behind, and more came in than it processed.

        A task that has processed no record tells nothing about its capacity.
        """
        return self.lag > 0 and self.arrived > self.processed > 0


@dataclass(frozen=True)
class Candidate:
    """A count, and its estimated effect.

    :param busiest: records per second of the busiest partition.
    :param share: that partition's share of all records.
    :param idle: partitions without any of the sampled keys.
    """

    partitions: int
    busiest: float
    share: float
    idle: int


@dataclass(frozen=True)
class Advice:
    """A recommendation for one topic that a stateful sub-topology reads.

    :param capacity: records per second that one task can process; None if no task has reached its limit.
    :param heaviest: keys with most of the records, and their share.
    :param now: the present count, by the same estimate.
    :param then: the recommended count.
    :param follows: whether a larger target of an expansion gives the topic more partitions.
    """

    topic: str
    reason: str
    capacity: float | None
    now: Candidate
    then: Candidate
    candidates: tuple[Candidate, ...]
    heaviest: tuple[tuple[bytes, float], ...]
    follows: bool = True


def recommended_target(advice: Iterable[Advice]) -> int | None:
    """Return the target to plan for: enough for each topic that follows it. None: no topic does.

    Nothing is planned for a topic that keeps its count: its advice is for a person.
    """
    return max((each.then.partitions for each in advice if each.follows), default=None)


def weights(keys: Iterable[tuple[int, bytes]], loads: Iterable[TaskLoad]) -> dict[bytes, float]:
    """Return the records per second of every sampled key.

    The same number of records was sampled in every partition. So a sample of a busy partition stands for more
    records.

    :param keys: partition and key of the samples.
    """
    keys = list(keys)
    arrived = {load.partition: load.arrived for load in loads}
    sampled = Counter(partition for partition, _ in keys)
    found: dict[bytes, float] = {}
    for partition, key in keys:
        found[key] = found.get(key, 0.0) + arrived.get(partition, 0.0) / sampled[partition]
    return found


def simulated(rates: Mapping[bytes, float], partitioner: Partitioner, count: int) -> Candidate:
    """Return the estimated effect of a count if the keys keep their rates.

    :param rates: records per second per key.
    """
    per_partition = [0.0] * count
    for home, rate in zip(partitioner.partition_batch(list(rates), count), rates.values(), strict=True):
        per_partition[home] += rate
    busiest, total = max(per_partition), sum(per_partition)
    idle = sum(rate == 0.0 for rate in per_partition)
    return Candidate(count, busiest, busiest / total if total else 0.0, idle)


def recommend(
    topic: str,
    loads: Sequence[TaskLoad],
    rates: Mapping[bytes, float],
    partitioner: Partitioner,
    *,
    threads: int,
) -> Advice:
    """Return the smallest multiple of the present count that is enough.

    It is a multiple, so that every partition is split, and no new partition mixes keys of two old partitions.

    :param loads: one per partition of the topic.
    :param rates: records per second per key, as ``weights`` returns them.
    :param threads: number of stream threads that shall get a task.
    """
    present = len(loads)
    tried = tuple(simulated(rates, partitioner, k * present) for k in range(1, LARGEST_FACTOR + 1))
    capacity = max((load.processed for load in loads if load.is_saturated), default=None)
    total = sum(rates.values())
    heaviest = sorted(rates.items(), key=lambda item: (-item[1], item[0]))[:HEAVIEST]
    then, reason = _smallest(tried, capacity, max(rates.values(), default=0.0), threads)
    return Advice(
        topic=topic,
        reason=reason,
        capacity=capacity,
        now=tried[0],
        then=then,
        candidates=(*takewhile(lambda each: each.partitions < then.partitions, tried), then),
        heaviest=tuple((key, rate / total if total else 0.0) for key, rate in heaviest),
    )


def _smallest(
    tried: Sequence[Candidate], capacity: float | None, heaviest: float, threads: int
) -> tuple[Candidate, str]:
    enough_tasks = [each for each in tried if each.partitions >= threads]
    if not enough_tasks:
        return tried[-1], f"{threads} threads are more than {LARGEST_FACTOR} times the present count"
    smallest = enough_tasks[0]
    idle = tried[0].partitions < threads
    if capacity is None:
        if idle:
            return smallest, f"{threads} threads, and {tried[0].partitions} tasks for them"
        return smallest, "no task has come to its limit: every one keeps up with what arrives"
    limit = capacity * HEADROOM
    if heaviest > limit:
        best = min(enough_tasks, key=lambda each: (round(each.busiest, 6), each.partitions))
        return best, (
            f"one key alone has {heaviest:.1f} records/s, more than {HEADROOM:.0%} of what a task can process "
            f"({capacity:.1f}): no count helps it. Spread that key, or make its processing cheaper"
        )
    fitting = [each for each in enough_tasks if each.busiest <= limit]
    if fitting:
        within = f"within {HEADROOM:.0%} of what a task can process ({capacity:.1f} records/s)"
        return fitting[0], f"the busiest partition stays {within}"
    return tried[-1], f"even {LARGEST_FACTOR} times the present count leaves a partition too much to do"
