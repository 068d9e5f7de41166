"""Operators that end an expansion: complete it, accept findings, roll it back, or delete old generations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from airflow.sdk import Context

from kafka_rescale.airflow.operators.base import RescaleOperator
from kafka_rescale.airflow.runs import APPROVAL_TASKS, asked_ms, failed_tasks, owner_of, triggered_by, was_marked
from kafka_rescale.core.errors import InvalidInput, Refused
from kafka_rescale.core.expansion.pacing_say import LIMIT


class RollBackOperator(RescaleOperator):
    """
    Start the running generation again as it was. After the promotion, do nothing.

    If a person asked for the rollback and it does nothing, the task fails. A successful task would tell that
    person that the rollback was done.

    :param reason: the reason, for the journal (templated); the failed tasks of this run are added to it
    :param take_over: whether to take the lease from the run that holds it; only if a person asked for the rollback
    """

    ui_color = "#f3e0a6"
    template_fields: Sequence[str] = (*RescaleOperator.template_fields, "reason")

    def __init__(self, *, reason: str, take_over: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.reason = reason
        self.take_over = take_over

    def execute(self, context: Context) -> dict[str, Any]:
        """Return ``is_done``, whether the attempt is rolled back, and ``told``, a sentence about it."""
        from kafka_rescale.operations.expansion.rollback import roll_back

        failed = failed_tasks(owner_of(context))
        reason = f"{self.reason}: {', '.join(failed)}" if failed else self.reason
        how: dict[str, Any] = {"take_over": self.take_over, "stopped_by": self._stopped_by(failed, context)}
        if self.take_over:
            how["asked_ms"] = asked_ms(self, context)
        outcome = self.run_owned(roll_back, context, reason=reason, **how)
        if self.take_over and not outcome.is_done:
            raise Refused(
                f"rollback asked for by {context['dag_run'].run_id}",
                found=outcome.told,
                expected="an expansion in progress that has not been promoted",
                remedy="Nothing has been changed.",
            )
        return asdict(outcome)

    def _stopped_by(self, failed: Sequence[str], context: Context) -> str:
        """Return the person or the approval that has ended the attempt; empty if a task has failed by itself."""
        if self.take_over:
            return triggered_by(context)
        approvals = [task for task in failed if task in APPROVAL_TASKS]
        return f"{' and '.join(approvals)}, without an approval" if approvals else ""


class EnsureRunningOperator(RescaleOperator):
    """
    See to it at the end of a run that a generation runs, even if a person has marked the run before its end.

    It is a teardown task, because Airflow ends or skips every other task of such a run. If the run was marked, the
    task fails, and so does the run, whatever the mark was: the expansion is not complete.
    """

    ui_color = "#f3e0a6"

    def execute(self, context: Context) -> dict[str, Any]:
        """Return ``has_acted``, whether there was something to do, and ``told``, a sentence about it."""
        from kafka_rescale.operations.expansion.ensure_running import ensure_running

        run = owner_of(context)
        reason = f"{context['dag_run'].run_id} has ended before its expansion"
        outcome = self.run_owned(ensure_running, context, reason=reason)
        if outcome.has_acted or was_marked(run):
            raise Refused(
                f"run {run}",
                found="the end of its tasks before the end of its expansion, as after a mark by a person",
                expected="an expansion that is complete",
                remedy=f"{outcome.told}."
                if outcome.has_acted
                else f"{outcome.told}. If it is not complete, clear the tasks that are left, or trigger again.",
            )
        return asdict(outcome)


class AcceptOperator(RescaleOperator):
    """
    Accept findings, in the name of the person who has triggered the run.

    :param findings: names of the findings, as verify reports them (templated)
    :param reason: why the findings may be accepted (templated)
    """

    ui_color = "#f3e0a6"
    template_fields: Sequence[str] = (*RescaleOperator.template_fields, "findings", "reason")

    def __init__(self, *, findings: Sequence[str] | str, reason: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.findings = findings
        self.reason = reason

    def execute(self, context: Context) -> list[str]:
        """Return one sentence for each accepted finding."""
        from kafka_rescale.operations.verify.accept import accept

        application = self.application()
        accepted = accept(
            application,
            self.connection(application),
            findings=self.findings.split() if isinstance(self.findings, str) else self.findings,
            by=triggered_by(context),
            reason=self.reason,
        )
        return [str(each) for each in accepted]


class SwitchOperator(RescaleOperator):
    """
    Say when the switch shall begin, in the name of the person who has triggered the run.

    :param action: ``postpone``, ``cut over now`` or ``cancel`` (templated)
    :param until: for ``postpone``, until when; empty for no time (templated)
    :param reason: why (templated)
    """

    ui_color = "#f3e0a6"
    template_fields: Sequence[str] = (*RescaleOperator.template_fields, "action", "until", "reason")

    def __init__(self, *, action: str, until: str = "", reason: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.action = action
        self.until = until
        self.reason = reason

    def execute(self, context: Context) -> str:
        """Return what the switch waits for now."""
        from kafka_rescale.operations.expansion.switch import say_action

        application = self.application()
        said = say_action(
            application,
            self.connection(application),
            self.action,
            by=triggered_by(context),
            until=self.until,
            reason=self.reason,
            asked_ms=asked_ms(self, context),
        )
        self.log.info("%s", said)
        return said


class PaceOperator(RescaleOperator):
    """
    Limit, pause or resume the copy, in the name of the person who has triggered the run.

    :param action: ``limit``, ``pause`` or ``resume`` (templated)
    :param bytes_per_second: for ``limit``; empty for no limit (templated)
    :param reason: why (templated)
    """

    ui_color = "#f3e0a6"
    template_fields: Sequence[str] = (
        *RescaleOperator.template_fields,
        "action",
        "bytes_per_second",
        "reason",
    )

    def __init__(
        self, *, action: str, bytes_per_second: str | int | None = "", reason: str = "", **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.action = action
        self.bytes_per_second = bytes_per_second
        self.reason = reason

    def execute(self, context: Context) -> str:
        """Return the pace that holds now."""
        from kafka_rescale.operations.expansion.pace import say_pace

        self._assert_limit()
        application = self.application()
        told = say_pace(
            application,
            self.connection(application),
            self.action,
            by=triggered_by(context),
            bytes_per_second=int(self.bytes_per_second) if self.bytes_per_second else None,
            reason=self.reason,
            asked_ms=asked_ms(self, context),
        )
        self.log.info("%s", told)
        return told

    def _assert_limit(self) -> None:
        """Refuse a limit that is no rate: 0 must not remove the limit.

        :raises InvalidInput: it is neither empty nor a whole number from 1 on.
        """
        limit = "" if self.bytes_per_second is None else str(self.bytes_per_second).strip()
        if self.action == LIMIT and limit and not (limit.isdecimal() and int(limit)):
            raise InvalidInput(
                "pace",
                found=f"a limit of {limit!r}",
                expected="1 or more bytes per second, or nothing for no limit",
                remedy="Correct the limit; the action `pause` stops the copy. Nothing has been changed.",
            )


class FinishOperator(RescaleOperator):
    """Complete the expansion: call the application's callback once, complete the journal, release the lease."""

    ui_color = "#c9e8cf"

    def execute(self, context: Context) -> Any:
        """Return a summary."""
        from kafka_rescale.operations.expansion.finish import finish

        return self.run_owned(finish, context)


