"""A person's consent, where the run asks for it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import Context

from kafka_rescale.airflow.page_link import ApplicationPageLink
from kafka_rescale.airflow.retries import APPROVAL_RETRY_POLICY


class OptionalApprovalOperator(ApprovalOperator):
    """
    Ask a person to approve if the run's param says so; succeed at once otherwise.

    A rejection, or no answer in time, fails the task, so that the run fails and is rolled back: rejecting an
    approval that merely skipped would leave the run a success.

    :param enabled_by: name of the DAG's boolean param that asks for the approval
    :param response_timeout: how long to wait for the answer
    """

    ui_color = "#e6d9f2"
    operator_extra_links = (*ApprovalOperator.operator_extra_links, ApplicationPageLink())

    def __init__(
        self, *, enabled_by: str, response_timeout: timedelta = timedelta(hours=24), **kwargs: Any
    ) -> None:
        kwargs = {**kwargs, "retry_policy": APPROVAL_RETRY_POLICY}
        super().__init__(fail_on_reject=True, defaults=[self.REJECT], response_timeout=response_timeout, **kwargs)
        self.enabled_by = enabled_by

    def execute(self, context: Context) -> Any:
        """Return without asking unless the param is on."""
        if not context["params"][self.enabled_by]:
            self.log.info("Not asked: param %s is off.", self.enabled_by)
            return None
        return super().execute(context)
