"""One reading of the lag gate, from the cluster and the control topic as they are now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from kafka_rescale.core.control.journal import Journal, Phase
from kafka_rescale.core.errors import Outage, RescaleError
from kafka_rescale.core.expansion.bridge_progress import HEARTBEAT_MS, NOT_AT_WORK
from kafka_rescale.core.expansion.bridge_progress import JOB as BRIDGE
from kafka_rescale.core.expansion.lag import GateDecision, decide, expected_sources
from kafka_rescale.core.expansion.pacing_words import told_stop
from kafka_rescale.core.expansion.silent_jobs import silent_of, with_silent_jobs
from kafka_rescale.core.values import listed

if TYPE_CHECKING:
    from kafka_rescale.core.control.job_results import JobResult
    from kafka_rescale.core.control.progress import PartitionProgress
    from kafka_rescale.core.control.state import ControlState
    from kafka_rescale.kafka.client.connection import KafkaConnection
    from kafka_rescale.kafka.control.lag_gate_record import GateRecord


class GateReason(StrEnum):
    """The reason of a gate's answer. The trigger's event carries it."""

    OPEN = "open"
    WARMED = "warmed"
    PAST = "past"
    HOLDING = "holding"
    PAUSED = "paused"
    JOB_NOT_READY = "job_not_ready"
    LEASE_LOST = "lease_lost"
    REFUSED = "refused"

    @property
    def passes(self) -> bool:
        """Whether the run may go on."""
        return self in {GateReason.OPEN, GateReason.WARMED, GateReason.PAST}

    @property
    def is_final(self) -> bool:
        """Whether waiting longer can't change the answer."""
        return self in {GateReason.WARMED, GateReason.PAST, GateReason.LEASE_LOST, GateReason.REFUSED}

    @property
    def ends_wait(self) -> bool:
        """Whether the task need not wait: the run may go on, or it never may."""
        return self.passes or self.is_final


@dataclass(frozen=True)
class Gate:
    """What a gate waits for.

    :param application: Base name of the application.
    :param owner: The run that must hold the lease.
    :param threshold: Acceptable lag in offsets per partition.
    :param stage: Index of the stage. With None the gate waits for all stages at the same time.
    :param warmed_by: A job of this run. The lags that it measured last open the gate too.
    :param ready_job: A job of this run that must be in state ``ready``; or the bridge, if the plan has bridges.
    """

    application: str
    owner: str
    threshold: int
    stage: int | None = None
    warmed_by: str | None = None
    ready_job: str | None = None

    @property
    def job(self) -> str:
        """The name of the gate in the control topic, where it stands beside the jobs."""
        return "gate_all" if self.stage is None else f"lag_gate/{self.stage}"


@dataclass(frozen=True)
class Reading:
    """The gate's answer at one moment, with the lags that it rests on.

    :param progress: What was measured. It is empty if the answer needed no measurement.
    """

    reason: GateReason
    decision: GateDecision = field(default_factory=lambda: GateDecision((), 0))
    detail: str = ""
    progress: tuple[PartitionProgress, ...] = ()

    def event(self) -> dict[str, Any]:
        """Return the reading as the payload of a trigger's event."""
        lags = [[each.topic, each.partition, each.lag] for each in self.decision.lags]
        return {
            "reason": self.reason.value,
            "threshold": self.decision.threshold,
            "lags": lags,
            "detail": self.detail,
        }

    def __str__(self) -> str:
        holding = self.decision.holding
        return " ".join((self.reason.value, self.detail, listed(list(map(str, holding))))).strip()


@dataclass
class Readings:
    """The readings of one gate by one process; each is kept in the control topic, for the page."""

    gate: Gate
    _record: GateRecord | None = None

    def take(self, connection: KafkaConnection) -> Reading:
        """Look once, and keep what was measured; blocks, so triggers call it in a thread."""
        from kafka_rescale.kafka.control.lag_gate_record import GateRecord

        reading, gate = look(connection, self.gate), self.gate
        if reading.progress:
            if self._record is None:
                self._record = GateRecord(connection, gate.application, gate.job, gate.owner)
            self._record.add(reading.progress, gate.threshold, reading.reason.value)
        return reading


def not_answered(error: RescaleError) -> Reading:
    """Return the reading for an error. The gate waits out an outage; any other error ends the wait."""
    reason = GateReason.HOLDING if isinstance(error, Outage) else GateReason.REFUSED
    return Reading(reason, detail=str(error))


