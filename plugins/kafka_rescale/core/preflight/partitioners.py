"""Preflight: do the declared partitioners agree, and can they place every sampled key in the target?"""

from __future__ import annotations

from collections.abc import Iterator

from kafka_rescale.core.errors import Finding, UnsafeState
from kafka_rescale.core.formats.changelog_formats import format_of
from kafka_rescale.core.formats.samples import shown
from kafka_rescale.core.partitioning.partitioners import Partitioner, earlier_homes, partitioner_named
from kafka_rescale.core.plan.external_topics import InputPlan
from kafka_rescale.core.plan.plan import Move, MoveKind
from kafka_rescale.core.preflight.counts import counts_after
from kafka_rescale.core.preflight.placed_keys import unplaceable
from kafka_rescale.core.preflight.situation import Situation
from kafka_rescale.core.topology.topology import SubTopology

_REMEDY = (
    "Correct the declared partitioners. If the topics really differ, the program misses matches already: let it "
    "re-key one of them (`repartition()`) before they meet."
)


def one_partitioner(situation: Situation) -> Iterator[Finding]:
    """Yield stateful sub-topologies whose sources and stores are not placed by one partitioner.

    ``Topology#describe()`` does not say which of them are joined, so this takes all of them as joined.
    """
    for subtopology in situation.stateful_subtopologies():
        declared = _declared(situation, subtopology)
        if len(declared) > 1:
            yield Finding(
                f"sub-topology {subtopology.id}",
                ", ".join(f"{name} for {' and '.join(of)}" for name, of in sorted(declared.items())),
                "one partitioner: a key's records and state belong to one task, and would be copied to several",
                _REMEDY,
            )
        else:
            yield from _by_topic(situation, subtopology, next(iter(declared)))


def _declared(situation: Situation, subtopology: SubTopology) -> dict[str, list[str]]:
    """Return topics and stores by their partitioner. A table whose input is its changelog has no partitioner."""
    application, found = situation.application, dict[str, list[str]]()
    inputs = {i.topic: i.partitioner for i in application.inputs}
    for topic in situation.topology.own_sources(subtopology):
        found.setdefault(inputs.get(topic) or application.repartition_partitioner(topic), []).append(topic)
    for store in subtopology.stores:
        found.setdefault(application.store_named(store).partitioner, []).append(f"store {store}")
    return found


def _by_topic(situation: Situation, subtopology: SubTopology, name: str) -> Iterator[Finding]:
    """Yield topics for which a user's function gives different answers about the keys sampled from all of them."""
    first, *others = situation.topology.own_sources(subtopology)
    sampled = [s for t in (first, *others) for s in situation.samples_of(situation.full_name(t))]
    keys = sorted({s.key for s in sampled if s.key is not None})
    for other in others:
        for n in (situation.counts[first], counts_after(situation)[first]):
            try:
                # An input that was grown by hand counts with its old partitions here, and has keys in new ones.
                here, there = (earlier_homes(partitioner_named(name, t), keys, n) for t in (first, other))
            except UnsafeState as error:
                yield Finding(f"sub-topology {subtopology.id}, {error.what}", error.found, error.expected, _REMEDY)
                return
            for key in (k for k, a, b in zip(keys, here, there, strict=True) if a != b):
                yield Finding(
                    f"sub-topology {subtopology.id}, partitioner {name}",
                    f"key {shown(key)} in different partitions of {n} for topics {first!r} and {other!r}",
                    "one partition: a key's records and state belong to one task",
                    _REMEDY,
                )
                return


def future_placement(situation: Situation) -> Iterator[Finding]:
    """Yield topics with sampled keys that the declared partitioner can't place in the target, or must not move.

    Call it only if the present places of the keys are right.
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
        yield unplaceable(what, error)
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
