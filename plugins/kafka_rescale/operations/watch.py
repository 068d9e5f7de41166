"""One look at an application for autoscaling (KIP-878): read the cluster, decide, record the decision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.autoscaling.decision import Decision, Look, Outcome, RunState, has_ended
from kafka_rescale.core.autoscaling.parallelism import Observed, observe
from kafka_rescale.core.control.autoscaling import Autoscaling
from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.keys import Concern
from kafka_rescale.core.control.lease import Lease
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.preflight.described import Described
from kafka_rescale.core.topology.topology import Topology
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.admin.describe import describe
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.lifecycle.factory import gated_start, lifecycle_of

JOB = "watch"


@dataclass(frozen=True)
class Watched:
    """What a look has seen, and its decision.

    :param just_gave_up: whether this run of the watch has given up, in this attempt or in one that ended before it
        could say so. Later runs only repeat that.
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
    airflow: str = "",
) -> Watched:
    """Look once.

    The decision is recorded before it is acted on. The writer of this record never fences an expansion.

    :param by: ``<dag_id>/<run_id>`` of this watch.
    :param attempt: number of the task's attempt.
    :param run_state: takes ``<dag_id>/<run_id>``; returns the state of this run in Airflow.
    :param now_ms: wall clock, in ms since the epoch.
    :param airflow: the Airflow of this watch; empty if that is not known.
    :raises Outage: the brokers don't answer. The next look may get an answer.
    :raises Fenced: a newer attempt is looking.
    :raises InvalidInput: the lifecycle's class can't be loaded. It is only loaded if its ``start_gated`` matters.
    """
    control = ControlTopic(connection, application.application_id)
    state = control.read()
    known = state.autoscaling or Autoscaling()
    observed = observe(_described(application, topology, connection, state))
    runs = _Runs(state.lease, run_state, now_ms, airflow)
    look = Look(
        application,
        observed,
        known,
        runs.state(known.run),
        runs.state(observed.in_progress.owner if observed.in_progress else ""),
        by,
        now_ms,
        held_by=runs.held_by,
        is_leased=runs.is_leased,
        is_prewarmed=bool(observed.unproven and topology.stores) and _has_gated_start(application),
    )
    decision = look.decide()
    if decision.record != known:
        control.ensure()
        result = JobResult(
            job=JOB, run=by, attempt=attempt, state=decision.outcome, as_of_ms=now_ms, detail=decision.reason
        )
        control.put_result(result, {Concern.AUTOSCALING: decision.record})
    gave_up = decision.outcome is Outcome.GAVE_UP and decision.record.given_up_by == by
    return Watched(observed, decision, just_gave_up=gave_up)


@dataclass(frozen=True)
class _Runs:
    """What this Airflow knows of the runs that a look is about, and of the run that holds the lease.

    :param lease: the present lease.
    :param known: takes ``<dag_id>/<run_id>``; returns the state of this run in this Airflow.
    :param airflow: this Airflow; empty if its id is not known.
    """

    lease: Lease | None
    known: Callable[[str], RunState]
    now_ms: int
    airflow: str

    def state(self, run: str) -> RunState:
        """Return the state of a run; unknown if a run of this name in another Airflow holds the lease."""
        if not run:
            return RunState.ABSENT
        return RunState.UNKNOWN if self._is_elsewhere and run == self._holder else self.known(run)

    @property
    def held_by(self) -> str:
        """The holder of the lease if it is at work, so that another run would be refused; empty otherwise."""
        return self._holder if self._is_elsewhere or self._holder_state is RunState.RUNNING else ""

    @property
    def is_leased(self) -> bool:
        """Whether the holder of the lease is at work, or may be."""
        # An expansion from a shell is no run in Airflow. So a lease that has not expired counts too. A run that
        # fails does not give its lease back. So the lease of a run that is known to have ended does not count.
        return bool(self.held_by) or (self._is_unexpired and not self._has_ended)

    @property
    def _has_ended(self) -> bool:
        return self.lease is not None and bool(has_ended(self.lease, self._holder_state, self.airflow))

    @cached_property
    def _holder_state(self) -> RunState:
        return self.state(self._holder)

    @property
    def _holder(self) -> str:
        return self.lease.holder if self.lease is not None else ""

    @property
    def _is_unexpired(self) -> bool:
        return bool(self._holder) and self.lease is not None and self.lease.expires_at_ms > self.now_ms

    @property
    def _is_elsewhere(self) -> bool:
        """Whether a run of another Airflow holds the lease. After its expiry, any run may take it."""
        return self._is_unexpired and self.lease is not None and self.lease.is_of_another(self.airflow)


def _has_gated_start(application: Application) -> bool:
    return gated_start(application, lifecycle_of(application, lambda _: False)) is not None


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
