"""Submit the snapshot of the day that a run's data interval covers, or of the last day before the run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import Context

from kafka_rescale.airflow.operators.spark_submit import RescaleSparkSubmitOperator
from kafka_rescale.core.job_requests import as_argument

if TYPE_CHECKING:
    from kafka_rescale.core.snapshots.day import SnapshotDay


class SnapshotOperator(RescaleSparkSubmitOperator):
    """
    Write the state of every store as of the end of the data interval.

    A run that was triggered without a logical date has no data interval. It takes the last day that was over when
    the run was due.

    :param application_file: path of the application file, read again when the task runs (templated)
    :param start: start of the data interval, ISO 8601, or empty (templated)
    :param end: exclusive end of the data interval, ISO 8601, or empty (templated)
    :param from_scratch: whether to use no earlier snapshot; a boolean or its text (templated)
    """

    template_fields: Sequence[str] = (
        *RescaleSparkSubmitOperator.template_fields,
        "application_file",
        "start",
        "end",
        "from_scratch",
    )

    def __init__(
        self, *, application_file: str, start: str, end: str, from_scratch: str | bool = False, **kwargs: Any
    ) -> None:
        self.application_file = application_file
        self.start = start
        self.end = end
        self.from_scratch = from_scratch
        super().__init__(job="snapshot", **kwargs)

    def execute(self, context: Context) -> dict[str, Any]:
        """Return the job's result: the number of records read, and the rows of each store."""
        self.result_key = f"snapshot/{self._day(context)}"
        return super().execute(context)

    def _day(self, context: Context) -> SnapshotDay:
        from kafka_rescale.core.snapshots.day import SnapshotDay

        if not self.start and not self.end:
            return SnapshotDay.last_before(context["dag_run"].run_after)
        return SnapshotDay.of_interval(self.start, self.end)

    def _arguments(self, context: Context) -> list[str]:
        from kafka_rescale.core.snapshots.request import request_of
        from kafka_rescale.operations.application.load import load_application, topology_of

        application = load_application(self.application_file)
        request = request_of(
            application,
            topology_of(application),
            self._day(context),
            from_scratch=str(self.from_scratch).lower() == "true",
        )
        return [*super()._arguments(context), "--request", as_argument(request)]
