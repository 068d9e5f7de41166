"""The tasks of an expansion, each made from its step of the run and the application file alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from airflow.sdk import BaseOperator, TaskGroup, TriggerRule

from kafka_rescale.airflow.dags.params import approval_params, whole_number
from kafka_rescale.airflow.fields import require_known_fields
from kafka_rescale.airflow.operators.admin import (
    ExpandStageOperator,
    PlanOperator,
    PreflightOperator,
    PrewarmOperator,
)
from kafka_rescale.airflow.operators.approval import CutoverApprovalOperator, OptionalApprovalOperator
from kafka_rescale.airflow.operators.closing import EnsureRunningOperator, FinishOperator, RollBackOperator
from kafka_rescale.airflow.operators.cutover import CutoverOperator
from kafka_rescale.airflow.operators.spark_submit import RescaleSparkSubmitOperator
from kafka_rescale.airflow.retries import FIRST_IN_LINE, THROUGH_AN_OUTAGE, UNTIL_A_GENERATION_RUNS
from kafka_rescale.airflow.runs import CHAINED
from kafka_rescale.airflow.sensors.lag_gate import LagGateSensor
from kafka_rescale.airflow.sensors.pause_alert import PauseAlertSensor
from kafka_rescale.airflow.sensors.switch import SwitchSensor
from kafka_rescale.airflow.spark.cores import conf_of
from kafka_rescale.airflow.spark.kafka_for_spark import kafka_arguments
from kafka_rescale.airflow.spark.settings import unrendered
from kafka_rescale.core.application.streams import Application, Mode
from kafka_rescale.core.application.topics import InputPolicy
from kafka_rescale.core.expansion.run import Begins, Step, Task, Tries, tasks_of
from kafka_rescale.core.plan.planning import stage_name
from kafka_rescale.core.roles import Role
from kafka_rescale.core.topology.topology import Topology

PLAN_TABLE = "{{ ti.xcom_pull(task_ids='plan', key='table') }}"
PLAN_BRIEF = "{{ ti.xcom_pull(task_ids='plan', key='brief') }}"
CUTOVER_STEPS = "{{ ti.xcom_pull(task_ids='plan', key='steps') }}"
MAX_PAUSE = whole_number("max_pause_seconds")
STAGE_GATE_TIMEOUT = timedelta(hours=1)

RULES = {
    Begins.ALL_SUCCEEDED: TriggerRule.ALL_SUCCESS,
    # If an application can't be pre-warmed, only that task is skipped, and the run goes on. In a dry run, all
    # earlier tasks are skipped, and so is the task itself.
    Begins.SOME_SKIPPED: TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS,
    Begins.ONE_FAILED: TriggerRule.ONE_FAILED,
    # The rule of a teardown, which a mark of the run neither ends nor skips.
    Begins.ALL_ENDED: TriggerRule.ALL_DONE_SETUP_SUCCESS,
}
RETRIES: dict[Tries, dict[str, Any]] = {
    Tries.A_FEW: {},
    Tries.MINUTES: THROUGH_AN_OUTAGE,
    Tries.UNTIL_ONE_RUNS: UNTIL_A_GENERATION_RUNS,
}


@dataclass(frozen=True)
class ExpansionTasks:
    """Makes the tasks of one application's expansion. Each task joins the DAG that is open.

    :param application: The application as parsed. A task reads the file again when it runs.
    :param file: The path of the application file.
    :param topology: The application's topology. Its sub-topologies are the stages.
    """

    application: Application
    file: str
    topology: Topology

    def tasks(self) -> tuple[Task, ...]:
        """Return the tasks of a run in their order."""
        stages = [stage_name(n, each) for n, each in enumerate(self.topology.downstream_first(), start=1)]
        return tasks_of(self.application.mode, stages)

    def operator(self, task: Task, group: TaskGroup | None = None) -> BaseOperator | None:
        """Make one task, or return None if this application doesn't need it.

        :param group: The group of the task's stage.
        """
        common = {"task_id": task.step.task, "task_group": group, **_how(task.step)}
        if task.step.is_job:
            return self._job(task, **common)
        if task.stage is not None:
            common["stage"] = task.stage
        return self._makers()[task.step.task](**common)

    def _makers(self) -> dict[str, Callable[..., BaseOperator | None]]:
        return {
            "preflight": self._preflight,
            "plan": self._plan,
            "approve_plan": self._approve_plan,
            "expand": self._expand,
            "lag_gate": self._lag_gate,
            "prewarm": self._prewarm,
            "gate_all": self._gate_all,
            "approve_cutover": self._approve_cutover,
            "await_window": self._await_window,
            "cutover": self._cutover,
            "pause_alert": self._pause_alert,
            "callback": self._callback,
            "roll_back": self._roll_back,
            "ensure_running": self._ensure_running,
        }

    def _preflight(self, **common: Any) -> PreflightOperator:
        return PreflightOperator(
            application_file=self.file,
            target=whole_number("target"),
            expected="{{ params.expected_state }}",
            # If a chain's dry run comes here, its runs of the readers have expanded nothing either.
            after_readers=f"{{{{ params.dry_run and run_id.endswith('{CHAINED}') }}}}",
            pre_execute=require_known_fields,
            **common,
        )

    def _plan(self, **common: Any) -> PlanOperator:
        return PlanOperator(application_file=self.file, only_show="{{ params.dry_run }}", **common)

    def _approve_plan(self, **common: Any) -> OptionalApprovalOperator:
        return OptionalApprovalOperator(
            enabled_by="approve_plan",
            subject=f"Expand {self.application.application_id} as planned?",
            body=PLAN_TABLE,
            # A run that continues a cutover must not wait for this approval either.
            **self._cutover_of(),
            **common,
        )

    def _expand(self, **common: Any) -> ExpandStageOperator:
        return ExpandStageOperator(application_file=self.file, **common)

    def _job(self, task: Task, **common: Any) -> RescaleSparkSubmitOperator:
        job, snapshots = task.step.task, self.application.snapshots
        return spark_job(
            self.application,
            job,
            stage=task.stage,
            idle=self._is_idle(task),
            acceptable_lag=self._acceptable_lag() if job in {"warm_up", "catch_up"} else None,
            snapshots=snapshots.location if snapshots and job == "restore" else None,
            whole="{{ params.verify_whole }}" if job == "verify" and not self._is_in_place() else False,
            **common,
        )

    def _is_idle(self, task: Task) -> bool:
        """Return whether there is nothing to copy or to move. Then no Spark driver is started."""
        if task.stage is not None:
            return self._has_no_stores(task.stage)
        if task.step.task == "prove":
            return not self.topology.stores
        return task.step.task == "move" and not (self.topology.stores or self.topology.repartitions)

    def _is_in_place(self) -> bool:
        return self.application.mode is Mode.IN_PLACE

    def _has_bridge(self) -> bool:
        """Return whether a bridge may carry an input over."""
        return any(i.policy is InputPolicy.REPARTITIONED for i in self.application.inputs)

    def _has_no_stores(self, stage: int) -> bool:
        return not self.topology.downstream_first()[stage - 1].stores

    def _lag_gate(self, **common: Any) -> LagGateSensor:
        stage = common["stage"]
        awaits_bridge = self._has_bridge() and stage == len(self.topology.subtopologies)
        return LagGateSensor(
            warmed_by=f"warm_up/{stage}",
            # The bridge must have its cores before prove, which may take all that are free.
            ready_job="bridge" if awaits_bridge else None,
            # Nothing copies behind warm_up: a second reading could only be worse than the first.
            consecutive=1,
            idle=self._has_no_stores(stage) and not awaits_bridge,
            timeout=STAGE_GATE_TIMEOUT,
            **self._gate(),
            **common,
        )

    def _prewarm(self, **common: Any) -> PrewarmOperator:
        deleted = "{{ params.local_state_deleted }}"
        return PrewarmOperator(application_file=self.file, local_state_deleted=deleted, **common)

    def _gate_all(self, **common: Any) -> LagGateSensor:
        return LagGateSensor(ready_job="catch_up", **self._gate(), **common)

    def _approve_cutover(self, **common: Any) -> CutoverApprovalOperator:
        """Make the approval before the application is stopped. Its param has the same name in both modes."""
        name, seconds = self.application.application_id, self.application.max_pause_seconds
        subject, compared = f"Cut {name} over now?", "What is written until then is compared before the promotion."
        if self._is_in_place():
            subject = f"Stop {name} now, and let its topics grow for good?"
            compared = "After the start, `verify` compares the whole state once more."
        limit = f"{whole_number('max_pause_seconds', seconds)} s"
        body = (
            f"If nothing is promoted within {limit}, the application is started again as it was. "
            f"{compared}\n\n{PLAN_BRIEF}\n\n{CUTOVER_STEPS}"
        )
        return CutoverApprovalOperator(
            application_file=self.file,
            enabled_by="approve_cutover",
            subject=subject,
            body=body,
            params=approval_params(self.application),
            response_timeout=timedelta(seconds=self.application.max_wait_seconds),
            **self._cutover_of(),
            **common,
        )

    def _await_window(self, **common: Any) -> SwitchSensor:
        return SwitchSensor(application_file=self.file, **common)

    def _cutover(self, **common: Any) -> CutoverOperator:
        return CutoverOperator(application_file=self.file, max_pause_seconds=MAX_PAUSE, **common)

    def _pause_alert(self, **common: Any) -> PauseAlertSensor | None:
        if self.application.pause_alert_seconds is None:
            return None
        return PauseAlertSensor(
            application_id=self.application.application_id,
            kafka_config_id=self.application.kafka_conn_id_of(Role.PLAN),
            limit_seconds=self.application.pause_alert_seconds,
            **common,
        )

    def _callback(self, **common: Any) -> FinishOperator:
        return FinishOperator(application_file=self.file, **common)

    def _roll_back(self, **common: Any) -> RollBackOperator:
        return RollBackOperator(application_file=self.file, reason="{{ run_id }} has failed", **common)

    def _ensure_running(self, **common: Any) -> EnsureRunningOperator:
        task = EnsureRunningOperator(application_file=self.file, **common)
        # Airflow judges a run by its leaves, and a mark skips `callback`. If this task did not count, a run that
        # was marked as failed would end as success.
        task.as_teardown(on_failure_fail_dagrun=True)
        return task

    def _cutover_of(self) -> dict[str, Any]:
        return {
            "cutover_of": self.application.application_id,
            "kafka_config_id": self.application.kafka_conn_id_of(Role.PLAN),
        }

    def _gate(self) -> dict[str, Any]:
        # A gate keeps its readings as a result of a job. `plan` may write nothing, and `copy` may read all that a
        # gate reads.
        return {
            "application_id": self.application.application_id,
            "kafka_config_id": self.application.kafka_conn_id_of(Role.COPY),
            "acceptable_lag": self._acceptable_lag(),
        }

    def _acceptable_lag(self) -> str:
        return whole_number("acceptable_recovery_lag", self.application.acceptable_recovery_lag)


def spark_job(application: Application, job: str, **arguments: Any) -> RescaleSparkSubmitOperator:
    """Return the task that runs a Spark job. By default the task has the name of the job.

    :param arguments: Arguments of the operator. They replace the arguments that follow from the application.
    """
    of_application: dict[str, Any] = {
        "task_id": job,
        "application_id": application.application_id,
        "conn_id": application.spark_conn_id,
        "conf": unrendered(conf_of(application, job)),
    }
    kafka = kafka_arguments(application, Role.VERIFY if job in {"verify", "prove"} else Role.COPY)
    return RescaleSparkSubmitOperator(job=job, **kafka, **{**of_application, **arguments})


def _how(step: Step) -> dict[str, Any]:
    """Return the operator's arguments for when a step begins, its priority for a slot, and its retries."""
    urgent = FIRST_IN_LINE if step.is_urgent else {}
    return {"trigger_rule": RULES[step.begins], **RETRIES[step.tries], **urgent}
