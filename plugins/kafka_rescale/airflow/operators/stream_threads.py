"""Operators that add and remove stream threads of a pipeline (KIP-663)."""

from __future__ import annotations

from typing import Any

from airflow.sdk import Context

from kafka_rescale.airflow.operators.base import RescaleOperator
from kafka_rescale.airflow.runs import task_of


class AddStreamThreadOperator(RescaleOperator):
    """
    Add a stream thread to a pipeline, and wait until it has started. The next run of the pipeline gives it tasks.
    A retry adds no other thread.

    :param timeout_seconds: seconds to wait; with None, the task doesn't wait. Use None in a DAG that triggers that
        next run itself
    :param client: id of the client that gets the thread; None if the pipeline has only one client
    """

    operator_extra_links = ()

    def __init__(self, *, timeout_seconds: float | None = None, client: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.timeout_seconds = timeout_seconds
        self.client = client

    def execute(self, context: Context) -> str | None:
        """Return the name of the thread; None if the pipeline is not running."""
        from kafka_rescale.operations.application.load import load_pipeline_application
        from kafka_rescale.operations.processing.stream_threads import add_stream_thread

        application = load_pipeline_application(self.application_file)
        name = add_stream_thread(
            application.application_id,
            self.connection(application),
            self.client,
            self.timeout_seconds,
            declared=application.client_ids,
            task=task_of(context),
        )
        self.log.info("%s", name or "No thread was added: the pipeline is not running.")
        return name


class RemoveStreamThreadOperator(RescaleOperator):
    """
    Remove a stream thread of a pipeline, and wait until it has ended. A retry removes no other thread.

    :param timeout_seconds: seconds to wait; with None, the task doesn't wait. Use None in a DAG that triggers the
        next run itself
    :param client: id of the client that loses the thread; None if the pipeline has only one client
    """

    operator_extra_links = ()

    def __init__(self, *, timeout_seconds: float | None = None, client: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.timeout_seconds = timeout_seconds
        self.client = client

    def execute(self, context: Context) -> str | None:
        """Return the name of the thread; None if the pipeline has no thread to remove."""
        from kafka_rescale.operations.application.load import load_pipeline_application
        from kafka_rescale.operations.processing.stream_threads import remove_stream_thread

        application = load_pipeline_application(self.application_file)
        name = remove_stream_thread(
            application.application_id,
            self.connection(application),
            self.timeout_seconds,
            self.client,
            declared=application.client_ids,
            task=task_of(context),
        )
        self.log.info("%s", name or "No thread was removed: the pipeline has none to remove.")
        return name
