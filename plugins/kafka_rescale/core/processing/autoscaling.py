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
    """The decision of a run about inputs that have grown.

    :param record: the record that the control topic has to keep.
    :param parallelism: the present and the expected number of processors of every sub-topology.
    :param targets: by sub-topology, the number of processors to ask for now.
    :param messages: what the run tells the user.
    :param warns: whether the messages are warnings.
    """

    record: Autoscaling
    parallelism: tuple[Parallelism, ...] = ()
    targets: Mapping[int, int] = field(default_factory=dict)
    messages: tuple[str, ...] = ()
    warns: bool = False

    def failed(self, error: RescaleError, now_ms: int) -> Scaling:
        """Return the decision after the brokers have refused to grow the internal topics.

        The run goes on with the processors that it has.
        """
        told = f"the internal topics could not be grown, and the next run tries again: {error}"
        return replace(self, record=self.record.failed(now_ms), targets={}, messages=(told,), warns=True)


NOT_LOOKED = Scaling(Autoscaling())
"""The decision of a backfill. It reads past records, so it does not look whether inputs have grown."""


def parallelism_of(
    parts: Iterable[SubTopology],
    processors: PipelineProcessors,
    counts: Mapping[str, int],
    repartitions: Collection[str],
) -> tuple[Parallelism, ...]:
    """Return how many processors every sub-topology has, and how many follow from its inputs: one per partition.

    :param counts: by source topic, the number of partitions that follows from the inputs.
    :param repartitions: the topics that the pipeline writes itself. They grow with the sub-topologies that read
        them.
    """
    found = []
    for part in parts:
        now = processors.sub_topologies[part.id].count
        # If an input had no partition for a processor, the processor would have nothing to join with.
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
    """Decide how many processors a run asks for.

    :param known: the record of earlier runs.
    :param partitions: the number of partitions of all internal topics together. An attempt that the brokers have
        refused may have grown some of these topics.
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
        return Scaling(record, parallelism)  # The new processors are warming up. Another message says so.
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
        f"{_described(parallelism)}; the present processors read all partitions. To add processors to "
        f"{application.application_id}, run `python -m kafka_rescale expand-processors`, or let runs add them by "
        "`partition.autoscaling.enabled: true`"
    )


def _gave_up(application: PipelineApplication, target: int) -> str:
    return (
        f"gave up growing {application.application_id} to {target} processors: nothing has succeeded for "
        f"partition.autoscaling.timeout.ms ({application.autoscaling_timeout_ms}) since the first failure. The "
        "logs of `assign` say what failed. Mend this, then ask for the processors by `python -m kafka_rescale "
        "expand-processors`"
    )
