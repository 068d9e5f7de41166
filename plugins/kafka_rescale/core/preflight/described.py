"""The target of an expansion and the described cluster: all names and counts follow from these two."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from kafka_rescale.core.application.generation_names import GenerationNames, blue_names, green_names
from kafka_rescale.core.application.streams import Application, Mode, keyed_inputs
from kafka_rescale.core.application.topics import Input, InputPolicy
from kafka_rescale.core.cluster import ClusterDescription, TopicDescription
from kafka_rescale.core.control.journal import Journal
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.core.plan.planning import build_plan, green_of
from kafka_rescale.core.preflight.grown_inputs import Growth, Reach, growths
from kafka_rescale.core.topology.topology import SubTopology, Topology


@dataclass(frozen=True)
class Target:
    """The target of an expansion: it tells which topics and groups have to be described.

    :param target: number of partitions wanted.
    :param control: the control state.
    """

    application: Application
    topology: Topology
    target: int
    control: ControlState

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
        """Whether the running generation's own topics grow."""
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
        """The journal, if it is about the generation to build: then green's topics are ours."""
        journal = self.control.journal
        return journal if journal is not None and journal.plan.green == self.green else None

    @property
    def names(self) -> GenerationNames:
        """The names of the running generation's internal topics."""
        return blue_names(self.application, self.blue)

    def changelog(self, store: str) -> str:
        """Return the full name of the running generation's changelog."""
        return self.names.changelog(store)

    @property
    def renamed(self) -> Mapping[str, str]:
        """By input, the topic that the running generation reads instead, if the input was repartitioned."""
        return self.control.generations.inputs if self.control.generations else {}

    def full_name(self, topic: str) -> str:
        """Return a topic's name on the cluster: with the application id, or the successor of an input."""
        if topic in self.topology.repartitions:
            return self.names.repartition(topic)
        return self.renamed.get(topic, topic)

    def keyed_inputs(self) -> list[Input]:
        """Return the inputs whose keys decide where state is."""
        return keyed_inputs(self.application, self.topology)

    def stateful_subtopologies(self) -> list[SubTopology]:
        """Return the sub-topologies that keep state."""
        return [s for s in self.topology.subtopologies if s.is_stateful]

    @property
    def green_topics(self) -> list[str]:
        """Internal topics that the generation to build gets; none in place."""
        return [] if self.is_in_place else green_names(self.application, self.green).all_of(self.topology)


@dataclass(frozen=True)
class Described(Target):
    """A target and the described cluster: counts and plan follow from them.

    :param cluster: the running generation's topics and group; it may include existing topics of the next one.
    """

    cluster: ClusterDescription

    def topic(self, name: str) -> TopicDescription | None:
        """Return the description of a topic, by its name in the topology."""
        return self.cluster.topics.get(self.full_name(name))

    @cached_property
    def actual_counts(self) -> dict[str, int]:
        """Present partition count per existing source topic, by its name in the topology."""
        sources = dict.fromkeys(t for s in self.topology.subtopologies for t in s.sources)
        return {t: found.partitions for t in sources if (found := self.topic(t)) is not None}

    @cached_property
    def growths(self) -> dict[str, Growth]:
        """Each input that was grown by hand, and what shows it."""
        changelogs = {s: self.cluster.topics.get(self.changelog(s)) for s in self.topology.stores}
        return growths(
            self.topology,
            self.actual_counts,
            {store: found.partitions for store, found in changelogs.items() if found is not None},
            self.application.enforced_counts(self.target, self.actual_counts),
            {topic: self._reach(self.full_name(topic)) for topic in self.topology.inputs},
            following=self._following,
        )

    @cached_property
    def grown(self) -> dict[str, int]:
        """The count that the running generation knows of each input that was grown by hand."""
        return {topic: growth.known for topic, growth in self.growths.items()}

    @property
    def _following(self) -> frozenset[str]:
        """Repartition topics whose counts are known to follow from their sources, by the file or an expansion."""
        generations = self.control.generations
        if generations is not None and generations.partitions:
            # The expansion has created them with the derived counts, and the generation has started on them.
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
        enforced = self.application.enforced_counts(self.target, self.counts)
        return {t: self.counts[t] for t in enforced if t in self.counts}

    def successors(self) -> dict[str, str]:
        """Return the topics that an expansion to the target would create for inputs, by input."""
        return {
            i.topic: i.successor_topic(self.target)
            for i in self.application.inputs
            if i.policy is InputPolicy.REPARTITIONED
            and (self.actual_counts.get(i.topic) != self.target or i.topic in self.grown)
        }

    @cached_property
    def plan(self) -> Plan:
        """The plan for the target; every topic of the application must exist.

        :raises KeyError: a topic does not exist.
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
            codecs={topic: habit.codec for topic, habit in self.cluster.habits.items()},
            running_with=self.control.generations.partitions if self.control.generations else 0,
        )
