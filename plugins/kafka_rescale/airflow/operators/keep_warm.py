"""The tasks that keep the standbys and warm-ups of a pipeline warm."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow.sdk import Context
from airflow.sdk.bases.skipmixin import SkipMixin

from kafka_rescale.airflow.operators.base import RescaleOperator
from kafka_rescale.airflow.operators.spark_submit import RescaleSparkSubmitOperator

if TYPE_CHECKING:
    from kafka_rescale.core.pipeline_application import PipelineApplication
    from kafka_rescale.core.processing.request import KeepWarmRequest


class StandbysOperator(RescaleOperator):
    """Find the clients of a pipeline whose standbys and warm-ups have something to read."""

    operator_extra_links = ()

    def execute(self, context: Context) -> list[str]:
        """Return the ids of the clients."""
        from kafka_rescale.operations.keep_warm import due_clients
        from kafka_rescale.operations.load import load_pipeline_application

        application = load_pipeline_application(self.application_file)
        return due_clients(application, self.connection(application))


class KeepWarmOperator(RescaleSparkSubmitOperator):
    """
    Let the standbys and warm-ups of one client read what was written to the changelogs.

    :param application_file: path of the application file, read again when the task runs (templated)
    :param client: id of the client (templated)
    """

    template_fields: Sequence[str] = (*RescaleSparkSubmitOperator.template_fields, "application_file", "client")
    operator_extra_links: tuple[Any, ...] = ()

    def __init__(self, *, application_file: str, client: str, **kwargs: Any) -> None:
        self.application_file = application_file
        self.client = client
        super().__init__(job="keep_warm", **kwargs)

    @cached_property
    def _application(self) -> PipelineApplication:
        from kafka_rescale.operations.load import load_pipeline_application

        return load_pipeline_application(self.application_file)

    def execute(self, context: Context) -> dict[str, Any]:
        """Return the job's result."""
        self._runs_on(self._application.member(self.client))
        self.result_key = self._request().key
        return super().execute(context)

    def _request(self) -> KeepWarmRequest:
        from kafka_rescale.operations.keep_warm import request_for

        return request_for(self._application, self.client)

    def _arguments(self, context: Context) -> list[str]:
        return [*super()._arguments(context), "--request", self._request().model_dump_json()]


class ProbeOperator(RescaleOperator, SkipMixin):
    """Look whether a rebalance is due because something warms up, and skip what comes behind if there is none."""

    inherits_from_skipmixin = True
    operator_extra_links = ()

    def execute(self, context: Context) -> str:
        """Return the id of the run that is to be triggered; the same one for the same rebalance."""
        from kafka_rescale.operations.keep_warm import probe
        from kafka_rescale.operations.load import load_pipeline_application

        application = load_pipeline_application(self.application_file)
        found = probe(application, self.connection(application))
        self.log.info("%s", found.reason)
        if not found.run_id:
            self.skip(ti=context["ti"], tasks=context["task"].get_flat_relatives(upstream=False))
        return found.run_id
