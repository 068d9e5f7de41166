"""Preflight: if an input was grown by hand under the application, can the expansion go on as declared?"""

from __future__ import annotations

from collections.abc import Iterator

from kafka_rescale.core.application.topics import Input, InputPolicy
from kafka_rescale.core.errors import Finding
from kafka_rescale.core.partitioning.partitioners import earlier_homes, partitioner_named
from kafka_rescale.core.plan.planning import target_counts
from kafka_rescale.core.preflight.situation import Situation

RESCUABLE = (InputPolicy.UNKEYED, InputPolicy.REPARTITIONED)


def grown_inputs(situation: Situation) -> Iterator[Finding]:
    """Yield inputs that were grown by hand, if the expansion can't go on with them as they are declared.

    An ``unkeyed`` input is no finding: green reads it from the committed offsets, and its new partitions from
    their beginning. If the input is ``repartitioned``, the bridge copies its old partitions before the new ones.
    That keeps the order per key if no key went from one old partition to another. With a static partitioner there
    is only one layout, whatever the count.
    """
    for declared in situation.application.inputs:
        earlier = situation.grown.get(declared.topic)
        if earlier is None:
            continue
        topic, count = situation.full_name(declared.topic), situation.actual_counts[declared.topic]
        if declared.policy not in RESCUABLE and not _keeps_every_key(situation, declared):
            yield Finding(
                f"input topic {topic!r}",
                f"{count} partitions with policy {declared.policy}, while {situation.blue} is tied to {earlier}",
                "one layout of the keys: its old partitions hold records placed with either count",
                "Declare `policy: repartitioned`, which puts every record where its key belongs, in order; or "
                "`unkeyed` if the program re-keys it before any state. With a static partitioner (KIP-878), ask "
                f"for {count} partitions.",
            )
        elif declared.policy is InputPolicy.REPARTITIONED and _moves_among_old(situation, declared, earlier):
            yield Finding(
                f"input topic {topic!r}",
                f"{count} partitions, grown from {earlier}, with keys that went from one old partition to another",
                f"a multiple of {earlier}, or a partitioner that moves keys to new partitions only: nothing else "
                "tells which of two records of a key came first",
                "Let the application process what was written before the growth with another topic, or reset it.",
            )


def _keeps_every_key(situation: Situation, declared: Input) -> bool:
    """Whether the old partitions keep the keys that they held, and the expansion does not grow the input further.

    To grow it further, the expansion would have to drain it first. An application that is tied to the old count
    can't do that.
    """
    after = target_counts(situation.application, situation.actual_counts, situation.target)
    is_static = partitioner_named(declared.partitioner, declared.topic).is_static
    return is_static and after[declared.topic] == situation.actual_counts[declared.topic]


def _moves_among_old(situation: Situation, declared: Input, earlier: int) -> bool:
    partitioner = partitioner_named(declared.partitioner, declared.topic)
    topic, count = situation.full_name(declared.topic), situation.actual_counts[declared.topic]
    keys = [s.key for s in situation.samples if s.topic == topic and s.key is not None]
    if partitioner.is_modulo:
        # With an empty sample, every count would pass. So try made-up keys too. A user's function may refuse them.
        keys += [number.to_bytes(4, "big") for number in range(1_000)]
    before, now = (earlier_homes(partitioner, keys, n) for n in (earlier, count))
    return any(old != new < earlier for old, new in zip(before, now, strict=True))
