"""Everything that preflight looks at. It is read beforehand, so that the checks are pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kafka_rescale.core.cluster import GroupDescription
from kafka_rescale.core.control.journal import PartitionOffsets
from kafka_rescale.core.formats.samples import Sample
from kafka_rescale.core.plan.chain import ChainRun
from kafka_rescale.core.plan.shared_inputs import Declared, Unusable, share_a_cluster
from kafka_rescale.core.preflight.deployment import Deployment
from kafka_rescale.core.preflight.described import Described
from kafka_rescale.core.preflight.expected_state import ExpectedState


def counted(number: int, thing: str) -> str:
    """Return ``1 member`` or ``2 members``."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


@dataclass(frozen=True)
class Situation(Described):
    """A target, its cluster, and everything that was read there.

    :param samples: records of the topics whose keys decide partitions.
    :param visible: names of the cluster's topics, as far as the connection may see them.
    :param green_records: number of records in each topic whose name green will need.
    :param emptied: those of these topics that have no record any more, but had some.
    :param bridged_ends: ends of the topics that bridges of the last expansion read, open transactions included.
    :param bridged_ids: ids of these topics.
    :param green_group: the group of the generation to build.
    :param compression: ``compression.type`` of the connection, which replaces the topics' codecs; empty if it is
        not set.
    :param expected: whether the application must run, or must be stopped, when the expansion begins.
    :param now_ms: wall clock, in ms since the epoch.
    :param deployment: the answers of the user's own commands.
    :param neighbours: other applications whose files name an input, an output, a successor or a later generation
        of this one.
    :param unusable: other files that name a topic of this application as an input, and that can't be used.
    :param chain_run: the chain's run that expands the readers of this application before it; None if it is
        expanded by itself.
    """

    samples: tuple[Sample, ...]
    visible: frozenset[str]
    green_records: Mapping[str, int]
    emptied: frozenset[str]
    bridged_ends: PartitionOffsets
    bridged_ids: Mapping[str, str]
    green_group: GroupDescription
    compression: str
    expected: ExpectedState
    now_ms: int
    deployment: Deployment
    neighbours: tuple[Declared, ...]
    unusable: tuple[Unusable, ...]
    chain_run: ChainRun | None

    @property
    def beside(self) -> list[Declared]:
        """The neighbours whose topics are known to be on this cluster."""
        return [each for each in self.neighbours if share_a_cluster(self.application, each[0])]

    def samples_of(self, topic: str) -> list[Sample]:
        """Return the samples of a topic, by its full name."""
        return [s for s in self.samples if s.topic == topic]