class RetireOperator(RescaleOperator):
    """
    Delete the topics and groups of all earlier generations. Refuse while the running generation is unproven.

    :param dry_run: whether to list only what would be deleted; a boolean or its text. Without it, the DAG's param
        `dry_run` decides (templated)
    :param confirm: id of the application, so that nobody retires topics by mistake. Without it, the DAG's param
        `confirm` has it. A dry run needs none (templated)
    """

    ui_color = "#f6c7b6"
    template_fields: Sequence[str] = (*RescaleOperator.template_fields, "dry_run", "confirm")

    def __init__(self, *, dry_run: bool | str | None = None, confirm: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.dry_run = dry_run
        self.confirm = confirm

    def _chosen(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the task says, or else the form. Only a clear no is no dry run.

        :raises InvalidInput: neither of them says it.
        """
        given = {"dry_run": self.dry_run, "confirm": self.confirm}
        told = {name: params.get(name) if value is None else value for name, value in given.items()}
        is_dry_run = str(told["dry_run"]).lower() != "false"
        needed = ("dry_run",) if is_dry_run else ("dry_run", "confirm")
        for name in needed:
            if given[name] is None and name not in params:
                raise InvalidInput(
                    f"task {self.task_id}",
                    found=f"neither `{name}` nor a param of that name",
                    expected="one of the two",
                    remedy=f"Pass `{name}` to the RetireOperator, or give the DAG the param. "
                    "Nothing has been deleted.",
                )
        return {"dry_run": is_dry_run, "confirm": told["confirm"]}

    def execute(self, context: Context) -> Any:
        """Return the deleted topics of each generation; in a dry run, the topics that would be deleted."""
        from kafka_rescale.operations.expansion.retire import retire

        params = self._chosen(context["params"])
        name = self.application().application_id
        if not params["dry_run"] and params["confirm"] != name:
            raise Refused(
                f"retirement of {name}",
                found="no confirmation",
                expected=f"`{name}` in the field *Application to confirm*, or a dry run",
                remedy="Trigger it with the dry run on to see what would be deleted. Nothing has been deleted.",
            )
        return self.run_owned(retire, context, dry_run=params["dry_run"], asked_ms=asked_ms(self, context))
