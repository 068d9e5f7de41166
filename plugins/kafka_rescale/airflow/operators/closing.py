"""Operators that end an expansion: complete it, accept findings, roll it back, or delete what it has left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from airflow.sdk import Context

from kafka_rescale.airflow.operators.base import RescaleOperator
from kafka_rescale.airflow.runs import airflow_id, failed_tasks, owner_of
from kafka_rescale.core.errors import Refused


class RollBackOperator(RescaleOperator):
    """
    Start the running generation again as it was; nothing to do once the new one is promoted.

    Where a person asked for it, a rollback that does nothing fails: green would say that it was done.

    :param reason: why, for the journal (templated); the tasks of this run that have failed are named behind it
    :param take_over: take the lease from whoever holds it; only where a person asked for the rollback
    """

    ui_color = "#f3e0a6"
    template_fields: Sequence[str] = (*RescaleOperator.template_fields, "reason")

    def __init__(self, *, reason: str, take_over: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.reason = reason
        self.take_over = take_over

    def execute(self, context: Context) -> dict[str, Any]:
        """Return whether the attempt is rolled back (``is_done``), and a sentence about it (``told``)."""
        from kafka_rescale.operations.expansion.rollback import roll_back

        failed = failed_tasks(owner_of(context))
        reason = f"{self.reason}: {', '.join(failed)}" if failed else self.reason
        how = {"take_over": self.take_over, "airflow": airflow_id() if self.take_over else ""}
        outcome = self.run_owned(roll_back, context, reason=reason, **how)
        if self.take_over and not outcome.is_done:
            raise Refused(
                f"rollback asked for by {context['dag_run'].run_id}",
                found=outcome.told,
                expected="an expansion in progress that has not been promoted",
                remedy="Nothing has been changed.",
            )
        return asdict(outcome)


class AcceptOperator(RescaleOperator):
    """
    Accept what verify has found; in the name of whoever has triggered the run.

    :param findings: their names, as verify reports them
    :param reason: why they may be accepted (templated)
    """

    ui_color = "#f3e0a6"
    template_fields: Sequence[str] = (*RescaleOperator.template_fields, "findings", "reason")

    def __init__(self, *, findings: Sequence[str] | str, reason: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.findings = findings
        self.reason = reason

    def execute(self, context: Context) -> list[str]:
        """Return what was accepted, in a sentence each."""
        from kafka_rescale.operations.verify.accept import accept

        application, run = self.application(), context["dag_run"]
        who = getattr(run, "triggering_user_name", None)
        accepted = accept(
            application,
            self.connection(application),
            findings=self.findings.split() if isinstance(self.findings, str) else self.findings,
            by=f"{who or 'somebody'} ({owner_of(context)})",
            reason=self.reason,
        )
        return [str(each) for each in accepted]


class FinishOperator(RescaleOperator):
    """Complete the expansion: the application's callback once, the journal, the lease."""

    ui_color = "#c9e8cf"

    def execute(self, context: Context) -> Any:
        """Return a summary."""
        from kafka_rescale.operations.expansion.finish import finish

        return self.run_owned(finish, context)


class RetireOperator(RescaleOperator):
    """Delete the topics and groups of all earlier generations; refused while the running one is not proven."""

    ui_color = "#f6c7b6"

    def execute(self, context: Context) -> Any:
        """Return the topics that were deleted, or in a dry run would be, per generation."""
        from kafka_rescale.operations.expansion.retire import retire

        params = context["params"]
        name = self.application().application_id
        if not params["dry_run"] and params["confirm"] != name:
            raise Refused(
                f"retirement of {name}",
                found="no confirmation",
                expected=f"`{name}` in the field *Application to confirm*, or a dry run",
                remedy="Trigger it with the dry run on to see what would be deleted. Nothing has been deleted.",
            )
        return self.run_owned(retire, context, dry_run=params["dry_run"])