def look(connection: KafkaConnection, gate: Gate) -> Reading:
    """Read the control topic and the lags once. This blocks, so triggers call it in a thread."""
    from kafka_rescale.kafka.client.waiting import now_ms
    from kafka_rescale.kafka.control.control_topic import ControlTopic
    from kafka_rescale.operations.expansion.stages import lags

    state = with_silent_jobs(ControlTopic(connection, gate.application).read(), now_ms())
    if (reading := _before_lags(state, gate)) is not None:
        return reading
    assert state.journal is not None
    expected = expected_sources(state.journal.plan, gate.stage)
    progress = tuple(lags(connection, state.journal.plan, gate.stage))
    decision = decide(progress, gate.threshold, expected)
    measured = None if decision.is_open else _measured_by_job(state, gate, expected)
    reason = GateReason.OPEN if decision.is_open else GateReason.WARMED if measured else GateReason.HOLDING
    awaited = _awaited(state.journal, state.results, gate, now_ms()) if reason.passes else ""
    detail = awaited or ("" if reason.passes else _silent(state, gate))
    reason = GateReason.JOB_NOT_READY if awaited else reason
    if stop := told_stop(state, now_ms()):
        # The tasks behind the gate would copy nothing either, so the gate stays shut.
        return Reading(GateReason.PAUSED, measured or decision, f"the copy is {stop}", progress)
    return Reading(reason, measured or decision, detail, progress)


def journal_of(connection: KafkaConnection, application: str) -> Journal | None:
    """Return the journal of an application's expansion; None if the application never had an expansion."""
    from kafka_rescale.kafka.control.control_topic import ControlTopic

    return ControlTopic(connection, application).read().journal


def phase_of(connection: KafkaConnection, application: str) -> Phase | None:
    """Return the phase of an application's expansion; None if the application never had an expansion."""
    journal = journal_of(connection, application)
    return journal.phase if journal is not None else None


def _before_lags(state: ControlState, gate: Gate) -> Reading | None:
    lease, journal = state.lease, state.journal
    if lease is None or journal is None or lease.holder != gate.owner:
        holder = (lease and lease.holder) or "no run"
        return Reading(GateReason.LEASE_LOST, detail=f"the lease held by {holder} instead of {gate.owner}")
    if journal.phase in {Phase.ROLLING_BACK, Phase.ROLLED_BACK}:
        return Reading(GateReason.LEASE_LOST, detail=f"phase {journal.told}")
    if journal.phase is not Phase.WARMING:
        return Reading(GateReason.PAST, detail=f"phase {journal.phase}: the cutover has already begun")
    return None


def _awaited(journal: Journal, results: Mapping[str, JobResult], gate: Gate, now_ms: int) -> str:
    """Return which job is not up yet, and what to do; empty if the gate waits for no job."""
    if gate.ready_job is None or (gate.ready_job == BRIDGE and not journal.plan.bridges):
        return ""
    result = results.get(gate.ready_job)
    if result is None:
        said = "not started"
    elif gate.ready_job == BRIDGE:
        # The bridge has a run of its own, and may have died since its last report.
        said = result.state if now_ms - result.as_of_ms < HEARTBEAT_MS else "not at work"
    else:
        said = result.state if result.run == gate.owner else "not started"
    if said == "ready":
        return ""
    if said == NOT_AT_WORK:
        return _not_at_work(gate.ready_job)
    remedy = f"; see that bridge_{gate.application} is not paused" if gate.ready_job == BRIDGE else ""
    return f"{gate.ready_job} is {said}{remedy}"


def _silent(state: ControlState, gate: Gate) -> str:
    """Return which jobs of this run report no more; empty if none. It stays the same while nothing changes."""
    return ", ".join(_not_at_work(each.job) for each in silent_of(state, gate.owner))


def _not_at_work(job: str) -> str:
    return f"{job} is not at work; look at its task"


def _measured_by_job(state: ControlState, gate: Gate, expected: frozenset[tuple[str, int]]) -> GateDecision | None:
    result = state.results.get(gate.warmed_by or "")
    if result is None or result.run != gate.owner or result.state != "done":
        return None
    decision = decide(result.partitions, gate.threshold, expected)
    return decision if decision.is_open else None
