"""The comparison of internal topics with the counts that follow from the inputs (KIP-878)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from kafka_rescale.core.control.autoscaling import Parallelism
from kafka_rescale.core.control.journal import Journal
from kafka_rescale.core.preflight.counts import counts_after
from kafka_rescale.core.preflight.described import Described
from kafka_rescale.core.preflight.topics import missing_topics
from kafka_rescale.core.topology.partition_counts import partition_counts


@dataclass(frozen=True)
class Mismatch:
    """An internal topic with another count than the one that follows from the inputs."""

    topic: str
    found: int
    expected: int

    def __str__(self) -> str:
        return f"{self.topic} with {self.found} partitions instead of {self.expected}"


@dataclass(frozen=True)
class Observed:
    """The observation of an application by its watch.

    :param running: ``application.id`` of the running generation.
    :param grown: by input topic that has grown since the generation knows it: ``(known count, present count)``.
    :param too_few: internal topics that have to grow.
    :param too_many: internal topics that would have to shrink.
    :param missing: a sentence about a topic that doesn't exist. Then no counts can be compared.
    :param parallelism: the present and the expected number of tasks of every sub-topology.
    :param lag: the largest lag of all input partitions, in offsets.
    :param partitions: the number of partitions of all topics of the application together.
    :param in_progress: the expansion in progress, if there is one.
    :param inputs: present partitions per input, by its name on the cluster.
    :param is_down: whether the running generation has processed records before, but has no member now.
    :param unproven: repartition topics whose counts are the only evidence of a growth. The program may set these
        counts itself. Then no input has grown, and the next generation can't start on other counts.
    :param stopped: the last expansion, if a person has ended it.
    """

    running: str
    grown: dict[str, tuple[int, int]]
    too_few: tuple[Mismatch, ...] = ()
    too_many: tuple[Mismatch, ...] = ()
    missing: str = ""
    parallelism: tuple[Parallelism, ...] = ()
    lag: int = 0
    partitions: int = 0
    in_progress: Journal | None = None
    inputs: dict[str, int] = field(default_factory=dict)
    is_down: bool = False
    unproven: tuple[str, ...] = ()
    stopped: Journal | None = None

    @property
    def target(self) -> int:
        """The count to reach: the largest count of an input that has grown."""
        return max((present for _, present in self.grown.values()), default=0)

    @property
    def shrinking(self) -> tuple[Parallelism, ...]:
        """Sub-topologies that the target would leave with fewer tasks."""
        return tuple(p for p in self.parallelism if p.expected < p.current) if self.target else ()


def observe(described: Described) -> Observed:
    """Return the observation. It follows from the description of the running generation.

    :param described: the description. Its cluster may have topics that the expansion in progress has made.
    """
    journal = described.control.journal
    observed = Observed(
        running=described.blue,
        grown={},
        lag=_lag(described),
        partitions=sum(topic.partitions for topic in described.cluster.topics.values()),
        in_progress=journal if journal is not None and journal.in_progress else None,
        is_down=bool(described.cluster.committed) and not described.cluster.group.is_live,
        stopped=journal if journal is not None and journal.stopped_by else None,
    )
    if missing := next(missing_topics(described, frozenset()), None):
        return replace(observed, missing=str(missing))
    grown = {
        described.full_name(topic): (known, described.actual_counts[topic])
        for topic, known in described.grown.items()
    }
    mismatches = tuple(_mismatches(described))
    observed = replace(
        observed,
        grown=grown,
        inputs={described.full_name(t): described.actual_counts[t] for t in described.topology.inputs},
        too_few=tuple(m for m in mismatches if m.found < m.expected),
        too_many=tuple(m for m in mismatches if m.found > m.expected),
        unproven=_unproven(described),
    )
    return replace(observed, parallelism=_parallelism(described, observed.target))


def _unproven(described: Described) -> tuple[str, ...]:
    topics = {topic for growth in described.growths.values() for topic in growth.unproven}
    return tuple(sorted(map(described.full_name, topics)))


def _derived(described: Described) -> dict[str, int]:
    """Return the counts that Kafka Streams derives from the present inputs, by the topology's names of topics."""
    repartitions = described.topology.repartitions
    external = {t: n for t, n in described.actual_counts.items() if t not in repartitions}
    return {**external, **partition_counts(described.topology, external, described.enforced_now)}


def _mismatches(described: Described) -> Iterator[Mismatch]:
    derived = _derived(described)
    for topic in sorted(described.topology.repartitions):
        found = described.actual_counts[topic]
        if found != derived[topic]:
            yield Mismatch(described.full_name(topic), found, derived[topic])
    for subtopology in described.topology.subtopologies:
        tasks = max(derived[t] for t in subtopology.sources)
        for store in subtopology.stores:
            name = described.changelog(store)
            found = described.cluster.topics[name].partitions
            if found != tasks:
                yield Mismatch(name, found, tasks)


def _parallelism(described: Described, target: int) -> tuple[Parallelism, ...]:
    """Return the present and the expected number of tasks of every sub-topology.

    An expansion to the target also grows inputs that have not grown by themselves.
    """
    after = counts_after(replace(described, target=target)) if target else _derived(described)
    now = described.counts
    return tuple(
        Parallelism(s.id, max(now[t] for t in s.sources), max(after[t] for t in s.sources))
        for s in described.topology.subtopologies
    )


def _lag(described: Described) -> int:
    cluster, inputs = described.cluster, set(map(described.full_name, described.topology.inputs))
    behind = (
        end - cluster.committed.get(tp, cluster.begins.get(tp, 0))
        for tp, end in cluster.ends.items()
        if tp[0] in inputs
    )
    return max(0, *behind, 0)
