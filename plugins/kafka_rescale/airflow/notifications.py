"""Hand the events of an expansion to the notifiers that its application file names."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from airflow.configuration import conf
from airflow.sdk import BaseNotifier, BaseOperator, Context

from kafka_rescale.airflow.operators.admin import PreflightOperator
from kafka_rescale.airflow.operators.approval import OptionalApprovalOperator
from kafka_rescale.airflow.operators.closing import FinishOperator, RollBackOperator
from kafka_rescale.airflow.operators.watch import WatchOperator
from kafka_rescale.airflow.page_path import page_path
from kafka_rescale.airflow.sensors.pause_alert import PauseAlertSensor
from kafka_rescale.airflow.told_before import note_failure
from kafka_rescale.core.application.notifications import Notification
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.callables import named
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.expansion import notices
from kafka_rescale.core.expansion.notices import Notice

if TYPE_CHECKING:
    from airflow.sdk import DAG

log = logging.getLogger(__name__)

_EVERY_FEW_MINUTES = ("watch_", "bridge_")
"""The DAGs whose schedule tries again within minutes, so that one failure would be told all night long."""

NoticeOf = Callable[[str, Context], Notice | None]
"""Makes a notice from an application's name and the context of a task; None if there is nothing to tell."""


class RescaleNotifier(BaseNotifier):
    """
    Call every notifier that an application file names for an event.

    Each notifier gets the context of the task. In it, ``rescale`` holds the parts of the notice. If a notifier
    fails, the failure is logged, and the other notifiers and the task go on.

    :param application: the application as parsed
    :param notice_of: makes the notice; if it returns None, no notifier is called
    """

    def __init__(self, *, application: Application, notice_of: NoticeOf) -> None:
        super().__init__()
        self.application = application
        self.notice_of = notice_of

    def notify(self, context: Context) -> None:
        """Make the notice and hand it on."""
        notice = self.notice_of(self.application.application_id, context)
        if notice is None:
            return
        notice = replace(notice, run=_run_of(context), url=_url(notice.application))
        for declared in self.application.notifications_of(notice.event):
            try:
                # A notifier renders its templates in place, so each notice needs a new one.
                notifier_of(declared)({**context, "rescale": notice.fields()})
            except Exception:
                log.exception("Notifier %s failed for event %s.", declared.notifier, notice.event)
            else:
                log.info("Notifier %s has handled event %s.", declared.notifier, notice.event)


def notifier_of(declared: Notification) -> BaseNotifier:
    """Return the notifier that an application file names.

    :raises InvalidInput: The class can't be imported, is not a notifier, or doesn't take these arguments.
    """
    expected = "an importable notifier of Airflow (BaseNotifier) that takes these arguments"
    kind = named("notifier", declared.notifier, expected)
    found = ""
    if not (isinstance(kind, type) and issubclass(kind, BaseNotifier)):
        found = "something that is not a BaseNotifier"
    else:
        try:
            return kind(**declared.arguments)
        except Exception as error:
            found = f"{type(error).__name__}: {error}"
    raise InvalidInput(
        f"notifier {declared.notifier!r}",
        found=found,
        expected=expected,
        remedy="Correct `notifications:` of the application file.",
    )


def attach(dag: DAG, application: Application) -> None:
    """Give the tasks of a DAG the callbacks that an application file asks for.

    It makes each notifier once, so that a mistake shows when the DAG is parsed and not when the notifier is
    needed.

    :raises InvalidInput: A notifier can't be used.
    """
    if not application.notifications:
        return
    for declared in application.notifications:
        notifier_of(declared)
    failure: NoticeOf = _autoscaling_failed if dag.dag_id.startswith("watch_") else _failed
    if dag.dag_id.startswith(_EVERY_FEW_MINUTES):
        failure = partial(_unless_told, failure)
    for task in dag.tasks:
        task.on_failure_callback = [RescaleNotifier(application=application, notice_of=failure)]
        if isinstance(task, OptionalApprovalOperator):
            task.notifiers = [RescaleNotifier(application=application, notice_of=_approval)]
        for kind, notice_of in _ON_SUCCESS:
            if isinstance(task, kind):
                task.on_success_callback = [RescaleNotifier(application=application, notice_of=notice_of)]


def _approval(application: str, context: Context) -> Notice:
    task: Any = context["task"]
    return notices.approval(application, task.subject, task.body or "")


def _failed(application: str, context: Context) -> Notice:
    return notices.failed(application, context["task"].task_id, context.get("exception"))


def _autoscaling_failed(application: str, context: Context) -> Notice:
    return notices.autoscaling_failed(application, context["task"].task_id, context.get("exception"))


def _unless_told(notice_of: NoticeOf, application: str, context: Context) -> Notice | None:
    return notice_of(application, context) if note_failure(context) else None


def _complete(application: str, context: Context) -> Notice:
    result = _result(context)
    return notices.complete(
        application,
        result["green"],
        result["timings"],
        result.get("copies"),
        result.get("not_copied", ()),
        result.get("accepted", 0),
    )


def _skipped(application: str, context: Context) -> Notice | None:
    result = _result(context)
    return notices.skipped(application, " ".join(result["messages"])) if result.get("is_told") else None


def _rolled_back(application: str, context: Context) -> Notice | None:
    result = _result(context)
    return notices.rolled_back(application, result["told"]) if result["is_done"] else None


def _gave_up(application: str, context: Context) -> Notice | None:
    result = _result(context)
    return notices.gave_up(application, result["reason"]) if result.get("just_gave_up") else None


def _long_pause(application: str, context: Context) -> Notice | None:
    event, task = _result(context), context["task"]
    if not event["late"]:
        return None
    assert isinstance(task, PauseAlertSensor)
    return notices.long_pause(application, event["seconds"], event["phase"], task.limit_seconds)


_ON_SUCCESS: Sequence[tuple[type[BaseOperator], NoticeOf]] = (
    (PreflightOperator, _skipped),
    (FinishOperator, _complete),
    (RollBackOperator, _rolled_back),
    (WatchOperator, _gave_up),
    (PauseAlertSensor, _long_pause),
)


def _result(context: Context) -> Any:
    """Return the return value of the task itself."""
    return context["ti"].xcom_pull(task_ids=context["task"].task_id)


def _run_of(context: Context) -> str:
    run = context.get("dag_run")
    return f"{run.dag_id}/{run.run_id}" if run is not None else ""


def _url(application: str) -> str:
    base = urlsplit(conf.get("api", "base_url", fallback="") or "")
    return f"{base.scheme}://{base.netloc}{page_path(application)}" if base.netloc else ""
