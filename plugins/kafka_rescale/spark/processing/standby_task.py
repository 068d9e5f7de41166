"""One pass of one standby over its changelogs: newly committed records go into the files of its client.

It writes nothing to Kafka and fences no producer, so the task itself may run elsewhere meanwhile. The task may
even have become active on this very client: files carry the offset that they stand for, and the newest counts.
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
    """The work of a standby.

    :param logs: the changelogs with records to read, up to the committed ends that were asked for.
    :param state_dir: directory of the client.
    :param as_of_ms: wall clock before the ends were asked for.
    """

    application_id: str
    task: TaskId
    logs: StoreLogs
    state_dir: str
    as_of_ms: int


@dataclass(frozen=True)
class Warmed:
    """What a standby has read.

    :param restored: number of records.
    :param full_restores: number of stores for which no saved state could be used.
    """

    task: TaskId
    restored: int
    full_restores: int
    seconds: float


def works_due(
    application_id: str, state_dir: str, tasks: list[TaskId], logs: Mapping[TaskId, StoreLogs], as_of_ms: int
) -> list[StandbyWork]:
    """Return the work of a client's standbys that have records to read.

    If the client's directory is gone, no new one is made: the client is absent, and has no standbys.

    :param tasks: the tasks that the client keeps warm.
    :param logs: the changelogs of all stateful tasks.
    :param as_of_ms: wall clock before the ends of the changelogs were asked for.
    :raises OSError: the directory can't be read.
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
    """Read the committed records, and save the state.

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
