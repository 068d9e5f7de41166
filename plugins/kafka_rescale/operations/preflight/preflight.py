"""Looks at everything, touches nothing, and refuses what can't work with every reason at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from kafka_rescale.core.application.generation_names import green_names
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.control.lease import Lease
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import PreflightRefused
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.core.preflight import check as checks
from kafka_rescale.core.preflight.counts import changes_anything
from kafka_rescale.core.preflight.expected_state import ExpectedState
from kafka_rescale.core.preflight.situation import Situation
from kafka_rescale.core.roles import Role
from kafka_rescale.core.topology.topology import Topology
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.admin.describe import describe
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.lease import refuse_if_held
from kafka_rescale.kafka.copy.bridging import ends_of_bridged
from kafka_rescale.kafka.reading.codecs import codecs_of
from kafka_rescale.kafka.reading.sampling import Sampled, record_counts, sample
from kafka_rescale.operations.expansion import producers
from kafka_rescale.operations.preflight.deployment import deployment_of
from kafka_rescale.operations.preflight.permissions import lacking_to_retire, permitted_state


@dataclass(frozen=True)
class Preflight:
    """The result of a preflight that found nothing to object to.

    :param plan: what to do; None if there is nothing to do.
    :param noop: the application is already at the target.
    :param messages: what is worth knowing, one line each.
    """

    plan: Plan | None
    noop: bool
    messages: tuple[str, ...]


def preflight(
    application: Application,
    topology: Topology,
    connection: KafkaConnection,
    *,
    target: int,
    owner: str,
    now_ms: int,
    owner_is_finished: Callable[[Lease], bool | None],
    expected: ExpectedState = ExpectedState.EITHER,
    others: Mapping[Role, KafkaConnection] | None = None,
    runs_commands: bool = True,
) -> Preflight:
    """Check everything and return the plan; nothing is written to the cluster.

    :param target: partitions wanted.
    :param owner: who asks, as it would stand in the lease.
    :param now_ms: wall clock, in ms since the epoch.
    :param owner_is_finished: whether another owner's run has ended; None if nobody can tell.
    :param expected: whether the application has to run, or to be stopped.
    :param others: connections of other roles than ``plan`` whose permissions are checked as well.
    :param runs_commands: whether the commands of the file are run on this machine, so that they can be looked at.
    :raises InvalidInput: no connection can be had with these settings.
    :raises LeaseHeld: another run that has not ended rescales this application.
    :raises PreflightRefused: with every finding.
    """
    held = producers.upstream(application)
    connections = {Role.PLAN: connection, **(others or {})}
    for each in connections.values():
        each.check()
    control = permitted_state(application, topology, connections)
    refuse_if_held(application.application_id, control.lease, owner, now_ms, owner_is_finished)
    situation, unread = look_around(application, topology, connection, control, target=target)
    compression = connections.get(Role.COPY, connection).compression
    situation = replace(situation, expected=expected, now_ms=now_ms, compression=compression)
    if runs_commands:
        situation = replace(situation, deployment=deployment_of(situation, ClusterAdmin(connection), held))
    if findings := checks.check(situation):
        raise PreflightRefused(findings)
    lacking = lacking_to_retire(application, topology, connections, control)
    messages = (*checks.messages(situation), *unread, *lacking)
    if checks.is_continued(situation):
        journal = situation.control.journal
        assert journal is not None
        return Preflight(journal.plan, False, (f"continues in phase {journal.told}", *messages))
    if not changes_anything(situation):
        return Preflight(
            None, True, (f"{application.application_id} is already at {target} partitions", *messages)
        )
    return Preflight(situation.plan, False, messages)


def look_around(
    application: Application,
    topology: Topology,
    connection: KafkaConnection,
    control: ControlState,
    *,
    target: int,
) -> tuple[Situation, tuple[str, ...]]:
    """Gather what the checks look at.

    :returns: the situation, and one line per partition that could not be sampled in time.
    """
    admin = ClusterAdmin(connection)
    cluster = describe(admin, application, topology, control.generations)
    situation = Situation(application, topology, target, cluster, control)
    names = [] if situation.is_in_place else green_names(application, situation.green).all_of(topology)
    names += [name for name in situation.successors().values() if name not in cluster.topics]
    green = admin.describe_topics(names)
    sampled, codecs = _sample(situation, admin, connection)
    situation = replace(
        situation,
        codecs=codecs,
        cluster=replace(cluster, topics={**cluster.topics, **green}),
        samples=sampled.samples,
        visible=frozenset(admin.list_topics()),
        green_records=record_counts(admin.begin_offsets(green), admin.end_offsets(green, read_committed=False)),
        bridged_ends=ends_of_bridged(connection, control.journal),
        green_group=admin.describe_group(situation.green),
    )
    return situation, tuple(f"{topic}-{p}: could not be sampled in time." for topic, p in sampled.unread)


def _sample(
    situation: Situation, admin: ClusterAdmin, connection: KafkaConnection
) -> tuple[Sampled, dict[str, str]]:
    """Sample what has keys that decide partitions; an expansion in progress was sampled when it began.

    :returns: samples, and the codecs of the topics that are compressed.
    """
    journal = situation.control.journal
    if journal is not None and journal.in_progress:
        return Sampled(()), {}
    declared = [i.topic for i in situation.keyed_inputs()]
    wanted = list(map(situation.full_name, [*declared, *sorted(situation.topology.repartitions)]))
    wanted += map(situation.changelog, situation.topology.stores)
    present = [name for name in wanted if name in situation.cluster.topics]
    begins, ends = admin.begin_offsets(present), admin.end_offsets(present)
    kept = {i.topic for i in situation.keyed_inputs()} - situation.successors().keys()
    copied = {topic: end for topic, end in ends.items() if topic not in map(situation.full_name, kept)}
    return sample(connection, begins, ends), codecs_of(connection, begins, copied)
