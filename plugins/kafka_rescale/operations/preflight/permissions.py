"""The first question to brokers: has every role the permissions that it will need?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from kafka_rescale.core.acls.acls import Acl, Resource
from kafka_rescale.core.acls.missing import Right, acl_findings, examples, missing_acls
from kafka_rescale.core.acls.needed import needed_acls, retirement_acls
from kafka_rescale.core.application.generation_names import green_names
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.application.topics import InputPolicy
from kafka_rescale.core.control.keys import CONTROL_TOPIC
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import PreflightRefused
from kafka_rescale.core.expansion.retirement import remains
from kafka_rescale.core.preflight.described import Target
from kafka_rescale.core.roles import Role
from kafka_rescale.core.topology.topic_names import is_topic_name
from kafka_rescale.core.topology.topology import Topology
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.admin.describe import topics_of
from kafka_rescale.kafka.admin.rights import RightsReader
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.control_topic import ControlTopic

Connections = Mapping[Role, KafkaConnection]


def permitted_state(application: Application, topology: Topology, connections: Connections) -> ControlState:
    """Return the control state, provided that every role has the permissions that it needs.

    :param connections: the connections of the roles to check. ``plan`` must be among them: it reads the control
        topic.
    :raises PreflightRefused: permissions are missing. Each has a finding, with the command that grants it.
    """
    of_file = needed_acls(application, topology)
    control = [a for a in of_file if a.role is Role.PLAN and a.pattern.covers(Resource.TOPIC, CONTROL_TOPIC)]
    by_plan = {Role.PLAN: connections[Role.PLAN]}
    readable = not any(missing_acls(control, _rights(control, by_plan, [CONTROL_TOPIC])))
    state = ControlTopic(by_plan[Role.PLAN], application.application_id).read() if readable else ControlState()
    renamed = state.generations.inputs if state.generations is not None else {}
    acls = [acl for acl in needed_acls(application, topology, renamed) if acl.role in connections]
    rights = _rights(acls, connections, _topics(application, topology, state))
    principals = {role: connection.principal for role, connection in connections.items()}
    if findings := acl_findings(acls, rights, principals, by_plan[Role.PLAN].servers):
        raise PreflightRefused(findings)
    return state


def lacking_to_retire(
    application: Application, topology: Topology, connections: Connections, state: ControlState
) -> list[str]:
    """Return a line for each missing permission that only ``retire`` needs, for topics of earlier generations.

    An expansion doesn't need these permissions, so their lack is no reason to refuse it. If no such topics are
    left, no person has to grant them.

    :param connections: as in ``permitted_state``.
    """
    acls = [acl for acl in retirement_acls(application, topology) if acl.role in connections]
    if not acls or state.journal is None or state.generations is None:
        return []
    existing = ClusterAdmin(connections[Role.PLAN]).list_topics()
    left = remains(application, topology, state.generations, state.journal.plan, existing)
    if not left:
        return []
    asked = {acl.role: connections[acl.role] for acl in acls}
    rights = _rights(acls, asked, [topic for each in left for topic in each.topics])
    principals = {role: connection.principal for role, connection in asked.items()}
    findings = acl_findings(acls, rights, principals, connections[Role.PLAN].servers)
    names = ", ".join(each.application_id for each in left)
    return [f"Only for retire of {names}: {finding}" for finding in findings]


def _topics(application: Application, topology: Topology, state: ControlState) -> list[str]:
    """Return the topics of the running and of the next generation, including their inputs."""
    target = Target(application, topology, application.partitions, state)
    now = topics_of(application, topology, target.blue, target.renamed)
    next_inputs = [
        each.successor_topic(application.partitions)
        for each in application.inputs
        if each.policy is InputPolicy.REPARTITIONED
    ]
    names = [*now, *green_names(application, target.green).all_of(topology), *next_inputs]
    # Brokers can't answer about names that are too long; preflight reports these.
    return [name for name in names if is_topic_name(name)]


def _rights(acls: Iterable[Acl], connections: Connections, topics: list[str]) -> list[Right]:
    """Ask each connection only about its own roles: the brokers don't tell it the rights of other principals."""
    wanted = list(acls)
    rights: list[Right] = []
    for connection, roles in _by_connection(connections):
        names = examples((acl for acl in wanted if acl.role in roles), topics)
        told = RightsReader(connection).read(roles[0], names)
        rights += [replace(right, role=role) for role in roles for right in told]
    return rights


def _by_connection(connections: Connections) -> list[tuple[KafkaConnection, list[Role]]]:
    distinct: list[KafkaConnection] = []
    for connection in connections.values():
        distinct += [] if connection in distinct else [connection]
    return [(each, [role for role, c in connections.items() if c == each]) for each in distinct]
