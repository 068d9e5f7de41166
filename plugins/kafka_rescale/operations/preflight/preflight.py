"""Checks everything without changing anything, and refuses what can't work. All reasons are given at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.cluster import Habit
from kafka_rescale.core.control.lease import Lease
from kafka_rescale.core.errors import PreflightRefused
from kafka_rescale.core.plan.chain import ChainRun
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.core.plan.prediction import Prediction
from kafka_rescale.core.preflight import check as checks
from kafka_rescale.core.preflight.counts import changes_anything
from kafka_rescale.core.preflight.deployment import NOT_ASKED, Deployment
from kafka_rescale.core.preflight.described import Described, Target
from kafka_rescale.core.preflight.expected_state import ExpectedState
from kafka_rescale.core.preflight.placed_keys import MayHaveGrown
from kafka_rescale.core.preflight.prediction import predicted, prediction_messages
from kafka_rescale.core.preflight.situation import Situation
from kafka_rescale.core.roles import Role
from kafka_rescale.core.topology.topology import Topology
from kafka_rescale.kafka.admin.abilities import read_abilities
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.admin.describe import describe
from kafka_rescale.kafka.admin.log_dirs import read_disks
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.lease import refuse_if_held
from kafka_rescale.kafka.copy.bridging import ends_of_bridged, ids_of_bridged
from kafka_rescale.kafka.reading.habits import habits_of
from kafka_rescale.kafka.reading.sampling import Sampled, record_counts, sample
from kafka_rescale.operations.expansion import producers
from kafka_rescale.operations.preflight.deployment import deployment_of
from kafka_rescale.operations.preflight.neighbours import neighbours
from kafka_rescale.operations.preflight.permissions import lacking_to_retire, permitted_state


@dataclass(frozen=True)
class Preflight:
    """The result of a preflight without findings.

    :param plan: what to do; None if there is nothing to do.
    :param noop: whether the application is already at the target.
    :param messages: hints for a person, one line each.
    :param predicted: what the plan will take; None if there is nothing to do, or if an expansion is continued.
    """

    plan: Plan | None
    noop: bool
    messages: tuple[str, ...]
    predicted: Prediction | None = None


def preflight(
    application: Application,
    topology: Topology,
    connection: KafkaConnection,
    *,
    target: int,
    owner: str,
    now_ms: int,
    owner_is_finished: Callable[[Lease], bool | None],
    airflow: str = "",
    expected: ExpectedState = ExpectedState.EITHER,
    others: Mapping[Role, KafkaConnection] | None = None,
    runs_commands: bool = True,
    chain_run: ChainRun | None = None,
) -> Preflight:
    """Check everything and return the plan, without writing to the cluster.

    :param target: partitions wanted.
    :param owner: the run that asks, by its name in the lease.
    :param now_ms: wall clock, in ms since the epoch.
    :param owner_is_finished: tells whether another owner's run has ended; None if that is unknown.
    :param airflow: the Airflow that the owner is a run of.
    :param expected: whether the application must run, or must be stopped.
    :param others: connections of other roles than ``plan`` whose permissions are checked as well.
    :param runs_commands: whether this machine runs the commands of the file, so that they can be checked here.
    :param chain_run: the chain's run that expands the readers of the application before it, if there is one.
    :raises InvalidInput: these settings give no connection.
    :raises LeaseHeld: another run that has not ended rescales this application.
    :raises PreflightRefused: there are findings; the error has all of them.
    """
    upstream = producers.upstream(application)
    connections = {Role.PLAN: connection, **(others or {})}
    for each in connections.values():
        each.check()
    if (verifies := connections.get(Role.VERIFY)) is not None:
        verifies.java()
    control = permitted_state(application, topology, connections)
    refuse_if_held(application.application_id, control, owner, now_ms, owner_is_finished, airflow)
    wanted = Target(application, topology, target, control)
    asked = partial(deployment_of, upstream=upstream) if runs_commands else _not_asked
    compression = connections.get(Role.COPY, connection).compression
    look = partial(
        look_around,
        wanted,
        connection,
        asked,
        compression=compression,
        expected=expected,
        now_ms=now_ms,
        chain_run=chain_run,
    )
    situation, unread = _checked(look, connection)
    lacking = lacking_to_retire(application, topology, connections, control)
    messages = (*checks.messages(situation), *prediction_messages(situation), *unread, *lacking)
    if checks.is_continued(situation):
        journal = situation.control.journal
        assert journal is not None
        return Preflight(journal.plan, False, (f"continues in phase {journal.told}", *messages))
    if not changes_anything(situation):
        return Preflight(
            None, True, (f"{application.application_id} is already at {target} partitions", *messages)
        )
    messages = (*messages, *producers.expanding(connection, application))
    return Preflight(situation.plan, False, messages, predicted(situation))


def _checked(
    look: Callable[[], tuple[Situation, tuple[str, ...]]], connection: KafkaConnection
) -> tuple[Situation, tuple[str, ...]]:
    """Look around and check; do both again if a static partitioner needs partitions that were added meanwhile.

    :param look: gathers what the checks look at.
    :returns: what ``look`` has returned last.
    :raises PreflightRefused: there are findings; the error has all of them.
    """
    while True:
        seen = look()
        situation, _ = seen
        findings = checks.check(situation)
        if not findings:
            return seen
        refusal = PreflightRefused(findings)
        if not any(isinstance(each, MayHaveGrown) for each in findings):
            raise refusal
        counted = {name: topic.partitions for name, topic in situation.cluster.topics.items()}
        ClusterAdmin(connection).await_growth(counted, refusal)


def look_around(
    target: Target,
    connection: KafkaConnection,
    asked: Callable[[Described, ClusterAdmin], Deployment],
    *,
    compression: str,
    expected: ExpectedState,
    now_ms: int,
    chain_run: ChainRun | None = None,
) -> tuple[Situation, tuple[str, ...]]:
    """Gather everything that the checks look at.

    :param asked: returns the answers of the user's own commands. It is called last, because it may wait.
    :param compression: ``compression.type`` of the connection that copies.
    :param expected: as in ``preflight``.
    :param now_ms: as in ``preflight``.
    :param chain_run: as in ``preflight``.
    :returns: the situation, and one line per partition that could not be sampled in time.
    """
    admin = ClusterAdmin(connection)
    cluster = describe(admin, target.application, target.topology, target.control.generations)
    replicas = max((topic.replication_factor for topic in cluster.topics.values()), default=0)
    cluster = replace(cluster, brokers=admin.live_brokers(replicas))
    known = Described(target.application, target.topology, target.target, target.control, cluster)
    names = [*known.green_topics, *(name for name in known.successors().values() if name not in cluster.topics)]
    green = admin.describe_topics(names)
    sampled, habits = _sample(known, admin, connection)
    topics = {**cluster.topics, **green}
    disks = read_disks(connection, {name: topics[name].partitions for name in _on_disk(known) if name in topics})
    seen = replace(cluster, topics=topics, habits=habits, disks=disks, abilities=read_abilities(connection))
    known = replace(known, cluster=seen)
    ends = admin.end_offsets(green, read_committed=False)
    records = record_counts(admin.begin_offsets(green), ends)
    beside = neighbours(known)
    situation = Situation(
        application=known.application,
        topology=known.topology,
        target=known.target,
        control=known.control,
        cluster=known.cluster,
        compression=compression,
        samples=sampled.samples,
        visible=frozenset(admin.list_topics()),
        green_records=records,
        emptied=frozenset(topic for topic, of in ends.items() if any(of.values()) and not records[topic]),
        bridged_ids=ids_of_bridged(admin, known.control.bridging),
        bridged_ends=ends_of_bridged(admin, known.control.bridging),
        green_group=admin.describe_group(known.green),
        expected=expected,
        now_ms=now_ms,
        deployment=asked(known, admin),
        neighbours=beside.declared,
        unusable=beside.unusable,
        chain_run=chain_run,
    )
    return situation, tuple(f"{topic}-{p}: could not be sampled in time." for topic, p in sampled.unread)


def _on_disk(known: Described) -> list[str]:
    """Return the topics whose sizes tell how much is written: topics to copy, and topics of earlier copies."""
    return [
        *map(known.full_name, [*sorted(known.topology.repartitions), *known.successors()]),
        *map(known.changelog, known.topology.stores),
        *known.green_topics,
    ]


def _not_asked(_: Described, __: ClusterAdmin) -> Deployment:
    return NOT_ASKED


def _sample(
    known: Described, admin: ClusterAdmin, connection: KafkaConnection
) -> tuple[Sampled, dict[str, Habit]]:
    """Sample topics whose keys decide partitions. An expansion in progress has done that when it began.

    :returns: samples, and how the topics that are copied are written.
    """
    journal = known.control.journal
    if journal is not None and journal.in_progress:
        return Sampled(()), {}
    declared = [i.topic for i in known.keyed_inputs()]
    wanted = list(map(known.full_name, [*declared, *sorted(known.topology.repartitions)]))
    wanted += map(known.changelog, known.topology.stores)
    present = [name for name in wanted if name in known.cluster.topics]
    begins, ends = admin.begin_offsets(present), admin.end_offsets(present)
    kept = {i.topic for i in known.keyed_inputs()} - known.successors().keys()
    copied = {topic: end for topic, end in ends.items() if topic not in map(known.full_name, kept)}
    return sample(connection, begins, ends), habits_of(connection, begins, copied, known.control.copied)
