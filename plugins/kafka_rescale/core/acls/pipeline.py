"""The permissions that each role needs for a pipeline and its backfills. They follow from its file and topology.

Pipelines are not verified, so the role ``verify`` needs no permissions. The command ``status`` needs the
permissions of ``plan``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kafka_rescale.core.acls.acls import Acl, Operation, Pattern, Resource, without_needless
from kafka_rescale.core.acls.needed import READ, SEEN, WRITE, Permissions, everybody, own_groups
from kafka_rescale.core.application.pipeline import PipelineApplication
from kafka_rescale.core.control.keys import CONTROL_TOPIC, Concern
from kafka_rescale.core.roles import Role
from kafka_rescale.core.topology.topology import Topology, changelog_topic, internal_topic


def pipeline_acls(application: PipelineApplication, topology: Topology) -> tuple[Acl, ...]:
    """Return the permissions that every role needs, role by role, without duplicates.

    :param topology: the topology of the pipeline.
    """
    of = PipelinePatterns(application, topology)
    roles = {Role.PLAN: everybody(), Role.COPY: _copy(of), Role.ADMIN: _admin(of)}
    return without_needless(
        Acl(role, pattern, operation)
        for role, permissions in roles.items()
        for pattern, operations in permissions
        for operation in operations
    )


@dataclass(frozen=True)
class PipelinePatterns:
    """The resources of one pipeline. The names of a backfill's resources have the same prefix."""

    application: PipelineApplication
    topology: Topology

    @property
    def internal(self) -> Pattern:
        """The repartition topics and changelogs."""
        return Pattern(Resource.TOPIC, f"{self.application.application_id}-", prefixed=True)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The topics that the pipeline and its backfills write."""
        return tuple(dict.fromkeys([*self.topology.outputs, *self.application.moved_outputs]))

    @property
    def topics(self) -> list[str]:
        """Every topic of the pipeline by its full name, whether the topic exists or not."""
        name = self.application.application_id
        repartitions = [internal_topic(name, topic) for topic in sorted(self.topology.repartitions)]
        changelogs = [changelog_topic(name, store) for store in self.topology.stores]
        return [*self.topology.inputs, *self.outputs, *repartitions, *changelogs]

    def groups(self) -> Iterator[Pattern]:
        """Yield the pipeline's group, and the groups of new processors and of backfills."""
        yield from own_groups(self.application.application_id)

    @property
    def tasks(self) -> Pattern:
        """Transactional ids of the tasks."""
        return Pattern(Resource.TRANSACTIONAL_ID, f"{self.application.application_id}-", prefixed=True)

    def controllers(self) -> Iterator[Pattern]:
        """Yield the transactional ids for records about the pipeline and its backfills."""
        name = f"kafka-rescale-{self.application.application_id}"
        yield Pattern(Resource.TRANSACTIONAL_ID, name)
        if self.application.backfill is not None:
            yield Pattern(Resource.TRANSACTIONAL_ID, f"{name}-", prefixed=True)

    @property
    def results(self) -> Pattern:
        """Transactional ids of the results of jobs."""
        name = f"kafka-rescale-{self.application.application_id}/{Concern.RESULT}/"
        return Pattern(Resource.TRANSACTIONAL_ID, name, prefixed=True)


def _copy(of: PipelinePatterns) -> Permissions:
    """The permissions of the Spark jobs, and of the Airflow tasks that start them and record dead threads."""
    yield from everybody()
    yield Pattern(Resource.TOPIC, CONTROL_TOPIC), (WRITE,)
    for topic in of.topology.inputs:
        yield Pattern(Resource.TOPIC, topic), (READ, Operation.DESCRIBE_CONFIGS)
    for topic in of.outputs:
        yield Pattern(Resource.TOPIC, topic), (WRITE, Operation.DESCRIBE_CONFIGS)
    # The jobs delete processed records from repartition topics.
    purged = (Operation.DELETE,) if of.topology.repartitions else ()
    yield of.internal, (READ, WRITE, Operation.DESCRIBE_CONFIGS, *purged)
    for group in of.groups():
        yield group, (READ,)
    yield of.tasks, (WRITE,)
    yield of.results, (WRITE,)
    for controller in of.controllers():
        yield controller, (WRITE,)


def _admin(of: PipelinePatterns) -> Permissions:
    """The permissions of `assign`. It fences tasks, and gives new processors their state and their offsets."""
    yield from everybody()
    yield Pattern(Resource.TOPIC, CONTROL_TOPIC), (Operation.CREATE, WRITE, Operation.ALTER_CONFIGS)
    for topic in of.topology.inputs:
        yield Pattern(Resource.TOPIC, topic), (READ, Operation.DESCRIBE_CONFIGS)
    for topic in of.outputs:
        yield Pattern(Resource.TOPIC, topic), SEEN
    yield of.internal, (READ, WRITE, Operation.CREATE, Operation.ALTER, Operation.ALTER_CONFIGS)
    for group in of.groups():
        yield group, (READ,)
    yield of.tasks, (WRITE,)
    for controller in of.controllers():
        yield controller, (WRITE,)
