"""KIP-878 for pipelines: a run adds processors where inputs have grown, and tells when all have caught up."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace

from kafka_rescale.core.application.expansion_callback import NamedCallback
from kafka_rescale.core.application.pipeline import PipelineApplication
from kafka_rescale.core.control.autoscaling import Autoscaling, Parallelism
from kafka_rescale.core.control.keys import Concern
from kafka_rescale.core.control.processors import PipelineProcessors
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import Fenced, RescaleError
from kafka_rescale.core.pipeline.builder import Pipeline
from kafka_rescale.core.pipeline.named import pipeline_named
from kafka_rescale.core.processing.autoscaling import Scaling, parallelism_of, scaling
from kafka_rescale.core.processing.processor_expansion import expanded
from kafka_rescale.core.topology.partition_counts import partition_counts
from kafka_rescale.core.values import Value
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.kafka.control.lease import update_despite_races
from kafka_rescale.operations.processing.internal_growth import grow_internal_topics, internal_partitions
from kafka_rescale.operations.processing.topics import external_counts

log = logging.getLogger(__name__)


def follow_inputs(application: PipelineApplication, pipeline: Pipeline, connection: KafkaConnection) -> Scaling:
    """Ask for more processors where inputs have grown. The new processors warm up from this run on.

    If brokers refuse the growth, the next run tries again, and this run processes all the same.

    :raises Outage: the brokers don't answer.
    :raises Fenced: other controllers kept changing the control topic in between.
    """
    control, admin = ControlTopic(connection, application.application_id), ClusterAdmin(connection)
    counts, state = external_counts(pipeline, admin), control.read()
    parallelism = _parallelism(pipeline, counts, state.processors)
    known = state.autoscaling or Autoscaling()
    is_short = any(p.current < p.expected for p in parallelism)
    group = application.application_id
    partitions = sum(internal_partitions(group, pipeline, admin).values()) if is_short else 0
    found = scaling(application, state.processors, parallelism, known, partitions)
    if found.targets:
        try:
            grow_internal_topics(group, pipeline, admin, control, found.targets)
        except Fenced:
            raise
        except RescaleError as error:
            found = found.failed(application, error, now_ms())

    def asked(state: ControlState) -> Mapping[str, Value]:
        after = state.processors
        for number, target in found.targets.items():
            repartitions = pipeline.topology.repartitions
            after = expanded(after, pipeline.sub_topologies(), counts, repartitions, target, [number])
        changes: dict[str, Value] = {} if after == state.processors else {Concern.PROCESSORS: after}
        return changes if found.record == known else {**changes, Concern.AUTOSCALING: found.record}

    if found.targets or found.record != known:
        update_despite_races(control, asked)
    if found.targets:
        said = ", ".join(f"{count} processors for sub-topology {n}" for n, count in found.targets.items())
        found = replace(found, messages=(f"asked for {said}, which inputs have grown to",))
    return found


def note_stable(application: PipelineApplication, pipeline: Pipeline, connection: KafkaConnection) -> None:
    """Forget the target once every sub-topology has as many processors as its inputs ask for.

    If the file names a callback, the target stays until ``call_back`` has called it.
    """
    control = ControlTopic(connection, application.application_id)
    state = control.read()
    record = state.autoscaling
    if record is None or not record.target or application.on_partition_expansion is not None:
        return
    counts = _stable(pipeline, ClusterAdmin(connection), state)
    if counts is not None:
        update_despite_races(control, lambda state: _settled(state, record, counts))


def call_back(application: PipelineApplication, connection: KafkaConnection) -> str:
    """Call ``on_partition_expansion`` once every sub-topology follows its inputs again. Return what was done.

    :raises InvalidInput: the function can't be imported.
    :raises UnsafeState: the function has failed; or a call has begun before, and the function can't recognise a
        second call.
    """
    callback = NamedCallback.of_name(application.on_partition_expansion)
    pipeline, control = pipeline_named(application.pipeline), ControlTopic(connection, application.application_id)
    state = control.read()
    record = state.autoscaling
    if callback is None or record is None or not record.target:
        return "no input has grown since the last call"
    counts = _stable(pipeline, ClusterAdmin(connection), state)
    if counts is None:
        return f"not yet at {record.target} processors"
    token = f"{application.application_id}/{record.attempts}/{record.grown_from}-{record.target}"

    def begun(state: ControlState, known: Autoscaling = record) -> Mapping[str, Value]:
        present = state.autoscaling or known
        callback.require_first(present.callback_begun_ms, token)
        begun_ms = present.callback_begun_ms or now_ms()
        return {Concern.AUTOSCALING: present.model_copy(update={"callback_begun_ms": begun_ms})}

    # Decide this inside the compare-and-set, because only one of two attempts may call.
    called = control.update(begun).autoscaling or record
    log.info("calling %s(%d, %d)", callback.name, called.grown_from, called.target)
    callback.call(called.grown_from, called.target, token)
    update_despite_races(control, lambda state: _settled(state, called, counts))
    return f"called {callback.name}({called.grown_from}, {called.target})"


def _settled(state: ControlState, record: Autoscaling, counts: Mapping[str, int]) -> Mapping[str, Value]:
    if state.autoscaling != record:
        return {}
    return {Concern.AUTOSCALING: record.in_line(dict(counts))}


def _stable(pipeline: Pipeline, admin: ClusterAdmin, state: ControlState) -> dict[str, int] | None:
    """Return the partition counts of the inputs; None while a sub-topology has too few processors for them."""
    counts = external_counts(pipeline, admin)
    short = any(p.current < p.expected for p in _parallelism(pipeline, counts, state.processors))
    return None if short else {topic: counts[topic] for topic in pipeline.topology.inputs}


def _parallelism(
    pipeline: Pipeline, counts: Mapping[str, int], processors: PipelineProcessors
) -> tuple[Parallelism, ...]:
    inputs = {topic: counts[topic] for topic in pipeline.topology.inputs}
    derived = partition_counts(pipeline.topology, inputs, pipeline.enforced_partitions)
    parts = pipeline.sub_topologies()
    return parallelism_of(parts, processors, {**inputs, **derived}, pipeline.topology.repartitions)
