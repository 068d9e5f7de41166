"""Checks after partition counts have changed: of joins whose keys may not meet, of backfills without an order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kafka_rescale.core.control.processors import PipelineProcessors
from kafka_rescale.core.errors import Refused
from kafka_rescale.core.pipeline.builder import Pipeline
from kafka_rescale.core.pipeline.task import SubTopology
from kafka_rescale.core.processing.growth import Declared


def require_copartitioned(
    pipeline: Pipeline, record: PipelineProcessors, counts: Mapping[str, int], declared: Declared
) -> None:
    """Refuse joins of topics whose keys were placed over different counts, because equal keys would not meet.

    Topics whose keys are placed by linear hashing may have grown at different times. Therefore this check compares
    their initial counts.

    :param counts: partitions of every source topic, by the pipeline's own names.
    :raises Refused: joined topics have different counts.
    """
    read = {topic: part for part in pipeline.sub_topologies() for topic in part.sources}

    def placed_over(topic: str) -> int:
        if topic in declared.static:
            return record.sub_topologies[read[topic].id].initial
        if topic not in declared.repartitions:
            return declared.linear.get(topic, counts[topic])
        # Tasks write the topic by linear hashing over this count, unless it has fewer partitions.
        return min(record.sub_topologies[read[topic].id].initial, counts[topic])

    pipeline.check_copartitioned({topic: placed_over(topic) for topic in read})


def require_order(
    live: PipelineProcessors, found: PipelineProcessors, parts: Iterable[SubTopology], declared: Declared
) -> None:
    """Refuse a backfill if keys have moved and the order in which to read their partitions is unknown.

    :param live: the record of the generation at work.
    :param found: the record with which the backfill would begin.
    :raises Refused: an input of a sub-topology with state has grown, and its keys are placed neither by linear
        hashing nor by a static partitioner.
    """
    for part in parts:
        counts = found.sub_topologies[part.id]
        external = set(part.sources) & live.topics.keys() - set(declared.repartitions)
        for topic in sorted(external) if part.stores else ():
            before, now = live.topics[topic], found.topics[topic]
            has_grown = bool(before.grown_at_ms) or before.partitions < now.partitions
            # With a static partitioner, no key has ever been in another partition.
            is_ordered = topic in declared.static or (now.grown_at_ms and declared.fits(topic, counts.initial))
            if has_grown and not is_ordered:
                raise Refused(
                    f"backfill of input {topic!r}",
                    found=f"{now.partitions} partitions, more than there were, and no declared linear hashing",
                    expected="linear hashing, which tells where keys have been before",
                    remedy="If its producers use linear hashing, declare under `linear_hashing` with how many "
                    "partitions the topic was created. Otherwise it is unknown which of a key's records came "
                    "first.",
                )
