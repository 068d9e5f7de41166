"""The operators of the steps before the application is stopped. Each makes one call into ``operations``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from airflow.sdk import Context
from airflow.sdk.bases.skipmixin import SkipMixin
from airflow.sdk.exceptions import AirflowSkipException

from kafka_rescale.airflow.markdown import plan_brief, plan_markdown, remarks_markdown, steps_markdown
from kafka_rescale.airflow.operators.base import RescaleOperator
from kafka_rescale.airflow.runs import (
    AIRFLOW_KEY,
    LATE_TOLD_KEY,
    PLAN_BRIEF_KEY,
    PLAN_STEPS_KEY,
    PLAN_TABLE_KEY,
    PREFLIGHT_TASK,
    airflow_id,
    is_begun_by_schedule,
    noted_before,
    owner_is_finished,
    owner_of,
    triggered_by,
)
from kafka_rescale.airflow.spark.cores import room_needed
from kafka_rescale.airflow.spark.kafka_for_spark import require_kafka_for_spark
from kafka_rescale.core.application.config_files import SPARK_ROLES
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.expansion.cutover_steps import cutover_steps
from kafka_rescale.core.expansion.late_run import is_news, remark_on_late_run
from kafka_rescale.core.plan.chain import ChainRun
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.core.plan.prediction import Prediction
from kafka_rescale.core.preflight.expected_state import ExpectedState
from kafka_rescale.core.roles import Role
from kafka_rescale.spark.jobs.files import require_spark_files


class PreflightOperator(RescaleOperator, SkipMixin):
    """
    Describe the application and its cluster, and refuse what can't work, before anything is touched.

    A run that the schedule has begun long after its time ends here, and all other tasks are skipped.

    :param target: desired partition count, or empty for the count of the application file (templated)
    :param expected: whether the application has to be ``running`` or ``stopped``, or ``either`` (templated)
    :param after_readers: whether a chain expands the readers of the application first, and has not done it yet;
        a boolean or its text (templated)
    """

    inherits_from_skipmixin = True
    template_fields: Sequence[str] = (*RescaleOperator.template_fields, "target", "expected", "after_readers")
    role = Role.PLAN

    def __init__(
        self,
        *,
        target: str | int | None = None,
        expected: str = ExpectedState.EITHER,
        after_readers: str | bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.target = target
        self.expected = expected
        self.after_readers = after_readers

    def execute(self, context: Context) -> dict[str, Any]:
        """Return ``plan`` and ``predicted`` (or None), ``noop`` (is nothing to do?) and ``messages``."""
        from kafka_rescale.core.acls.needed import needed_acls
        from kafka_rescale.kafka.client.waiting import now_ms
        from kafka_rescale.operations.application.load import topology_of
        from kafka_rescale.operations.preflight.overreach import overreach
        from kafka_rescale.operations.preflight.preflight import preflight

        application = self.application()
        if is_begun_by_schedule(context):
            self._skip_if_late(application.schedule, context)
        topology = topology_of(application)
        connections = {role: self.connection(application, role) for role in Role}
        of_jobs = {role: connections[role] for role in SPARK_ROLES}
        network = require_kafka_for_spark(application, of_jobs, [(application.spark_conn_id, {})])
        handler = connections[Role.VERIFY].java().get("sasl.login.callback.handler.class")
        if room := room_needed(application):
            self.log.info("%s", room)
        for hint in filter(None, (network, require_spark_files(handler))):
            self.log.warning("%s", hint)
        target = int(self.target) if self.target else None
        result = preflight(
            application,
            topology,
            connections[self.role],
            target=target or application.partitions,
            owner=owner_of(context),
            now_ms=now_ms(),
            owner_is_finished=owner_is_finished,
            airflow=airflow_id(),
            expected=ExpectedState(self.expected),
            others=connections,
            chain_run=ChainRun(target) if str(self.after_readers).lower() == "true" else None,
        )
        acls = needed_acls(application, topology)
        for warning in overreach(Path(self.application_file), application.application_id, acls):
            self.log.warning("%s", warning)
        messages = [*result.messages, *self._paused_bridge(result.plan, context)]
        for message in messages:
            self.log.info("%s", message)
        plan = result.plan.model_dump(mode="json") if result.plan else None
        predicted = result.predicted.model_dump(mode="json") if result.predicted else None
        return {"plan": plan, "noop": result.noop, "messages": messages, "predicted": predicted}

    def _skip_if_late(self, schedule: str | None, context: Context) -> None:
        now = datetime.now(UTC)
        told = remark_on_late_run(schedule, context["dag_run"].run_after, now)
        if told:
            self.log.warning("%s", told)
            is_told = is_news(now, noted_before(context, LATE_TOLD_KEY))
            if is_told:
                context["ti"].xcom_push(key=LATE_TOLD_KEY, value=now.isoformat())
            found = {"plan": None, "noop": True, "messages": [told], "predicted": None, "is_told": is_told}
            context["ti"].xcom_push(key="return_value", value=found)  # skip() leaves by an exception
            # All tasks behind this one: Airflow's rules would begin `ensure_running`, which takes a run without
            # `callback` for one that a person has marked.
            self.skip(ti=context["ti"], tasks=context["task"].get_flat_relatives(upstream=False))

    @staticmethod
    def _paused_bridge(plan: Plan | None, context: Context) -> Iterator[str]:
        """Yield a warning if the bridge's DAG is paused, because the cutover will wait for the bridge."""
        if plan is not None and plan.bridges:
            dag_id = f"bridge_{plan.application}"
            if context["ti"].get_dag(dag_id).is_paused:
                yield f"{dag_id} is paused: unpause it, or the cutover waits for it in vain."


