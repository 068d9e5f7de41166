"""Stream threads of a pipeline, added and removed by a DAG (KIP-663)."""

from __future__ import annotations

from typing import Any

from airflow.sdk import Context

from kafka_rescale.airflow.operators.base import RescaleOperator


class AddStreamThreadOperator(RescaleOperator):
    """
    Add a stream thread to a pipeline, and wait until it has started: the next run gives it its part.

    :param timeout_seconds: how long to wait; None doesn't, for a task that stands before that run
    :param client: id of the client that gets it; None is the only one
    """

    operator_extra_links = ()

    def __init__(self, *, timeout_seconds: float | None = None, client: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.timeout_seconds = timeout_seconds
        self.client = client

    def execute(self, context: Context) -> str | None:
        """Return the thread's name; None if the pipeline is not running."""
        from kafka_rescale.operations.application.load import load_pipeline_application
        from kafka_rescale.operations.processing.stream_threads import add_stream_thread

        application = load_pipeline_application(self.application_file)
        name = add_stream_thread(
            application.application_id, self.connection(application), self.client, self.timeout_seconds
        )
        self.log.info("%s", name or "no thread was added: the pipeline is not running")
        return name


class RemoveStreamThreadOperator(RescaleOperator):
    """
    Remove a stream thread of a pipeline, and wait until it has ended.

    :param timeout_seconds: how long to wait; None doesn't, for a task that stands before the next run
    :param client: id of the client that loses it; None is the only one
    """

    operator_extra_links = ()

    def __init__(self, *, timeout_seconds: float | None = None, client: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.timeout_seconds = timeout_seconds
        self.client = client

    def execute(self, context: Context) -> str | None:
        """Return the thread's name; None if there is none."""
        from kafka_rescale.operations.application.load import load_pipeline_application
        from kafka_rescale.operations.processing.stream_threads import remove_stream_thread

        application = load_pipeline_application(self.application_file)
        connection = self.connection(application)
        name = remove_stream_thread(application.application_id, connection, self.timeout_seconds, self.client)
        self.log.info("%s", name or "no thread was removed: there is none")
        return name
