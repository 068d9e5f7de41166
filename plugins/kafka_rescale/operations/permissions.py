"""Before anything else is asked of the brokers: is every role allowed what it will need?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kafka_rescale.core.acls import Acl, Resource, Role
from kafka_rescale.core.application import Application
from kafka_rescale.core.control_records import CONTROL_TOPIC, ControlState
from kafka_rescale.core.errors import PreflightRefused
from kafka_rescale.core.generation_names import green_names
from kafka_rescale.core.needed_acls import needed_acls
from kafka_rescale.core.planning import green_of
from kafka_rescale.core.preflight_acls import Right, acl_findings, examples, missing_acls
from kafka_rescale.core.topology import Topology
from kafka_rescale.kafka.connection import KafkaConnection
from kafka_rescale.kafka.control_topic import ControlTopic
from kafka_rescale.kafka.describe import topics_of
from kafka_rescale.kafka.rights import RightsReader

Connections = Mapping[Role, KafkaConnection]


def permitted_state(application: Application, topology: Topology, connections: Connections) -> ControlState:
    """Return what the control topic knows, provided that every role has the permissions that it needs.

    :param connections: of the roles to check; ``plan``, by which the topic is read, among them.
    :raises PreflightRefused: with a finding, and the command that mends it, per missing permission.
    """
    acls = [acl for acl in needed_acls(application, topology) if acl.role in connections]
    control = [a for a in acls if a.role is Role.PLAN and a.pattern.covers(Resource.TOPIC, CONTROL_TOPIC)]
    by_plan = {Role.PLAN: connections[Role.PLAN]}
    readable = not any(missing_acls(control, _rights(control, by_plan, [CONTROL_TOPIC])))
    state = ControlTopic(by_plan[Role.PLAN], application.application_id).read() if readable else ControlState()
    rights = _rights(acls, connections, _topics(application, topology, state))
    principals = {role: connection.principal for role, connection in connections.items()}
    if findings := acl_findings(acls, rights, principals, by_plan[Role.PLAN].servers):
        raise PreflightRefused(findings)
    return state


def _topics(application: Application, topology: Topology, state: ControlState) -> list[str]:
    """Return the running generation's topics and the next one's."""
    generations = state.generations
    blue = generations.running if generations else application.application_id
    green = green_of(application, blue, (generations.generation if generations else 1) + 1)
    now = topics_of(application, topology, blue, generations.inputs if generations else {})
    return [*now, *green_names(application, green).all_of(topology)]


def _rights(acls: Iterable[Acl], connections: Connections, topics: list[str]) -> list[Right]:
    """Ask each principal's connection once per role: what another role needs is none of its business."""
    wanted = list(acls)
    return [
        right
        for role, connection in connections.items()
        for right in RightsReader(connection).read(role, examples((a for a in wanted if a.role is role), topics))
    ]
