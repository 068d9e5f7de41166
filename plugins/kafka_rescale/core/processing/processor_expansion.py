"""More processors for the sub-topologies of a pipeline (KIP-287)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from kafka_rescale.core.control.processors import PipelineProcessors
from kafka_rescale.core.errors import InvalidInput, Refused
from kafka_rescale.core.partitioning.processors import Processors
from kafka_rescale.core.pipeline.task import SubTopology


def expanded(
    known: PipelineProcessors,
    parts: Iterable[SubTopology],
    counts: Mapping[str, int],
    repartitions: Collection[str],
    target: int,
    chosen: Collection[int] = (),
) -> PipelineProcessors:
    """Return the record with more processors asked for; idempotent.

    :param counts: partitions of every source topic now; repartition topics grow by themselves.
    :param chosen: sub-topologies; if empty, all of them.
    :raises InvalidInput: there is no such sub-topology.
    :raises Refused: fewer than now, more than partitions, or another expansion is under way.
    """
    by_number = {part.id: part for part in parts}
    if not known.sub_topologies or set(chosen) - by_number.keys():
        raise InvalidInput(
            "sub-topologies" if known.sub_topologies else "pipeline",
            found=", ".join(map(str, chosen)) or "no run yet",
            expected=", ".join(map(str, by_number)) + ", and a first run, which fixes the initial processors",
            remedy="Correct the numbers (`describe()` shows them), or run the pipeline once.",
        )
    for number in sorted(chosen or by_number):
        now, external = known.sub_topologies[number], set(by_number[number].sources) - set(repartitions)
        least = min([counts[topic] for topic in external], default=max(target, now.count))
        Processors(now.initial, now.count, max(least, now.count)).with_count(target)
        if now.expanding_to not in {0, target}:
            raise Refused(
                f"sub-topology {number}",
                found=f"an expansion from {now.count} to {now.expanding_to} processors under way",
                expected="one expansion at a time",
                remedy="Wait until it has switched, then expand again.",
            )
        if target > now.count:
            known = known.with_counts(number, expanding_to=target)
    return known
