"""The tasks of a pipeline's run: who runs what, and one ``spark-submit`` for each stream thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import Context

from kafka_rescale.airflow.hooks.rescale import KafkaRescaleHook
from kafka_rescale.airflow.operators.base import RescaleOperator
from kafka_rescale.airflow.operators.spark_submit import RescaleSparkSubmitOperator
from kafka_rescale.airflow.runs import owner_of

if TYPE_CHECKING:
    from kafka_rescale.core.processing.request import ProcessRequest


class AssignOperator(RescaleOperator):
    """
    Create the internal topics that are missing, and give every task of a pipeline to a stream thread.

    :param expand_processors: how many processors every sub-topology shall have; None and "" leave it (templated)
    """

    template_fields: Sequence[str] = (*RescaleOperator.template_fields, "expand_processors")
    operator_extra_links = ()

    def __init__(self, *, expand_processors: int | str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.expand_processors = expand_processors

    def execute(self, context: Context) -> list[str]:
        """Return the names of the threads that have a part in this run."""
        from kafka_rescale.operations.load import load_pipeline_application
        from kafka_rescale.operations.processing import prepare
        from kafka_rescale.operations.processors import expand_processors

        application = load_pipeline_application(self.application_file)
        connection = self.connection(application)
        if self.expand_processors not in {None, "", "None"}:
            expand_processors(application, connection, int(self.expand_processors or 0))
        prepared = prepare(application, connection, owner_of(context))
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

        self.result_key = self._request().key
        connection = KafkaRescaleHook(kafka_config_id=self.kafka_conn_id).connection()
        application = load_pipeline_application(self.application_file)
        if is_idle(application, connection, owner_of(context), self._request()):
            self.log.info("Everything has been processed.")
            return {}
        return super().execute(context)

    def _request(self) -> ProcessRequest:
        from kafka_rescale.core.processing.request import ProcessRequest
        from kafka_rescale.operations.load import load_pipeline_application

        application = load_pipeline_application(self.application_file)
        return ProcessRequest(
            pipeline=application.pipeline,
            state_dir=application.state_dir,
            thread=self.thread,
            level=self.level,
        )

    def _arguments(self, context: Context) -> list[str]:
        return [*super()._arguments(context), "--request", self._request().model_dump_json()]


class WarmUpProcessorsOperator(RescaleSparkSubmitOperator):
    """
    Warm the processors up that a pipeline is being given, if there are any, while the existing ones work.

    :param application_file: path of the application file, read again when the task runs (templated)
    """

    template_fields: Sequence[str] = (*RescaleSparkSubmitOperator.template_fields, "application_file")
    operator_extra_links: tuple[Any, ...] = ()

    def __init__(self, *, application_file: str, **kwargs: Any) -> None:
        self.application_file = application_file
        super().__init__(job="warm_up_processors", **kwargs)

    def execute(self, context: Context) -> dict[str, Any]:
        """Return the job's result."""
        from kafka_rescale.kafka.control_topic import ControlTopic

        connection = KafkaRescaleHook(kafka_config_id=self.kafka_conn_id).connection()
        if not ControlTopic(connection, self.application_id).read().processors.expanding:
            self.log.info("No processor is being added.")
            return {}
        return super().execute(context)

    def _arguments(self, context: Context) -> list[str]:
        from kafka_rescale.core.processing.request import WarmUpRequest
        from kafka_rescale.operations.load import load_pipeline_application

        application = load_pipeline_application(self.application_file)
        request = WarmUpRequest(pipeline=application.pipeline, state_dir=application.state_dir)
        return [*super()._arguments(context), "--request", request.model_dump_json()]
