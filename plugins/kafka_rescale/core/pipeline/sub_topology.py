"""The sub-topologies of a built pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.pipeline.built_task import BuiltTask
from kafka_rescale.core.pipeline.nodes import Kind, Node
from kafka_rescale.core.pipeline.processor import TaskContext
from kafka_rescale.core.pipeline.stores.record_cache import RecordCache
from kafka_rescale.core.pipeline.task import StoreDefinition, StoreView


@dataclass(frozen=True)
class BuiltSubTopology:
    """One sub-topology of a built pipeline (:class:`~kafka_rescale.core.pipeline.task.SubTopology`)."""

    id: int
    nodes: tuple[Node, ...]
    stores: tuple[StoreDefinition, ...]

    @property
    def sources(self) -> tuple[str, ...]:
        """The topics that this sub-topology reads: inputs, and repartition topics without the application id."""
        return self._topics(Kind.SOURCE)

    @property
    def sinks(self) -> tuple[str, ...]:
        """The topics that this sub-topology writes: outputs, and repartition topics without the application id."""
        return self._topics(Kind.SINK)

    def processor(
        self, stores: Mapping[str, StoreView], partition: int, cache: RecordCache | None = None
    ) -> BuiltTask:
        """Return the processor of the task of this partition.

        :param stores: all stores of ``self.stores``, by name.
        :param cache: the cache in which tables keep updates back until the runner flushes the task. Without a
            cache, each update is written at once.
        :raises InvalidInput: a store is missing.
        """
        if missing := [store.name for store in self.stores if store.name not in stores]:
            raise InvalidInput(
                f"task {self.id}_{partition}",
                found=f"no store {', '.join(missing)}",
                expected="all stores of its sub-topology",
                remedy="Restore them from their changelogs first.",
            )
        context = TaskContext({store.name: stores[store.name] for store in self.stores}, partition, cache)
        return BuiltTask(f"{self.id}_{partition}", self.nodes, context)

    def _topics(self, kind: Kind) -> tuple[str, ...]:
        return tuple(dict.fromkeys(t for node in self.nodes if node.kind is kind for t in node.topics))
