"""The tasks of an expansion, each made from the application file alone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from airflow.sdk import TriggerRule

from kafka_rescale.airflow.operators.admin import (
    ExpandStageOperator,
    PlanOperator,
    PreflightOperator,
    PrewarmOperator,
)
from kafka_rescale.airflow.operators.approval import OptionalApprovalOperator
from kafka_rescale.airflow.operators.closing import FinishOperator, RollBackOperator
from kafka_rescale.airflow.operators.cutover import CutoverOperator
from kafka_rescale.airflow.operators.spark_submit import RescaleSparkSubmitOperator
from kafka_rescale.airflow.retries import FIRST_IN_LINE, THROUGH_AN_OUTAGE, UNTIL_SOMEBODY_RUNS
from kafka_rescale.airflow.runs import PREWARM_TASK
from kafka_rescale.airflow.sensors.lag_gate import LagGateSensor
from kafka_rescale.airflow.sensors.pause_alert import PauseAlertSensor
from kafka_rescale.airflow.spark.kafka_for_spark import kafka_arguments
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.roles import Role

PLAN_TABLE = "{{ ti.xcom_pull(task_ids='plan', key='table') }}"
LAG_TABLE = "{{ ti.xcom_pull(task_ids='gate_all', key='table') }}"
MAX_PAUSE = "{{ params.max_pause_seconds or '' }}"
STAGE_GATE_TIMEOUT = timedelta(hours=1)
AFTER_PREWARM = TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS
"""An application that can't be pre-warmed has that task skipped, and goes on; a dry run has everything skipped."""


@dataclass(frozen=True)
class ExpansionTasks:
    """Makes the tasks of one application's expansion; the DAG that is open takes them up.

    :param application: as parsed; tasks read its file again when they run.
    :param file: path of the application file.
    """

    application: Application
    file: str

    def preflight(self) -> PreflightOperator:
        """Check everything."""
        return PreflightOperator(
            task_id="preflight",
            application_file=self.file,
            target="{{ params.target or '' }}",
            expected="{{ params.expected_state }}",
        )

    def plan(self) -> PlanOperator:
        """Show the plan and begin, or end the run."""
        return PlanOperator(task_id="plan", application_file=self.file, only_show="{{ params.dry_run }}")

    def approve_plan(self) -> OptionalApprovalOperator:
        """Ask before anything is created."""
        return OptionalApprovalOperator(
            task_id="approve_plan",
            enabled_by="approve_plan",
            subject=f"Expand {self.application.application_id} as planned?",
            body=PLAN_TABLE,
            # A run that continues a cutover is not held up by this one, either.
            **self._cutover_of(),
        )

    def expand(self, stage: int) -> ExpandStageOperator:
        """Create a stage's topics."""
        return ExpandStageOperator(task_id="expand", application_file=self.file, stage=stage)

    def spark(self, job: str, stage: int | None = None, **arguments: Any) -> RescaleSparkSubmitOperator:
        """Run a Spark job."""
        return RescaleSparkSubmitOperator(
            task_id=job,
            job=job,
            stage=stage,
            application_id=self.application.application_id,
            conn_id=self.application.spark_conn_id,
            acceptable_lag=self._acceptable_lag() if job in {"warm_up", "catch_up"} else None,
            **kafka_arguments(self.application, Role.VERIFY if job == "verify" else Role.COPY),
            **{"conf": dict(self.application.spark_conf), **arguments},
        )

    def restore(self, stage: int, *, idle: bool) -> RescaleSparkSubmitOperator:
        """Copy a stage's state."""
        snapshots = self.application.snapshots
        return self.spark("restore", stage, idle=idle, snapshots=snapshots.location if snapshots else None)

    def lag_gate(self, stage: int) -> LagGateSensor:
        """Wait until a stage's copies are near."""
        return LagGateSensor(
            task_id="lag_gate",
            stage=stage,
            warmed_by=f"warm_up/{stage}",
            timeout=STAGE_GATE_TIMEOUT,
            **self._gate(),
        )

    def prewarm(self) -> PrewarmOperator:
        """Restore green's stores ahead of the pause."""
        return PrewarmOperator(
            task_id=PREWARM_TASK,
            application_file=self.file,
            local_state_deleted="{{ params.local_state_deleted }}",
        )

    def gate_all(self) -> LagGateSensor:
        """Wait until all copies are near at the same time, beside a ``catch_up`` that is ready."""
        return LagGateSensor(
            task_id="gate_all",
            ready_job="catch_up",
            trigger_rule=AFTER_PREWARM,
            **self._gate(),
            **FIRST_IN_LINE,
        )

    def approve_cutover(self) -> OptionalApprovalOperator:
        """Ask before the running generation is stopped."""
        return OptionalApprovalOperator(
            task_id="approve_cutover",
            enabled_by="approve_cutover",
            subject=f"Cut {self.application.application_id} over now?",
            body=f"{LAG_TABLE}\n\n{PLAN_TABLE}",
            **self._cutover_of(),
        )

    def approve_stop(self) -> OptionalApprovalOperator:
        """Ask before the application is stopped to grow in place; the param is the one of a cutover."""
        return OptionalApprovalOperator(
            task_id="approve_cutover",
            enabled_by="approve_cutover",
            subject=f"Stop {self.application.application_id} now, and let its topics grow for good?",
            body=PLAN_TABLE,
            **self._cutover_of(),
        )

    def cutover(self) -> CutoverOperator:
        """Stop, carry over, promote, start; in place, stop, grow, move, start."""
        return CutoverOperator(
            task_id="cutover",
            application_file=self.file,
            max_pause_seconds=MAX_PAUSE,
            **UNTIL_SOMEBODY_RUNS,
        )

    def pause_alert(self) -> list[PauseAlertSensor]:
        """Watch the pause beside the task that makes it; none where no limit is declared."""
        if self.application.pause_alert_seconds is None:
            return []
        sensor = PauseAlertSensor(
            task_id="pause_alert",
            application_id=self.application.application_id,
            kafka_config_id=self.application.kafka_conn_id_of(Role.PLAN),
            limit_seconds=self.application.pause_alert_seconds,
            **FIRST_IN_LINE,
        )
        return [sensor]

    def callback(self) -> FinishOperator:
        """Call back, complete, release."""
        return FinishOperator(task_id="callback", application_file=self.file, **THROUGH_AN_OUTAGE)

    def roll_back(self) -> RollBackOperator:
        """Undo what was begun if anything before promotion fails."""
        return RollBackOperator(
            task_id="roll_back",
            application_file=self.file,
            reason="{{ run_id }} has failed",
            trigger_rule=TriggerRule.ONE_FAILED,
            **UNTIL_SOMEBODY_RUNS,
        )

    def _cutover_of(self) -> dict[str, Any]:
        return {
            "cutover_of": self.application.application_id,
            "kafka_config_id": self.application.kafka_conn_id_of(Role.PLAN),
        }

    def _gate(self) -> dict[str, Any]:
        return {
            "application_id": self.application.application_id,
            "kafka_config_id": self.application.kafka_conn_id_of(Role.PLAN),
            "acceptable_lag": self._acceptable_lag(),
        }

    def _acceptable_lag(self) -> str:
        default, chosen = self.application.acceptable_recovery_lag, "params.acceptable_recovery_lag"
        return f"{{{{ {default} if {chosen} is none else {chosen} }}}}"
