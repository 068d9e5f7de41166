"""The metadata that Kafka Streams commits beside its offsets, made for the partitions of another count.

The metadata of an offset has the partition time. For each store of a windowed aggregate with
``EmitStrategy.onWindowClose`` it also has the time up to which windows have been emitted
(``TopicPartitionMetadata`` and ``ProcessorMetadata`` of Kafka Streams). An instance without this metadata emits
every closed window in its store once more. So the offset of each green partition gets the metadata of the blue
partitions whose keys it gets. If these are several, it gets the earliest times: windows may then be emitted again,
but no window is left out. Kafka Streams looks the times up by the names of stores. So they get the names that the
stores have in green.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kafka_rescale.core.application.topics import InputPolicy
from kafka_rescale.core.partitioning.linear_hashing import coarser
from kafka_rescale.core.plan.plan import Plan

OffsetTexts = Mapping[str, Mapping[int, str]]
"""The metadata of committed offsets: topic → partition → text."""

_TIME_ONLY, _WITH_MARKS = 1, 2
_HEAD, _COUNT, _TIME = struct.Struct(">bq"), struct.Struct(">i"), struct.Struct(">q")
_BY_REMAINDER = ("murmur2", "crc32")
_STATIC, _LINEAR_HASHING = "static:", "linear-hashing:"


@dataclass(frozen=True)
class OffsetMetadata:
    """The metadata of one offset.

    :param partition_time_ms: -1 if it is not known.
    :param marks: times up to which windows have been emitted, by the name of the store, in ms.
    """

    partition_time_ms: int = -1
    marks: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def decode(cls, text: str) -> OffsetMetadata | None:
        """Return the metadata in a text; None if Kafka Streams has not written it."""
        try:
            data = base64.b64decode(text, validate=True)
            version, time_ms = _HEAD.unpack_from(data)
            if version not in (_TIME_ONLY, _WITH_MARKS):
                return None
            return cls(time_ms, dict(_marks_of(data)) if version == _WITH_MARKS else {})
        except (ValueError, struct.error):
            return None

    def renamed(self, stores: Mapping[str, str]) -> OffsetMetadata:
        """Return the metadata with other names of stores.

        :param stores: the other name by the present one. A store that is not among these keeps its name.
        """
        return replace(self, marks={stores.get(name, name): time_ms for name, time_ms in self.marks.items()})

    def encode(self) -> str:
        """Return the text, as Kafka Streams 3.3 and newer write it."""
        data = _HEAD.pack(_WITH_MARKS, self.partition_time_ms)
        if self.marks:
            data += _COUNT.pack(len(self.marks))
        for name, time_ms in sorted(self.marks.items()):
            encoded = name.encode()
            data += _COUNT.pack(len(encoded)) + encoded + _TIME.pack(time_ms)
        return base64.b64encode(data).decode()


def _marks_of(data: bytes) -> Iterator[tuple[str, int]]:
    at = _HEAD.size
    if at == len(data):
        return
    (count,) = _COUNT.unpack_from(data, at)
    at += _COUNT.size
    for _ in range(count):
        (size,) = _COUNT.unpack_from(data, at)
        at += _COUNT.size + size
        (time_ms,) = _TIME.unpack_from(data, at)
        yield data[at - size : at].decode(), time_ms
        at += _TIME.size


def start_metadata(plan: Plan, of_blue: OffsetTexts) -> dict[str, dict[int, str]]:
    """Return the metadata of green's start offsets; a partition without any is left out.

    :param of_blue: metadata of blue's committed offsets.
    """
    found: dict[str, dict[int, str]] = {}
    renamed = plan.renamed_stores
    for i in plan.inputs:
        keyed = i.policy in (InputPolicy.PAUSED, InputPolicy.REPARTITIONED)
        # An input of another policy moves no records: those in a new partition were in no partition before.
        partitioner = i.partitioner if keyed else _STATIC
        texts = of_blue.get(i.topic, {})
        found[i.green_topic] = _carried(texts, renamed, partitioner, i.earlier or i.current, i.target)
    for m in plan.repartitions:
        texts = of_blue.get(m.source, {})
        found[m.target] = _carried(texts, renamed, m.partitioner, m.source_partitions, m.target_partitions)
    return {topic: texts for topic, texts in found.items() if texts}


def _carried(
    texts: Mapping[int, str], renamed: Mapping[str, str], partitioner: str, current: int, target: int
) -> dict[int, str]:
    of = {p: parents(partitioner, current, target, p) for p in range(target)}
    # Often all partitions have the same parents. Within the pause, thousands of partitions are not compared with
    # thousands of others.
    earliest = {its: _with_names(_earliest([texts.get(q, "") for q in its]), renamed) for its in set(of.values())}
    return {p: text for p, its in of.items() if (text := earliest[its])}


def _with_names(text: str, renamed: Mapping[str, str]) -> str:
    """Return a text with green's names of stores. A text without them, or of another program, stays as it is."""
    known = OffsetMetadata.decode(text) if renamed else None
    return known.renamed(renamed).encode() if known is not None and known.marks else text


def parents(partitioner: str, current: int, target: int, partition: int) -> range:
    """Return the partitions whose keys a partition of another count may get."""
    if partitioner.startswith(_STATIC) or current == target:
        return range(partition, min(partition + 1, current))
    if partitioner in _BY_REMAINDER and target % current == 0:
        return range(partition % current, partition % current + 1)
    if partitioner in _BY_REMAINDER and current % target == 0:
        return range(partition, current, target)
    if partitioner.startswith(_LINEAR_HASHING):
        initial = int(partitioner.removeprefix(_LINEAR_HASHING))
        if initial <= current < target:
            parent = coarser(partition, current, initial)
            return range(parent, parent + 1)
    return range(current)


def _earliest(texts: Sequence[str]) -> str:
    """Return the earliest times; an empty text if a text can't be read, because its progress is unknown."""
    if len(set(texts)) <= 1:
        return texts[0] if texts else ""
    known = [decoded for text in texts if (decoded := OffsetMetadata.decode(text)) is not None]
    if len(known) < len(texts):
        return ""
    names = set.intersection(*(set(each.marks) for each in known))
    marks = {name: min(each.marks[name] for each in known) for name in names}
    return OffsetMetadata(min(each.partition_time_ms for each in known), marks).encode()
