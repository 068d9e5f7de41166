"""The steps that stop and start the application: all that happens while it is down."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import Context

from kafka_rescale.airflow.metrics import report_downtime
from kafka_rescale.airflow.operators.base import RescaleOperator

if TYPE_CHECKING:
    from kafka_rescale.core.application import Application


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
