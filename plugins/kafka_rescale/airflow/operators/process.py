"""The tasks of a pipeline's run: who runs what, and one ``spark-submit`` for each stream thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import Context

from kafka_rescale.airflow.backfills import generation_of
from kafka_rescale.airflow.hooks.rescale import KafkaRescaleHook
from kafka_rescale.airflow.operators.base import RescaleOperator
from kafka_rescale.airflow.operators.spark_submit import RescaleSparkSubmitOperator
from kafka_rescale.airflow.runs import owner_of

if TYPE_CHECKING:
    from kafka_rescale.core.processing.request import ProcessRequest


class AssignOperator(RescaleOperator):
    """Create the internal topics that are missing, and give every task of a pipeline to a stream thread."""

    operator_extra_links = ()

    def execute(self, context: Context) -> list[str]:
        """Return the names of the threads that have a part in this run."""
        from kafka_rescale.operations.load import load_pipeline_application
        from kafka_rescale.operations.processing import prepare

        application, backfill = generation_of(load_pipeline_application(self.application_file), context)
        prepared = prepare(application, self.connection(application), owner_of(context), backfill)
        self.log.info("%s", prepared)
        return list(prepared.processing.running)


class ProcessOperator(RescaleSparkSubmitOperator):
    """
    Run what one stream thread was assigned of one level of a pipeline, if there is anything to read.

    :param application_file: path of the application file, read again when the task runs (templated)
    :param level: counting from 1 at the sub-topologies that no other one feeds
    :param thread: name of the stream thread (templated)
    """

    template_fields: Sequence[str] = (*RescaleSparkSubmitOperator.template_fields, "application_file", "thread")
    operator_extra_links: tuple[Any, ...] = ()

    def __init__(self, *, application_file: str, level: int, thread: str, **kwargs: Any) -> None:
        self.application_file = application_file
        self.level = level
        self.thread = thread
        super().__init__(job="process", **kwargs)

    def execute(self, context: Context) -> dict[str, Any]:
        """Return the job's result."""
        from kafka_rescale.operations.load import load_pipeline_application
        from kafka_rescale.operations.processing import is_idle

        application, _ = generation_of(load_pipeline_application(self.application_file), context)
        request = self._request(context)
        self.application_id, self.result_key = application.application_id, request.key
        connection = KafkaRescaleHook(kafka_config_id=self.kafka_conn_id).connection()
        if is_idle(application, connection, owner_of(context), request):
            self.log.info("Everything has been processed.")
            return {}
        return super().execute(context)

    def _request(self, context: Context) -> ProcessRequest:
        from kafka_rescale.core.processing.request import ProcessRequest
        from kafka_rescale.operations.load import load_pipeline_application

        application, backfill = generation_of(load_pipeline_application(self.application_file), context)
        return ProcessRequest(
            pipeline=application.pipeline,
            state_dir=application.state_dir,
            thread=self.thread,
            level=self.level,
            backfill=backfill,
        )

    def _arguments(self, context: Context) -> list[str]:
        return [*super()._arguments(context), "--request", self._request(context).model_dump_json()]
