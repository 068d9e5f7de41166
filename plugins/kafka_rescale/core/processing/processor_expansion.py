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
    """Return the record after a request for more processors. A second call with the same target changes nothing.

    :param counts: the present partition count of every source topic.
    :param repartitions: the repartition topics. Their counts set no limit, because they grow with the processors.
    :param target: the number of processors that is asked for.
    :param chosen: the sub-topologies that get more processors. Empty: all sub-topologies.
    :raises InvalidInput: there is no such sub-topology, or the pipeline has not run yet.
    :raises Refused: the target is less than the present number, or more than the inputs have partitions, or
        another expansion is under way.
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
        if target > now.count:
            _require_partitions(number, target, {topic: counts[topic] for topic in sorted(external)})
        Processors(now.initial, now.count, max(target, now.count)).with_count(target)
        if now.expanding_to not in {0, target}:
            raise Refused(
                f"sub-topology {number}",
                found=f"an expansion from {now.count} to {now.expanding_to} processors under way",
                expected="one expansion at a time",
                remedy="Wait until it has switched, then expand again.",
            )
        if target > now.count:
            known = known.asked_for(number, target)
    return known


def _require_partitions(number: int, target: int, inputs: Mapping[str, int]) -> None:
    """Refuse more processors than an input has partitions, also beside a larger input (KIP-287).

    If the small input grew later, its new partitions would belong to other processors at once. So records of a
    key could be processed before earlier ones, which its old partition still has.
    """
    if short := {topic: count for topic, count in inputs.items() if count < target}:
        raise Refused(
            f"processors of sub-topology {number}",
            found=f"{target} for " + ", ".join(f"{count} partitions of {topic}" for topic, count in short.items()),
            expected="at most one processor per partition of every input",
            remedy="Expand the partitions of the input topic first, then the processors.",
        )
