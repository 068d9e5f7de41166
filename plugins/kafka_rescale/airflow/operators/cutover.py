"""The step that stops and starts the application, with everything that happens while it is down."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import Context

from kafka_rescale.airflow.metrics import report_downtime
from kafka_rescale.airflow.operators.base import RescaleOperator

if TYPE_CHECKING:
    from kafka_rescale.core.application.streams import Application


class CutoverOperator(RescaleOperator):
    """
    Stop the running generation, copy the last records, promote the new generation and start it.

    In place there is no new generation: the application's own topics grow, and the application starts again.

    :param max_pause_seconds: most seconds until the promotion, or empty for the application file's value
        (templated)
    """

    template_fields: Sequence[str] = (*RescaleOperator.template_fields, "max_pause_seconds")
    ui_color = "#f6c7b6"

    def __init__(self, *, max_pause_seconds: str | int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.max_pause_seconds = max_pause_seconds

    def application(self) -> Application:
        """Return the application, with this run's limit of the pause."""
        declared = super().application()
        chosen = {"max_pause_seconds": int(self.max_pause_seconds)} if self.max_pause_seconds else {}
        return declared.model_copy(update=chosen)

    def execute(self, context: Context) -> Any:
        """Return the seconds of each part of the pause."""
        from kafka_rescale.operations.cutover.cutover import run_cutover

        timings = self.run_owned(run_cutover, context)
        report_downtime(self.application().application_id, timings)
        return timings
