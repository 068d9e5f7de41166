"""The internal topics of a pipeline grow before more processors are recorded, so that a refusal stops no run."""

from __future__ import annotations

from collections.abc import Mapping

from kafka_rescale.core.control.keys import Concern
from kafka_rescale.core.control.processors import PipelineProcessors
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.pipeline.builder import Pipeline
from kafka_rescale.core.pipeline.task import SubTopology
from kafka_rescale.core.processing.internal_topics import changelogs_of
from kafka_rescale.core.topology.topology import internal_topic
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.kafka.control.lease import update_despite_races


def grow_internal_topics(
    application_id: str, pipeline: Pipeline, admin: ClusterAdmin, control: ControlTopic, targets: Mapping[int, int]
) -> None:
    """Grow the changelogs of sub-topologies, and the repartition topics that they read.

    Before that, the record allows the changelogs their new counts. Otherwise, if only some of them have grown, or
    if this process is killed before the processors are recorded, every later run would refuse them.

    :param targets: by sub-topology, the number of processors that will be asked for.
    :raises RescaleError: a topic could not be grown. The runs go on with the processors that there are.
    :raises Fenced: other controllers kept changing the control topic; nothing has grown.
    """

    def begun(state: ControlState) -> Mapping[str, PipelineProcessors]:
        after = state.processors.growing(targets)
        return {} if after == state.processors else {Concern.PROCESSORS: after}

    update_despite_races(control, begun)
    found = internal_partitions(application_id, pipeline, admin)
    wanted = {
        name: target
        for part in pipeline.sub_topologies()
        if (target := targets.get(part.id))
        for name in _internal_topics(application_id, pipeline, part)
        if name in found and found[name] < target
    }
    admin.grow_topics(wanted)


def internal_partitions(application_id: str, pipeline: Pipeline, admin: ClusterAdmin) -> dict[str, int]:
    """Return the partitions of changelogs and repartition topics that exist."""
    parts = pipeline.sub_topologies()
    names = {name for part in parts for name in _internal_topics(application_id, pipeline, part)}
    return {name: topic.partitions for name, topic in admin.describe_topics(names).items()}


def _internal_topics(application_id: str, pipeline: Pipeline, part: SubTopology) -> list[str]:
    """Return the changelogs of a sub-topology, and the repartition topics that it reads."""
    own = pipeline.topology.repartitions
    return [
        *changelogs_of(application_id, part),
        *(internal_topic(application_id, topic) for topic in part.sources if topic in own),
    ]
