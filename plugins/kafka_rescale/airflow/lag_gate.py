"""One reading of the lag gate, from the cluster and the control topic as they are now."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from kafka_rescale.core.control.journal import Phase
from kafka_rescale.core.errors import Outage, RescaleError
from kafka_rescale.core.expansion.lag import GateDecision, decide, expected_sources

if TYPE_CHECKING:
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


@dataclass(frozen=True)
class Gate:
    """What a gate waits for.

    :param application: Base name of the application.
    :param owner: The run that must hold the lease.
    :param threshold: Acceptable lag in offsets per partition.
    :param stage: Index of the stage. With None the gate waits for all stages at the same time.
    :param warmed_by: A job of this run. The lags that it measured last open the gate too.
    :param ready_job: A job of this run that must be in state ``ready``.
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
        more = f" and {len(holding) - 5} more" if len(holding) > 5 else ""
        return " ".join((self.reason.value, self.detail, ", ".join(map(str, holding[:5])) + more)).strip()


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
    """Return the reading that an error stands for: an outage is waited out, anything else ends the wait."""
    reason = GateReason.HOLDING if isinstance(error, Outage) else GateReason.REFUSED
    return Reading(reason, detail=str(error))


def look(connection: KafkaConnection, gate: Gate) -> Reading:
    """Read the control topic and the lags once. This blocks, so triggers call it in a thread."""
    from kafka_rescale.kafka.control.control_topic import ControlTopic
    from kafka_rescale.operations.expansion.stages import lags

    state = ControlTopic(connection, gate.application).read()
    if (reading := _before_lags(state, gate)) is not None:
        return reading
    assert state.journal is not None
    expected = expected_sources(state.journal.plan, gate.stage)
    progress = tuple(lags(connection, state.journal.plan, gate.stage))
    decision = decide(progress, gate.threshold, expected)
    if not decision.is_open:
        measured = _measured_by_job(state, gate, expected)
        reason = GateReason.WARMED if measured else GateReason.HOLDING
        return Reading(reason, measured or decision, progress=progress)
    ready = gate.ready_job is None or _state_of_job(state, gate) == "ready"
    return Reading(GateReason.OPEN if ready else GateReason.JOB_NOT_READY, decision, progress=progress)


def phase_of(connection: KafkaConnection, application: str) -> Phase | None:
    """Return the phase of an application's expansion; None if the application never had an expansion."""
    from kafka_rescale.kafka.control.control_topic import ControlTopic

    journal = ControlTopic(connection, application).read().journal
    return journal.phase if journal is not None else None


def _before_lags(state: ControlState, gate: Gate) -> Reading | None:
    lease, journal = state.lease, state.journal
    if lease is None or journal is None or lease.holder != gate.owner:
        held = (lease and lease.holder) or "no run"
        return Reading(GateReason.LEASE_LOST, detail=f"the lease held by {held} instead of {gate.owner}")
    if journal.phase in {Phase.ROLLING_BACK, Phase.ROLLED_BACK}:
        return Reading(GateReason.LEASE_LOST, detail=f"phase {journal.told}")
    if journal.phase is not Phase.WARMING:
        return Reading(GateReason.PAST, detail=f"phase {journal.phase}: the cutover has already begun")
    return None


def _state_of_job(state: ControlState, gate: Gate) -> str:
    result = state.results.get(gate.ready_job or "")
    return result.state if result is not None and result.run == gate.owner else "not started"


def _measured_by_job(state: ControlState, gate: Gate, expected: frozenset[tuple[str, int]]) -> GateDecision | None:
    result = state.results.get(gate.warmed_by or "")
    if result is None or result.run != gate.owner or result.state != "done":
        return None
    decision = decide(result.partitions, gate.threshold, expected)
    return decision if decision.is_open else None
