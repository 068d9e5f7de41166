"""The connected processors of one task, and the values outside its stores that have to survive a restart."""

from __future__ import annotations

import json
from collections.abc import Sequence

from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.pipeline.failure import note, note_flush
from kafka_rescale.core.pipeline.nodes import Node
from kafka_rescale.core.pipeline.processor import Mark, Processor, TaskContext, forward_to
from kafka_rescale.core.pipeline.stateless import Columnar, Source
from kafka_rescale.core.pipeline.task import CHECKPOINT_CHARACTERS, Emitted, Record
from kafka_rescale.core.pipeline.vectorized import Batch, Vectorized

_STREAM_TIME = ""
_LONGEST_MARK = len(str(-(2**63))) + len('\\"\\":,')


class BuiltTask:
    """The processor of one task (:class:`~kafka_rescale.core.pipeline.task.TaskProcessor`).

    :param id: ``<sub-topology>_<partition>``.
    :raises InvalidInput: the values that have to survive a restart don't fit into the metadata of offsets.
    """

    def __init__(self, id: str, nodes: Sequence[Node], context: TaskContext) -> None:
        self._id, self._context = id, context
        processors = {node.name: node.supplier(context) for node in nodes}
        behind = {name: [processors[n.name] for n in nodes if name in n.predecessors] for name in processors}
        for name, processor in processors.items():
            processor.forward = forward_to(behind[name])
        self._sources: dict[str, Source] = {}
        self._chains: dict[str, list[Columnar]] = {}
        successors = {processor: behind[name] for name, processor in processors.items()}
        for node in nodes:
            source = processors[node.name]
            if isinstance(source, Source):
                chain = _vectorized_chain(source, successors)
                self._sources |= dict.fromkeys(node.topics, source)
                self._chains |= dict.fromkeys(node.topics, chain) if chain else {}
        self._check_checkpoint()

    def process(self, record: Record) -> list[Emitted]:
        """Process one record completely and return the records for the sinks, in order.

        :raises InvalidInput: the declared serde can't read the record's bytes, the record has no timestamp, or the
            task does not read its topic.
        :raises Exception: a function of the pipeline has raised this error. It carries a note about the record.
        """
        try:
            source = self._source(record)
            key, value = source.read(record)
            self._advance(record)
            source.process(key, value, record.timestamp_ms, record.headers)
        except Exception as error:
            note(error, self._id, [record])
            raise
        return self._take()

    def flush(self) -> list[Emitted]:
        """Write the updates that the record cache has kept back, and return the records for the sinks, in order.

        :raises Exception: a function of the pipeline has raised this error. It carries a note about the cache.
        """
        if self._context.cache is not None:
            try:
                self._context.cache.flush(iter(self._context.views))
            except Exception as error:
                note_flush(error, self._id)
                raise
        return self._take()

    def process_batch(self, records: Sequence[Record]) -> list[Emitted]:
        """Process records and return the records for the sinks, as a call of ``process`` per record would.

        Vectorised functions see many records at once.
        """
        if not self._chains:
            return [emitted for record in records for emitted in self.process(record)]
        try:
            prepared = self._through_chains(records)
        except Exception as error:
            note(error, self._id, self._culprit(records))
            raise
        emitted: list[Emitted] = []
        for place, record in enumerate(records):
            chain = self._chains.get(record.topic)
            if chain is None:
                emitted += self.process(record)
                continue
            self._advance(record)
            if place in prepared:
                batch, row = prepared[place]
                key, value = batch.keys[row], batch.values[row]
                try:
                    chain[-1].forward(key, value, batch.timestamps[row], batch.headers[row])
                except Exception as error:
                    note(error, self._id, [record])
                    raise
                emitted += self._take()
        return emitted

    def stream_time(self) -> int:
        """Return the highest timestamp in ms of the records processed so far, or -1 before the first record."""
        return self._context.stream_time.value

    def dropped_records(self) -> int:
        """Return how many records the task has dropped: late records, and records that lack a key they need."""
        return self._context.dropped

    def checkpoint(self) -> str:
        """Return as JSON the stream times and counters. They have to survive a restart, as the stores do."""
        return json.dumps({name: mark.value for name, mark in self._marks().items()}, separators=(",", ":"))

    def restore(self, checkpoint: str) -> None:
        """Continue from the text that ``checkpoint`` returned. An empty text stands for a task that never ran.

        The task ignores names that this pipeline doesn't know. Marks that the text lacks keep their initial
        values. Therefore an operation can be added to a pipeline that has run already.

        Earlier checkpoints had marks under other names, which contain generated numbers of nodes. Another program
        gives the same numbers to other operations. Therefore the former names count only if the text has all of
        them, in their order, and no other name.

        :raises InvalidInput: the text is not one that ``checkpoint`` returns.
        """
        try:
            found = json.loads(checkpoint) if checkpoint else {}
            values = {str(name): int(value) for name, value in found.items()}
        except (ValueError, TypeError, AttributeError):
            raise InvalidInput(
                f"checkpoint of task {self._id}",
                found=repr(checkpoint[:60]),
                expected="the text that the task's checkpoint() returned",
                remedy="Another program commits the offsets of this group. Give the pipeline its own group.",
            ) from None
        marks = self._marks()
        if list(values) == [self._context.former.get(name, name) for name in marks]:
            values = dict(zip(marks, values.values(), strict=True))
        for name, mark in marks.items():
            mark.value = values.get(name, mark.value)

    def _marks(self) -> dict[str, Mark]:
        return {_STREAM_TIME: self._context.stream_time, **self._context.marks}

    def _through_chains(self, records: Sequence[Record]) -> dict[int, tuple[Batch, int]]:
        """Return the records that come out of the vectorised operations, by their places in the input."""
        batches: dict[str, Batch] = {}
        for place, record in enumerate(records):
            if record.topic in self._chains:
                key, value = self._source(record).read(record)
                batch = batches.setdefault(record.topic, Batch())
                batch.add(place, key, value, record.timestamp_ms, record.headers)
        for topic, batch in batches.items():
            for operation in self._chains[topic]:
                operation.apply(batch)
        return {place: (batch, row) for batch in batches.values() for row, place in enumerate(batch.places)}

    def _culprit(self, records: Sequence[Record]) -> Sequence[Record]:
        """Return the first record that makes the vectorised functions fail when they get this record alone.

        If no single record makes them fail, return all records that the functions got.
        """
        for record in records:
            try:
                self._through_chains([record])
            except Exception:
                return [record]
        return [record for record in records if record.topic in self._chains]

    def _source(self, record: Record) -> Source:
        source = self._sources.get(record.topic)
        if source is None or record.timestamp_ms < 0:
            raise InvalidInput(
                f"record {record.topic}-{record.partition} at offset {record.offset} for task {self._id}",
                found=f"timestamp {record.timestamp_ms}" if source else "a topic that the task does not read",
                expected=f"a timestamp since the epoch, in one of the topics {', '.join(self._sources)}",
                remedy="Let producers set timestamps, or the brokers (message.timestamp.type=LogAppendTime).",
            )
        return source

    def _advance(self, record: Record) -> None:
        stream_time = self._context.stream_time
        stream_time.value = max(stream_time.value, record.timestamp_ms)
        if self._context.cache is not None:
            self._context.cache.enter(record.topic)

    def _take(self) -> list[Emitted]:
        emitted, self._context.emitted = self._context.emitted, []
        return emitted

    def _check_checkpoint(self) -> None:
        longest = sum(len(name) + _LONGEST_MARK for name in ("", *self._context.marks))
        if longest > CHECKPOINT_CHARACTERS:
            raise InvalidInput(
                f"task {self._id}",
                found=f"{len(self._context.marks)} times and counters, up to {longest} characters",
                expected=f"at most {CHECKPOINT_CHARACTERS} characters, which fit into the metadata of offsets",
                remedy="Give stores of windows and stream joins shorter names, or separate them by repartition().",
            )


def _vectorized_chain(source: Source, successors: dict[Processor, list[Processor]]) -> list[Columnar]:
    """Return the operations behind a source that process whole batches.

    The list ends with the last vectorised operation. Without a vectorised operation, the list is empty.
    """
    chain: list[Columnar] = []
    here: Processor = source
    while len(successors[here]) == 1 and isinstance(following := successors[here][0], Columnar):
        chain.append(following)
        here = following
    while chain and not isinstance(chain[-1].function, Vectorized):
        chain.pop()
    return chain
