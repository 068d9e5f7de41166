"""Everything that preflight looks at, gathered beforehand, so that its checks are pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from kafka_rescale.core.application.generation_names import GenerationNames, blue_names
from kafka_rescale.core.application.streams import Application, Mode, keyed_inputs
from kafka_rescale.core.application.topics import Input, InputPolicy
from kafka_rescale.core.cluster import ClusterDescription, GroupDescription, TopicDescription
from kafka_rescale.core.control.journal import Journal, PartitionOffsets
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.formats.samples import Sample
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.core.plan.planning import build_plan, green_of
from kafka_rescale.core.preflight.deployment import NOT_ASKED, Deployment
from kafka_rescale.core.preflight.expected_state import ExpectedState
from kafka_rescale.core.preflight.grown_inputs import Reach, grown_by_hand
from kafka_rescale.core.topology.topology import SubTopology, Topology


def counted(number: int, thing: str) -> str:
    """Return ``1 member`` or ``2 members``."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


@dataclass(frozen=True)
class Situation:
    """An application file, its cluster, and what is asked for.

    :param target: partitions wanted.
    :param control: what the control topic knows.
    :param visible: names of the cluster's topics, as far as the connection may see them.
    :param green_records: records per topic that exists under a name which green will need.
    :param bridged_ends: ends of the topics that bridges of the last expansion read, open transactions included.
    :param codecs: with which the records of topics are compressed, by full name; others are not.
    :param compression: ``compression.type`` of the connection, which replaces them; empty for none.
    :param expected: whether the application has to run or to be stopped when the expansion begins.
    """

    application: Application
    topology: Topology
    target: int
    cluster: ClusterDescription
    control: ControlState = field(default_factory=ControlState)
    samples: tuple[Sample, ...] = ()
    codecs: Mapping[str, str] = field(default_factory=dict)
    compression: str = ""
    visible: frozenset[str] = frozenset()
    green_records: Mapping[str, int] = field(default_factory=dict)
    bridged_ends: PartitionOffsets = field(default_factory=dict)
    green_group: GroupDescription | None = None
    expected: ExpectedState = ExpectedState.EITHER
    now_ms: int = 0
    deployment: Deployment = NOT_ASKED

    @property
    def blue(self) -> str:
        """``application.id`` of the running generation."""
        generations = self.control.generations
        return generations.running if generations else self.application.application_id

    @property
    def generation(self) -> int:
        """Number of the generation to build."""
        return (self.control.generations.generation if self.control.generations else 1) + 1

    @property
    def green(self) -> str:
        """``application.id`` of the generation to build."""
        return green_of(self.application, self.blue, self.generation)

    @property
    def is_in_place(self) -> bool:
        """Whether the running generation's own topics are to grow."""
        return self.application.mode is Mode.IN_PLACE

    @property
    def grown_from(self) -> Mapping[str, tuple[int, ...]]:
        """Counts that internal topics had before they were grown in place."""
        return self.control.generations.grown_from if self.control.generations else {}

    @property
    def grown_inputs(self) -> Mapping[str, tuple[int, ...]]:
        """Counts that inputs had before expansions grew them, by their names on the cluster."""
        return self.control.generations.grown_inputs if self.control.generations else {}

    @property
    def own_journal(self) -> Journal | None:
        """The journal, if it is the one of the generation to build: then green's topics are ours."""
        journal = self.control.journal
        return journal if journal is not None and journal.plan.green == self.green else None

    @property
    def names(self) -> GenerationNames:
        """What the running generation's internal topics are called."""
        return blue_names(self.application, self.blue)

    def changelog(self, store: str) -> str:
        """Return the full name of the running generation's changelog."""
        return self.names.changelog(store)

    @property
    def renamed(self) -> Mapping[str, str]:
        """What the running generation reads instead of an input that was repartitioned."""
        return self.control.generations.inputs if self.control.generations else {}

    def full_name(self, topic: str) -> str:
        """Return a topic's name on the cluster: with the application id, or what has followed an input."""
        if topic in self.topology.repartitions:
            return self.names.repartition(topic)
        return self.renamed.get(topic, topic)

    def topic(self, name: str) -> TopicDescription | None:
        """Return the description of a topic as the topology names it."""
        return self.cluster.topics.get(self.full_name(name))

    @cached_property
    def actual_counts(self) -> dict[str, int]:
        """Present partition count per source topic that exists, as the topology names it."""
        sources = dict.fromkeys(t for s in self.topology.subtopologies for t in s.sources)
        return {t: found.partitions for t in sources if (found := self.topic(t)) is not None}

    @cached_property
    def grown(self) -> dict[str, int]:
        """The count that the running generation knows of each input that was grown by hand."""
        changelogs = {s: self.cluster.topics.get(self.changelog(s)) for s in self.topology.stores}
        return grown_by_hand(
            self.topology,
            self.actual_counts,
            {store: found.partitions for store, found in changelogs.items() if found is not None},
            self.application.enforced_counts(self.target),
            {topic: self._reach(self.full_name(topic)) for topic in self.topology.inputs},
            following=self._following,
        )

    @property
    def _following(self) -> frozenset[str]:
        """Repartition topics that are known to follow from their sources: the file, or an expansion, tells it."""
        generations = self.control.generations
        if generations is not None and generations.partitions:
            # The expansion has made them by the derived counts, and the generation has started on them.
            return frozenset(self.topology.repartitions)
        return self.application.following_repartitions

    def _reach(self, name: str) -> Reach:
        written = [
            p for (topic, p), end in self.cluster.ends.items() if topic == name and end > self._begin(name, p)
        ]
        read = [partition for topic, partition in self.cluster.committed if topic == name]
        recorded = self.control.autoscaling.inputs.get(name, 0) if self.control.autoscaling else 0
        return Reach(written=max(written, default=-1) + 1, read=max(read, default=-1) + 1, recorded=recorded)

    def _begin(self, name: str, partition: int) -> int:
        return self.cluster.begins.get((name, partition), 0)

    @property
    def counts(self) -> dict[str, int]:
        """Partition count per source topic, as the running generation knows it."""
        return {**self.actual_counts, **self.grown}

    @property
    def external_counts(self) -> dict[str, int]:
        """Present partition count per input topic that exists."""
        return {t: n for t, n in self.counts.items() if t not in self.topology.repartitions}

    @property
    def enforced_now(self) -> dict[str, int]:
        """Present counts of the repartition topics that the program sets itself."""
        enforced = self.application.enforced_counts(self.target)
        return {t: self.counts[t] for t in enforced if t in self.counts}

    def samples_of(self, topic: str) -> list[Sample]:
        """Return what was sampled of a topic, by its full name."""
        return [s for s in self.samples if s.topic == topic]

    def keyed_inputs(self) -> list[Input]:
        """Return the inputs whose keys decide where state is."""
        return keyed_inputs(self.application, self.topology)

    def successors(self) -> dict[str, str]:
        """Return the topic that an expansion to the target would create, per input that gets a new one."""
        return {
            i.topic: i.successor_topic(self.target)
            for i in self.application.inputs
            if i.policy is InputPolicy.REPARTITIONED
            and (self.actual_counts.get(i.topic) != self.target or i.topic in self.grown)
        }

    def stateful_subtopologies(self) -> list[SubTopology]:
        """Return the sub-topologies that keep state."""
        return [s for s in self.topology.subtopologies if s.is_stateful]

    @cached_property
    def plan(self) -> Plan:
        """The plan for the target; every topic of the application must exist.

        :raises KeyError: one does not.
        """
        return build_plan(
            self.application,
            self.topology,
            blue=self.blue,
            generation=self.generation,
            current={name: t.partitions for name, t in self.cluster.topics.items()},
            target=self.target,
            renamed=self.renamed,
            earlier=self.grown,
            grown_from=self.grown_from,
            codecs=self.codecs,
        )
