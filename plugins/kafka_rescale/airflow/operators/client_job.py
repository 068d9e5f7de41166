"""Spark jobs on the state of one client of a pipeline."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow.sdk import Context

from kafka_rescale.airflow.operators.spark_submit import RescaleSparkSubmitOperator
from kafka_rescale.core.job_requests import as_argument

if TYPE_CHECKING:
    from kafka_rescale.core.application.pipeline import PipelineApplication
    from kafka_rescale.core.processing.request import ClientRequest


class ClientJobOperator(RescaleSparkSubmitOperator):
    """
    Run a job on the Spark cluster of one client of a pipeline, where this client has its state.

    :param application_file: path of the application file, read again when the task runs (templated)
    :param client: id of the client (templated)
    """

    template_fields: Sequence[str] = (*RescaleSparkSubmitOperator.template_fields, "application_file", "client")
    operator_extra_links: tuple[Any, ...] = ()

    def __init__(self, *, application_file: str, client: str, **kwargs: Any) -> None:
        self.application_file = application_file
        self.client = client
        super().__init__(**kwargs)

    def execute(self, context: Context) -> dict[str, Any]:
        """Return the job's result."""
        self._runs_on(self._application.member(self.client))
        self.result_key = self._request.key
        return super().execute(context)

    @cached_property
    def _application(self) -> PipelineApplication:
        from kafka_rescale.operations.application.load import load_pipeline_application

        return load_pipeline_application(self.application_file)

    @cached_property
    @abstractmethod
    def _request(self) -> ClientRequest:
        """The request that the job gets."""

    def _arguments(self, context: Context) -> list[str]:
        return [*super()._arguments(context), "--request", as_argument(self._request)]
