"""One look at an application for autoscaling (KIP-878): read the cluster, decide, record the decision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.autoscaling.decision import Decision, Look, RunState
from kafka_rescale.core.autoscaling.parallelism import Observed, observe
from kafka_rescale.core.control.autoscaling import Autoscaling
from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.keys import Concern
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.preflight.described import Described
from kafka_rescale.core.topology.topology import Topology
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.admin.describe import describe
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.control_topic import ControlTopic

JOB = "watch"


@dataclass(frozen=True)
class Watched:
    """What a look has seen, and its decision.

    :param just_gave_up: whether this very look has given up. Later looks only repeat that.
    """

    observed: Observed
    decision: Decision
    just_gave_up: bool = False


def watch(
    application: Application,
    topology: Topology,
    connection: KafkaConnection,
    *,
    by: str,
    attempt: int,
    run_state: Callable[[str], RunState],
    now_ms: int,
) -> Watched:
    """Look once.

    The decision is recorded before it is acted on. The writer of this record never fences an expansion.

    :param by: ``<dag_id>/<run_id>`` of this watch.
    :param attempt: number of the task's attempt.
    :param run_state: takes ``<dag_id>/<run_id>``; returns the state of this run in Airflow.
    :param now_ms: wall clock, in ms since the epoch.
    :raises Outage: the brokers don't answer. The next look may get an answer.
    :raises Fenced: a newer attempt is looking.
    """
    control = ControlTopic(connection, application.application_id)
    state = control.read()
    known = state.autoscaling or Autoscaling()
    observed = observe(_described(application, topology, connection, state))
    run, owner = (
        run_state(named) if named else RunState.ABSENT
        for named in (known.run, observed.in_progress.owner if observed.in_progress else "")
    )
    holder = state.lease.holder if state.lease is not None else ""
    held_by = holder if holder and run_state(holder) is RunState.RUNNING else ""
    # An expansion from a shell is no run in Airflow. So a lease that has not expired counts too.
    is_leased = bool(held_by) or (bool(holder) and state.lease is not None and state.lease.expires_at_ms > now_ms)
    decision = Look(application, observed, known, run, owner, by, now_ms, held_by, is_leased).decide()
    if decision.record != known:
        control.ensure()
        result = JobResult(
            job=JOB, run=by, attempt=attempt, state=decision.outcome, as_of_ms=now_ms, detail=decision.reason
        )
        control.put_result(result, {Concern.AUTOSCALING: decision.record})
    return Watched(observed, decision, just_gave_up=decision.record.failures > known.failures)


def _described(
    application: Application, topology: Topology, connection: KafkaConnection, state: ControlState
) -> Described:
    admin = ClusterAdmin(connection)
    cluster = describe(admin, application, topology, state.generations)
    # Topics that an expansion has created so far are part of its progress.
    planned = {m.target for m in state.journal.plan.moves} if state.journal else set()
    made = admin.describe_topics(planned - cluster.topics.keys())
    cluster = replace(cluster, topics={**made, **cluster.topics})
    return Described(application, topology, application.partitions, state, cluster)
