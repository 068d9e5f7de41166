"""Do the internal topics of the running generation have the counts that its inputs ask for (KIP-878)?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from kafka_rescale.core.control.journal import Journal
from kafka_rescale.core.preflight.counts import counts_after
from kafka_rescale.core.preflight.situation import Situation
from kafka_rescale.core.preflight.topics import missing_topics
from kafka_rescale.core.topology.partition_counts import partition_counts


@dataclass(frozen=True)
class Parallelism:
    """Partitions, hence tasks, of one sub-topology.

    :param current: those that the running generation has.
    :param expected: those that it has once everything follows from its inputs.
    """

    subtopology: int
    current: int
    expected: int


@dataclass(frozen=True)
class Mismatch:
    """An internal topic whose count is not what follows from the inputs."""

    topic: str
    found: int
    expected: int

    def __str__(self) -> str:
        return f"{self.topic} with {self.found} partitions instead of {self.expected}"


@dataclass(frozen=True)
class Observed:
    """What the watch of an application looks at.

    :param running: ``application.id`` of the running generation.
    :param grown: ``(count that it knows, present count)`` per input topic that has grown under it.
    :param too_few: internal topics that have to grow.
    :param too_many: internal topics that would have to shrink.
    :param missing: a topic that doesn't exist, in a sentence; then nothing can be compared.
    :param lag: the largest of all input partitions, in offsets.
    :param partitions: of all topics concerned, together.
    :param in_progress: the expansion in progress, if there is one.
    :param inputs: present partitions per input, by its name on the cluster.
    :param is_down: whether the running generation has processed something, and has no member now.
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

    @property
    def target(self) -> int:
        """The partitions to come to: those of the input that has grown furthest."""
        return max((present for _, present in self.grown.values()), default=0)

    @property
    def shrinking(self) -> tuple[Parallelism, ...]:
        """Sub-topologies that the target would leave with fewer tasks."""
        return tuple(p for p in self.parallelism if p.expected < p.current) if self.target else ()


def observe(situation: Situation) -> Observed:
    """Return what there is, from the description of the running generation alone.

    :param situation: topics that the expansion in progress makes may be among those of its cluster.
    """
    journal = situation.control.journal
    observed = Observed(
        running=situation.blue,
        grown={},
        lag=_lag(situation),
        partitions=sum(topic.partitions for topic in situation.cluster.topics.values()),
        in_progress=journal if journal is not None and journal.in_progress else None,
        is_down=bool(situation.cluster.committed) and not situation.cluster.group.is_live,
    )
    if missing := next(missing_topics(situation), None):
        return replace(observed, missing=str(missing))
    grown = {
        situation.full_name(topic): (known, situation.actual_counts[topic])
        for topic, known in situation.grown.items()
    }
    mismatches = tuple(_mismatches(situation))
    observed = replace(
        observed,
        grown=grown,
        inputs={situation.full_name(t): situation.actual_counts[t] for t in situation.topology.inputs},
        too_few=tuple(m for m in mismatches if m.found < m.expected),
        too_many=tuple(m for m in mismatches if m.found > m.expected),
    )
    return replace(observed, parallelism=_parallelism(situation, observed.target))


def _derived(situation: Situation) -> dict[str, int]:
    """Return the counts that Kafka Streams derives from the inputs as they are, as the topology names them."""
    repartitions = situation.topology.repartitions
    external = {t: n for t, n in situation.actual_counts.items() if t not in repartitions}
    return {**external, **partition_counts(situation.topology, external, situation.enforced_now)}


def _mismatches(situation: Situation) -> Iterator[Mismatch]:
    derived = _derived(situation)
    for topic in sorted(situation.topology.repartitions):
        found = situation.actual_counts[topic]
        if found != derived[topic]:
            yield Mismatch(situation.full_name(topic), found, derived[topic])
    for subtopology in situation.topology.subtopologies:
        tasks = max(derived[t] for t in subtopology.sources)
        for store in subtopology.stores:
            name = situation.changelog(store)
            found = situation.cluster.topics[name].partitions
            if found != tasks:
                yield Mismatch(name, found, tasks)


def _parallelism(situation: Situation, target: int) -> tuple[Parallelism, ...]:
    """An expansion to the target also grows the inputs that have not been grown by hand."""
    after = counts_after(replace(situation, target=target)) if target else _derived(situation)
    now = situation.counts
    return tuple(
        Parallelism(s.id, max(now[t] for t in s.sources), max(after[t] for t in s.sources))
        for s in situation.topology.subtopologies
    )


def _lag(situation: Situation) -> int:
    cluster, inputs = situation.cluster, set(map(situation.full_name, situation.topology.inputs))
    behind = (
        end - cluster.committed.get(tp, cluster.begins.get(tp, 0))
        for tp, end in cluster.ends.items()
        if tp[0] in inputs
    )
    return max(0, *behind, 0)
