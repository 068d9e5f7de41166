"""Commands that add and remove stream threads of a pipeline (KIP-663)."""

from __future__ import annotations

from pathlib import Path

from kafka_rescale.cli.connections import connection_for
from kafka_rescale.cli.output import Document
from kafka_rescale.core.acls import Role
from kafka_rescale.kafka.connection import KafkaConnection
from kafka_rescale.operations.load import load_pipeline_application
from kafka_rescale.operations.stream_threads import add_stream_thread, remove_stream_thread

NOT_RUNNING = "No thread was {}: the pipeline has never run, or is not running."


def added(file: Path, config: Path | None) -> Document:
    """Add a thread, and return what to say about it."""
    application_id, connection = _opened(file, config)
    name = add_stream_thread(application_id, connection)
    text = NOT_RUNNING.format("added") if name is None else f"{name} has its part from the next run on."
    return Document(data={"thread": name}, text=text)


def removed(file: Path, config: Path | None, timeout_seconds: float | None) -> Document:
    """Remove a thread, and return what to say about it."""
    application_id, connection = _opened(file, config)
    name = remove_stream_thread(application_id, connection, timeout_seconds)
    ended = "has ended." if timeout_seconds is not None else "ends with the next run."
    text = NOT_RUNNING.format("removed") if name is None else f"{name} {ended}"
    return Document(data={"thread": name}, text=text)


def _opened(file: Path, config: Path | None) -> tuple[str, KafkaConnection]:
    application = load_pipeline_application(file)
    connection = connection_for(application, config, Role.ADMIN)
    connection.check()
    return application.application_id, connection
