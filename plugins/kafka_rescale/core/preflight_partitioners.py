"""Preflight: can every sampled key be placed in the target's partitions, by the partitioner that is declared?"""

from __future__ import annotations

from collections.abc import Iterator

from kafka_rescale.core.changelog_formats import format_of
from kafka_rescale.core.errors import Finding, UnsafeState
from kafka_rescale.core.partitioners import Partitioner, partitioner_named
from kafka_rescale.core.plan import InputPlan, Move, MoveKind
from kafka_rescale.core.situation import Situation, shown


def future_placement(situation: Situation) -> Iterator[Finding]:
    """Yield topics whose sampled keys the declared partitioner can't place, or may not move, in the target.

    Present placement must have been found right before.
    """
    keyed = {i.topic for i in situation.keyed_inputs()}
    for planned in (i for i in situation.plan.inputs if i.declared in keyed):
        partitioner = partitioner_named(planned.partitioner, planned.declared)
        yield from _findings(situation, planned, planned.topic, partitioner, planned.target)
    for move in situation.plan.moves:
        partitioner = partitioner_named(move.partitioner, move.key_topic)
        yield from _findings(situation, move, move.source, partitioner, move.target_partitions)


def _findings(
    situation: Situation, planned: Move | InputPlan, topic: str, partitioner: Partitioner, target: int
) -> Iterator[Finding]:
    what = f"topic {topic!r} with {target} partitions"
    samples = [s for s in situation.samples if s.topic == topic and s.key is not None]
    keys = [_partitioning_key(planned, s.key or b"") for s in samples]
    try:
        homes = partitioner.partition_batch(keys, target)
    except UnsafeState as error:
        yield Finding(f"{what}, {error.what}", error.found, error.expected, error.remedy)
        return
    moved = [(s, home) for s, home in zip(samples, homes, strict=True) if s.partition != home]
    if partitioner.is_static and moved:
        sample, home = moved[0]
        yield Finding(
            what,
            f"key {shown(sample.key)} moved from partition {sample.partition} to {home} by {partitioner.name}",
            "the partition that a static partitioner has once given it, whatever the count (KIP-878)",
            "Mend the function, or declare it without `static:` so that state moves with its keys.",
        )


def _partitioning_key(planned: Move | InputPlan, key: bytes) -> bytes:
    if isinstance(planned, Move) and planned.kind is MoveKind.CHANGELOG:
        return format_of(planned.store_type, planned.partitioning_key).partitioning_key(key)
    return key
