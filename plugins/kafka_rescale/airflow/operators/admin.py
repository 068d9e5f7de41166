"""The steps that Airflow itself performs: one operator per step, one call each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import Context
from airflow.sdk.bases.skipmixin import SkipMixin
from airflow.sdk.exceptions import AirflowSkipException

from kafka_rescale.airflow.markdown import plan_markdown
from kafka_rescale.airflow.metrics import report_downtime
from kafka_rescale.airflow.operators.base import RescaleOperator
from kafka_rescale.airflow.runs import (
    PLAN_TABLE_KEY,
    PREFLIGHT_TASK,
    airflow_id,
    owner_is_finished,
    owner_of,
)
from kafka_rescale.airflow.spark_connection import require_spark_master
from kafka_rescale.core.acls import Role
from kafka_rescale.core.plan import Plan

if TYPE_CHECKING:
    from kafka_rescale.core.application import Application


class PreflightOperator(RescaleOperator):
    """
    Describe everything and refuse what can't work before anything is touched.

    :param target: desired partition count, or empty for the application file's (templated)
    """

    template_fields: Sequence[str] = (*RescaleOperator.template_fields, "target")
    role = Role.PLAN

    def __init__(self, *, target: str | int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.target = target

    def execute(self, context: Context) -> dict[str, Any]:
        """Return ``plan`` (or None), ``noop`` and ``messages``."""
        from kafka_rescale.kafka.waiting import now_ms
        from kafka_rescale.operations.load import topology_of
        from kafka_rescale.operations.preflight import preflight

        application = self.application()
        require_spark_master(application.spark_conn_id)
        result = preflight(
            application,
            topology_of(application),
            self.connection(application),
            target=int(self.target) if self.target else application.partitions,
            owner=owner_of(context),
            now_ms=now_ms(),
            owner_is_finished=owner_is_finished,
            others={role: self.connection(application, role) for role in Role},
        )
        for message in result.messages:
            self.log.info("%s", message)
        plan = result.plan.model_dump(mode="json") if result.plan else None
        return {"plan": plan, "noop": result.noop, "messages": [str(m) for m in result.messages]}


class PlanOperator(RescaleOperator, SkipMixin):
    """
    Show the plan; then end the run if it is a dry run or there is nothing to do, else take the lease and begin.

    :param only_show: end after the plan is shown; a boolean or its text (templated)
    """

    inherits_from_skipmixin = True
    template_fields: Sequence[str] = (*RescaleOperator.template_fields, "only_show")

    def __init__(self, *, only_show: str | bool, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.only_show = only_show

    def execute(self, context: Context) -> dict[str, Any] | None:
        """Return the plan that was begun, for the stages; push its table for the approval."""
        found = context["ti"].xcom_pull(task_ids=PREFLIGHT_TASK)
        plan = Plan.model_validate(found["plan"]) if found["plan"] else None
        table = plan_markdown(plan) if plan else "\n".join(found["messages"])
        self.log.info("\n%s", table)
        context["ti"].xcom_push(key=PLAN_TABLE_KEY, value=table)
        if plan is not None and not found["noop"] and str(self.only_show).lower() != "true":
            self._begin(plan, context)
            return plan.model_dump(mode="json")
        self.log.info("Nothing to do." if plan is None or found["noop"] else "Dry run: it ends here.")
        context["ti"].xcom_push(key="return_value", value=found["plan"])  # skip() leaves by an exception
        self.skip(ti=context["ti"], tasks=context["task"].get_flat_relatives(upstream=False))
        return None

    def _begin(self, plan: Plan, context: Context) -> None:
        from kafka_rescale.kafka.waiting import now_ms
        from kafka_rescale.operations.begin import begin

        application = self.application()
        begin(
            application,
            self.connection(application),
            plan,
            owner=owner_of(context),
            now_ms=now_ms(),
            owner_is_finished=owner_is_finished,
            airflow=airflow_id(),
        )


class ExpandStageOperator(RescaleOperator):
    """
    Grow a stage's outputs and create its green topics; acts only on the difference.

    :param stage: index of the stage, counting from 1 at the most downstream
    """

    def __init__(self, *, stage: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.stage = stage

    def execute(self, context: Context) -> Any:
        """Return what was changed, one line each."""
        from kafka_rescale.operations.stages import expand_stage

        return self.run_owned(expand_stage, context, stage=self.stage)


class PrewarmOperator(RescaleOperator):
    """Let the new generation restore its stores behind the warm-up gate; skipped where that can't be."""

    ui_color = "#fbe3c9"

    def execute(self, context: Context) -> Any:
        """Return the seconds that it took."""
        from kafka_rescale.operations.prewarm import prewarm

        timings = self.run_owned(prewarm, context)
        if timings is None:
            raise AirflowSkipException("not pre-warmed; the lines above say why")
        return timings


class PausingOperator(RescaleOperator):
    """
    Base of the steps that stop the application.

    :param max_pause_seconds: until the promotion, or empty for the application file's (templated)
    """

    template_fields: Sequence[str] = (*RescaleOperator.template_fields, "max_pause_seconds")

    def __init__(self, *, max_pause_seconds: str | int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.max_pause_seconds = max_pause_seconds

    def application(self) -> Application:
        """Return the application with the limit of this run."""
        declared = super().application()
        chosen = {"max_pause_seconds": int(self.max_pause_seconds)} if self.max_pause_seconds else {}
        return declared.model_copy(update=chosen)


class StopOperator(PausingOperator):
    """Stop the application so that its own topics can grow; from here on only forward."""

    ui_color = "#f6c7b6"

    def execute(self, context: Context) -> Any:
        """Return the parts of the pause so far in seconds."""
        from kafka_rescale.operations.in_place import stop

        return self.run_owned(stop, context)


class StartOperator(RescaleOperator):
    """Start the application whose topics have grown."""

    ui_color = "#c9e8cf"

    def execute(self, context: Context) -> Any:
        """Return the parts of the pause in seconds."""
        from kafka_rescale.operations.in_place import start

        timings = self.run_owned(start, context)
        report_downtime(self.application().application_id, timings)
        return timings


class CutoverOperator(PausingOperator):
    """Stop the running generation, carry over the rest, promote the new one and start it."""

    ui_color = "#f6c7b6"

    def execute(self, context: Context) -> Any:
        """Return the parts of the pause in seconds."""
        from kafka_rescale.operations.cutover import run_cutover

        timings = self.run_owned(run_cutover, context)
        report_downtime(self.application().application_id, timings)
        return timings