class PlanOperator(RescaleOperator, SkipMixin):
    """
    Show the plan of the task `preflight`. Then take the lease and begin, or end the run if it is a dry run or
    there is nothing to do. That task needs exactly this id. The tasks behind look for the plan in a task `plan`.

    :param only_show: whether the run is a dry run, which ends after the plan; a boolean or its text (templated)
    """

    inherits_from_skipmixin = True
    template_fields: Sequence[str] = (*RescaleOperator.template_fields, "only_show")

    def __init__(self, *, only_show: str | bool, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.only_show = only_show

    def execute(self, context: Context) -> dict[str, Any] | None:
        """Begin the plan and return it for the stages. Push its table, brief and cutover for the approvals."""
        found = context["ti"].xcom_pull(task_ids=PREFLIGHT_TASK)
        if found is None:
            raise InvalidInput(
                f"task {self.task_id}",
                found=f"no result of a task `{PREFLIGHT_TASK}` in this run",
                expected="a PreflightOperator before it, with exactly that task id, and in no task group",
                remedy="Correct the DAG, and trigger it again. Nothing has been touched.",
            )
        plan = Plan.model_validate(found["plan"]) if found["plan"] else None
        told = found["messages"]
        table = f"{plan_markdown(plan)}\n{remarks_markdown(told)}" if plan else "\n".join(told)
        self.log.info("\n%s", table)
        context["ti"].xcom_push(key=PLAN_TABLE_KEY, value=table)
        if plan is not None:
            context["ti"].xcom_push(key=PLAN_BRIEF_KEY, value=f"{plan_brief(plan)}\n{remarks_markdown(told)}")
            steps = self._steps(plan, context)
            self.log.info("\n%s", steps)
            context["ti"].xcom_push(key=PLAN_STEPS_KEY, value=steps)
        if plan is not None and not found["noop"] and str(self.only_show).lower() != "true":
            said = found.get("predicted")  # a run that an earlier version began has no prediction
            self._begin(plan, context, Prediction.model_validate(said) if said else None)
            return plan.model_dump(mode="json")
        self.log.info("Nothing to do." if plan is None or found["noop"] else "Dry run: the run ends here.")
        context["ti"].xcom_push(key="return_value", value=found["plan"])  # skip() leaves by an exception
        self.skip(ti=context["ti"], tasks=context["task"].get_flat_relatives(upstream=False))
        return None

    def _steps(self, plan: Plan, context: Context) -> str:
        """Return what the cutover of this run will do, with the limit of the pause that the run was given."""
        limit = context["params"].get("max_pause_seconds")
        declared = self.application()
        application = declared.model_copy(update={"max_pause_seconds": limit}) if limit else declared
        return steps_markdown(cutover_steps(plan, application))

    def _begin(self, plan: Plan, context: Context, predicted: Prediction | None) -> None:
        from kafka_rescale.kafka.client.waiting import now_ms
        from kafka_rescale.operations.expansion.begin import begin

        application, airflow = self.application(), airflow_id()
        # Before the lease is taken: the later tasks of the run name the same Airflow.
        context["ti"].xcom_push(key=AIRFLOW_KEY, value=airflow)
        begin(
            application,
            self.connection(application),
            plan,
            owner=owner_of(context),
            now_ms=now_ms(),
            owner_is_finished=owner_is_finished,
            airflow=airflow,
            triggered_by=triggered_by(context),
            predicted=predicted,
        )


class ExpandStageOperator(RescaleOperator):
    """
    Grow a stage's outputs and create its green topics. Topics that are already as planned stay as they are.

    :param stage: index of the stage, counted from 1 at the most downstream stage
    """

    def __init__(self, *, stage: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.stage = stage

    def execute(self, context: Context) -> Any:
        """Return the changes, one line for each."""
        from kafka_rescale.operations.expansion.stages import expand_stage

        return self.run_owned(expand_stage, context, stage=self.stage)


class PrewarmOperator(RescaleOperator):
    """
    Let the new generation restore its stores behind the warm-up gate. If that is not possible, the task is
    skipped.

    :param local_state_deleted: whether a person has confirmed that no local state of an earlier pre-warming is
        left; a boolean or its text (templated)
    """

    template_fields: Sequence[str] = (*RescaleOperator.template_fields, "local_state_deleted")
    ui_color = "#fbe3c9"

    def __init__(self, *, local_state_deleted: str | bool, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.local_state_deleted = local_state_deleted

    def execute(self, context: Context) -> Any:
        """Return how many seconds each part of the pre-warming took."""
        from kafka_rescale.operations.expansion.prewarm import prewarm

        deleted = str(self.local_state_deleted).lower() == "true"
        timings = self.run_owned(prewarm, context, local_state_deleted=deleted)
        if timings is None:
            raise AirflowSkipException("not pre-warmed; the log lines above say why")
        return timings
