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

    def failed(self, application: PipelineApplication, error: RescaleError, now_ms: int) -> Scaling:
        """Return the decision after the brokers have refused to grow the internal topics.

        The run goes on with the processors that it has. It gives up if it has tried after the timeout was over.
        Runs may be further apart than the timeout, so the timeout alone does not tell that anything was retried.

        :param now_ms: wall clock, in ms since the epoch.
        """
        record = self.record.failed(now_ms)
        told = f"the internal topics could not be grown, and the next run tries again: {error}"
        if self.record.is_exceeded(now_ms, application.autoscaling_timeout_ms):
            record = record.gave_up()
            told = f"the internal topics could not be grown: {error}; {_gave_up(application, record.target)}"
        return replace(self, record=record, targets={}, messages=(told,), warns=True)


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
        # The smallest input sets the limit. The processors read all partitions of the others meanwhile.
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
) -> Scaling:
    """Decide how many processors a run asks for.

    If autoscaling is switched off, this notes the growth all the same and asks for nothing: a person may add the
    processors, or switch it on, and then the growth is told once.

    :param known: the record of earlier runs.
    :param partitions: the number of partitions of all internal topics together. An attempt that the brokers have
        refused may have grown some of these topics.
    """
    short = {p.subtopology: p.expected for p in parallelism if p.current < p.expected}
    if not short:
        return Scaling(known, parallelism)
    reached = partitions + sum(counts.largest for counts in processors.sub_topologies.values())
    record = _aimed(known, parallelism, reached)
    if not application.autoscaling_enabled:
        record = record.pardoned()
    wanted = {number: count for number, count in short.items() if number not in processors.expanding}
    if not wanted:
        return Scaling(record, parallelism)  # The new processors are warming up. Another message says so.
    if not application.autoscaling_enabled:
        return Scaling(record, parallelism, messages=(_switched_off(application, parallelism),))
    if record.given_up:
        return Scaling(record, parallelism, messages=(_gave_up(application, record.target),), warns=True)
    return Scaling(record, parallelism, wanted)


def _aimed(known: Autoscaling, parallelism: Collection[Parallelism], reached: int) -> Autoscaling:
    """Return the record while some sub-topology has too few processors.

    The target is that of the largest sub-topology, also once it has switched and only smaller ones are left. So
    one growth is told once, with the counts of the largest.
    """
    short = [p for p in parallelism if p.current < p.expected]
    # A pipeline that has begun anew may have less to reach.
    pending = min(known.target, max(p.expected for p in parallelism))
    target = max(pending, *(p.expected for p in short))
    record = known.seen(reached).aimed_at(target, reached)
    if target == known.target:
        return record
    goes_on = 0 < known.target < target and not known.callback_begun_ms
    before = known.grown_from if goes_on else max(p.current for p in short)
    return record.model_copy(update={"grown_from": before, "attempts": record.attempts + 1})


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
