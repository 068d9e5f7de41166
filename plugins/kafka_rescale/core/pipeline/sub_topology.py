"""A built pipeline's sub-topologies, and the processors of their tasks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.pipeline.nodes import Kind, Node
from kafka_rescale.core.pipeline.processor import TaskContext, forward_to
from kafka_rescale.core.pipeline.stateless import Source
from kafka_rescale.core.pipeline.task import Emitted, Record, StoreDefinition, StoreView

_STREAM_TIME = ""


@dataclass(frozen=True)
class BuiltSubTopology:
    """One sub-topology of a built pipeline (:class:`~kafka_rescale.core.pipeline.task.SubTopology`)."""

    id: int
    nodes: tuple[Node, ...]
    stores: tuple[StoreDefinition, ...]

    @property
    def sources(self) -> tuple[str, ...]:
        """Topics read: inputs, and repartition topics without the application id."""
        return self._topics(Kind.SOURCE)

    @property
    def sinks(self) -> tuple[str, ...]:
        """Topics written: outputs, and repartition topics without the application id."""
        return self._topics(Kind.SINK)

    def processor(self, stores: Mapping[str, StoreView], partition: int) -> Task:
        """Return what the task of this partition does.

        :param stores: by name, all of ``self.stores``.
        :raises InvalidInput: one is missing.
        """
        if missing := [store.name for store in self.stores if store.name not in stores]:
            raise InvalidInput(
                f"task {self.id}_{partition}",
                found=f"no {', '.join(missing)}",
                expected="all stores of its sub-topology",
                remedy="Restore them from their changelogs first.",
            )
        return Task(self, TaskContext(stores, partition))

    def _topics(self, kind: Kind) -> tuple[str, ...]:
        return tuple(dict.fromkeys(t for node in self.nodes if node.kind is kind for t in node.topics))


class Task:
    """The processors of one task (:class:`~kafka_rescale.core.pipeline.task.TaskProcessor`)."""

    def __init__(self, sub_topology: BuiltSubTopology, context: TaskContext) -> None:
        self._context = context
        self._id = f"{sub_topology.id}_{context.partition}"
        processors = {node.name: node.supplier(context) for node in sub_topology.nodes}
        for name, processor in processors.items():
            behind = [processors[n.name] for n in sub_topology.nodes if name in n.predecessors]
            processor.forward = forward_to(behind)
        self._sources = {
            topic: processor
            for node in sub_topology.nodes
            for topic in node.topics
            if isinstance(processor := processors[node.name], Source)
        }

    def process(self, record: Record) -> list[Emitted]:
        """Process one record to its end and return what it makes the sinks write, in order.

        :raises InvalidInput: its bytes aren't of the declared serde, or its timestamp is none.
        """
        source = self._sources.get(record.topic)
        if source is None or record.timestamp_ms < 0:
            raise self._unusable(record)
        key, value = source.read(record)
        context = self._context
        context.stream_time.value = max(context.stream_time.value, record.timestamp_ms)
        source.process(key, value, record.timestamp_ms, record.headers)
        emitted, context.emitted = context.emitted, []
        return emitted

    def process_batch(self, records: Sequence[Record]) -> list[Emitted]:
        """Return what ``process`` returns for each of them, in order; vectorised functions see many at once."""
        return [emitted for record in records for emitted in self.process(record)]

    def stream_time(self) -> int:
        """Return the highest timestamp in ms of any record processed so far, -1 before the first."""
        return self._context.stream_time.value

    def dropped_records(self) -> int:
        """Return how many records it has passed over: late ones, and those without the key that they need."""
        return self._context.dropped

    def checkpoint(self) -> str:
        """Return what has to survive beside the stores: stream times and counters, as JSON."""
        times = {_STREAM_TIME: self._context.stream_time, **self._context.marks}
        return json.dumps({name: mark.value for name, mark in times.items()}, separators=(",", ":"))

    def restore(self, checkpoint: str) -> None:
        """Go on from what ``checkpoint`` returned; an empty text is the beginning.

        What this pipeline doesn't know is passed over, and what the text lacks begins anew, so that an operation
        can be added to a pipeline.

        :raises InvalidInput: the text isn't one that ``checkpoint`` returned.
        """
        try:
            found = json.loads(checkpoint) if checkpoint else {}
            values = {str(name): int(value) for name, value in found.items()}
        except (ValueError, TypeError, AttributeError):
            raise InvalidInput(
                f"checkpoint of task {self._id}",
                found=repr(checkpoint[:60]),
                expected="what the task's checkpoint() returned",
                remedy="Another program commits the offsets of this group; give the pipeline one of its own.",
            ) from None
        for name, mark in {_STREAM_TIME: self._context.stream_time, **self._context.marks}.items():
            mark.value = values.get(name, mark.value)

    def _unusable(self, record: Record) -> InvalidInput:
        return InvalidInput(
            f"record {record.topic}-{record.partition} at offset {record.offset} for task {self._id}",
            found=f"timestamp {record.timestamp_ms}" if record.topic in self._sources else "a foreign topic",
            expected=f"a timestamp since the epoch, of one of {', '.join(self._sources)}",
            remedy="Let producers set timestamps, or the topic (message.timestamp.type=LogAppendTime).",
        )
