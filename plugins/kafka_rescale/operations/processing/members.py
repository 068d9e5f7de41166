"""The clients of a pipeline at a rebalance: which state they have, and how far it is behind."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from kafka_rescale.core.application.clients import DeclaredClient
from kafka_rescale.core.application.pipeline import PipelineApplication
from kafka_rescale.core.assignment.tasks import TaskId
from kafka_rescale.core.control.processing import Processing
from kafka_rescale.core.processing.rebalance import Member
from kafka_rescale.core.processing.replicas import StoreLogs, saved_lag
from kafka_rescale.kafka.processing.changelogs import KnownState
from kafka_rescale.spark.processing.state_files import StateFiles

AT_A_TIME = 8
"""How many directories are read at a time. On an object store, each takes tens of milliseconds."""


def members_of(
    application: PipelineApplication, before: Processing | None, known: KnownState, now_ms: int
) -> list[Member]:
    """Return every client of the file with the state that it has.

    A client is absent if its ``state.dir`` can't be reached, or if the directory that it had there is gone. The
    only client of a file without `clients` is never absent: no other client could have its tasks, and missing
    state is in the changelogs.
    """
    if not application.clients:
        (alone,) = application.members
        return [Member(alone.client_id, application.num_stream_threads, alone.state_dir)]
    return [_member(application, client, before, known, now_ms) for client in application.clients]


def _member(
    application: PipelineApplication,
    client: DeclaredClient,
    before: Processing | None,
    known: KnownState,
    now_ms: int,
) -> Member:
    lags: Mapping[TaskId, int] = {}
    absent = _absence(application.application_id, client, before)
    if not absent:
        try:
            lags = lags_of(application.application_id, client.state_dir, known.logs, now_ms)
        except OSError as error:
            absent = f"{client.state_dir}: {error}"[:300]
    return Member(
        client.client_id,
        application.threads_of(client),
        client.state_dir,
        client.tags,
        lags,
        absent,
    )


def _absence(application_id: str, client: DeclaredClient, before: Processing | None) -> str:
    """Return why a client can't take part, or an empty text; create the directory of a new client."""
    record = before.client(client.client_id) if before is not None else None
    place = StateFiles(client.state_dir, application_id)
    try:
        if record is None or record.state_dir != client.state_dir:
            place.create()
            return ""
        if place.is_there():
            return ""
    except OSError as error:
        return f"{client.state_dir}: {error}"[:300]
    return f"{client.state_dir}/{application_id} is no longer there"


def lags_of(
    application_id: str, state_dir: str, logs: Mapping[TaskId, StoreLogs], now_ms: int
) -> dict[TaskId, int]:
    """Return how many records a client's state is behind, for each task whose state it has.

    :param logs: the changelogs of all stateful tasks.
    """

    def lag(task: TaskId) -> int | None:
        saved = {store: StateFiles.of(state_dir, application_id, task, store).found() for store in logs[task]}
        return saved_lag(saved, logs[task], now_ms)

    with ThreadPoolExecutor(AT_A_TIME) as pool:
        found = dict(zip(logs, pool.map(lag, logs), strict=True))
    return {task: behind for task, behind in found.items() if behind is not None}
