"""One look of one standby at its changelogs: what was committed since goes into the files of its client.

Nothing is written to Kafka and nobody is fenced, so that the task itself may be running elsewhere meanwhile. It
may even have become active on this very client: files carry the offset that they stand for, and the newest counts.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from kafka_rescale.core.assignment.tasks import TaskId
from kafka_rescale.core.pipeline.task import SubTopology
from kafka_rescale.core.processing.expiry import Expiry
from kafka_rescale.core.processing.replicas import StoreLogs, is_due
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.spark.processing.logged_store import LoggedStore
from kafka_rescale.spark.processing.state_files import StateFiles


@dataclass(frozen=True)
class StandbyWork:
    """What a standby has to read.

    :param logs: the changelogs with something to read, up to what was committed when it was looked.
    :param state_dir: of the client.
    :param as_of_ms: wall clock before that.
    """

    application_id: str
    task: TaskId
    logs: StoreLogs
    state_dir: str
    as_of_ms: int


@dataclass(frozen=True)
class Warmed:
    """What a standby has read.

    :param restored: records.
    :param full_restores: stores of which no saved state could be used.
    """

    task: TaskId
    restored: int
    full_restores: int
    seconds: float


def works_due(
    application_id: str, state_dir: str, tasks: list[TaskId], logs: Mapping[TaskId, StoreLogs], as_of_ms: int
) -> list[StandbyWork]:
    """Return the standbys of a client that have something to read.

    Where the client's directory is gone nothing is made in its place: it is absent, and no standby of anything.

    :param tasks: what the client keeps warm.
    :param logs: of all stateful tasks.
    :param as_of_ms: wall clock before the ends of the changelogs were asked for.
    :raises OSError: nobody can tell what lies there.
    """
    if not StateFiles(state_dir, application_id).is_there():
        return []
    due = {
        task: {
            store: log
            for store, log in logs.get(task, {}).items()
            if is_due(StateFiles.of(state_dir, application_id, task, store).found(), log, as_of_ms)
        }
        for task in tasks
    }
    return [
        StandbyWork(application_id, task, stores, state_dir, as_of_ms) for task, stores in due.items() if stores
    ]


def run_standby(connection: KafkaConnection, work: StandbyWork, subtopology: SubTopology) -> Warmed:
    """Read what was committed, and save it.

    :raises Outage: a changelog can't be read.
    """
    began, restored = time.monotonic(), []
    for definition in subtopology.stores:
        if definition.name not in work.logs:
            continue
        files = StateFiles.of(work.state_dir, work.application_id, work.task, definition.name)
        log, expiry = work.logs[definition.name], Expiry.of(definition)
        store = LoggedStore(connection, log, files, None, lambda: work.as_of_ms, expiry)
        restored.append(store.restore())
        store.save(anew=True)
    return Warmed(
        work.task,
        sum(each.records for each in restored),
        sum(each.is_full for each in restored),
        round(time.monotonic() - began, 3),
    )
