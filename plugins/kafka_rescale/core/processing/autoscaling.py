"""Processors that follow the partitions of their inputs by themselves (KIP-878)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from kafka_rescale.core.application.pipeline import PipelineApplication
from kafka_rescale.core.control.autoscaling import Autoscaling, Parallelism
from kafka_rescale.core.control.processors import PipelineProcessors
from kafka_rescale.core.errors import RescaleError
from kafka_rescale.core.pipeline.task import SubTopology


@dataclass(frozen=True)
class Scaling:
    """What a run makes of inputs that have grown.

    :param record: what is to be remembered.
    :param parallelism: of every sub-topology.
    :param targets: processors to ask for now, by sub-topology.
    :param messages: for a person.
    :param warns: whether somebody should look.
    """

    record: Autoscaling
    parallelism: tuple[Parallelism, ...] = ()
    targets: Mapping[int, int] = field(default_factory=dict)
    messages: tuple[str, ...] = ()
    warns: bool = False

    def failed(self, error: RescaleError, now_ms: int) -> Scaling:
        """Return what is left when the brokers would not grow the internal topics: the run goes on as it was."""
        told = f"the internal topics could not be grown, and the next run tries again: {error}"
        return replace(self, record=self.record.failed(now_ms), targets={}, messages=(told,), warns=True)


NOT_LOOKED = Scaling(Autoscaling())
"""Of a backfill, which reads what there was."""


def parallelism_of(
    parts: Iterable[SubTopology],
    processors: PipelineProcessors,
    counts: Mapping[str, int],
    repartitions: Collection[str],
) -> tuple[Parallelism, ...]:
    """Return the processors of every sub-topology, and how many follow from its inputs: one per partition.

    :param counts: partitions of every source topic, as they follow from the inputs.
    :param repartitions: topics that the pipeline writes itself, and that grow with their readers.
    """
    found = []
    for part in parts:
        now = processors.sub_topologies[part.id].count
        # A processor without a partition in one of the inputs would have nothing to join with.
        external = [counts[topic] for topic in part.sources if topic not in repartitions]
        expected = min(external) if external else max(counts[topic] for topic in part.sources)
        found.append(Parallelism(part.id, now, max(now, expected)))
    return tuple(found)


def scaling(
    application: PipelineApplication,
    processors: PipelineProcessors,
    parallelism: tuple[Parallelism, ...],
    known: Autoscaling,
    partitions: int,
    now_ms: int,
) -> Scaling:
    """Decide what a run asks for.

    :param known: what earlier runs have left.
    :param partitions: of all internal topics together. An attempt that was refused may have grown some of them.
    :param now_ms: wall clock, in ms since the epoch.
    """
    short = {p.subtopology: p.expected for p in parallelism if p.current < p.expected}
    if not short:
        return Scaling(known, parallelism)
    if not application.autoscaling_enabled:
        return Scaling(known.settled(), parallelism, messages=(_switched_off(application, parallelism),))
    target = max(short.values())
    reached = partitions + sum(counts.largest for counts in processors.sub_topologies.values())
    record = known.seen(reached).aimed_at(target, reached)
    if record.target != known.target:
        before = max(p.current for p in parallelism if p.subtopology in short)
        record = record.model_copy(update={"grown_from": before, "attempts": record.attempts + 1})
    wanted = {number: count for number, count in short.items() if number not in processors.expanding}
    if not wanted:
        return Scaling(record, parallelism)  # they warm up, which is told elsewhere
    if record.given_up or record.is_exceeded(now_ms, application.autoscaling_timeout_ms):
        return Scaling(record.gave_up(), parallelism, messages=(_gave_up(application, target),), warns=True)
    return Scaling(record, parallelism, wanted)


def _described(parallelism: Iterable[Parallelism]) -> str:
    short = [p for p in parallelism if p.current < p.expected]
    return "; ".join(
        f"sub-topology {p.subtopology} has {p.current} processors for {p.expected} partitions" for p in short
    )


def _switched_off(application: PipelineApplication, parallelism: Iterable[Parallelism]) -> str:
    return (
        f"{_described(parallelism)}, which these go on to read. `python -m kafka_rescale expand-processors` of "
        f"{application.application_id} adds some, and with `partition.autoscaling.enabled: true` a run does"
    )


def _gave_up(application: PipelineApplication, target: int) -> str:
    return (
        f"gave up growing {application.application_id} to {target} processors: nothing has succeeded for "
        f"partition.autoscaling.timeout.ms ({application.autoscaling_timeout_ms}) since the first failure. Mend "
        "what the logs of `assign` say, then ask for them by `python -m kafka_rescale expand-processors`"
    )
