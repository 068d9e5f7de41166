"""The content of the files that save a pipeline's state."""

from __future__ import annotations

from typing import Any

from kafka_rescale.core.processing.expiry import Expiry
from kafka_rescale.spark.processing.state_files import StateFiles
from kafka_rescale.spark.processing.state_store import TaskStore


def saved_rows(
    state_dir: str, application_id: str, task: str, store: str, expiry: Expiry | None = None
) -> list[dict[str, Any]]:
    """The rows of the newest saved state of a task's store. With an expiry, only the rows that are not expired."""
    files, into = StateFiles.of(state_dir, application_id, task, store), TaskStore(lambda *_: None, expiry)
    assert files.load(max(files.found(), key=lambda saved: saved.position), into) == ""
    rows: list[dict[str, Any]] = into.all_rows().to_pylist()
    return rows
