"""The warm-up of a new processor: it copies its share of its parent's state to its own changelog and files.

It writes nothing else, reads no input, and disturbs no other task (KIP-287).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kafka_rescale.core.processing.expiry import Expiry
from kafka_rescale.core.processing.state_copies import NewTask
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.processing.changelogs import whole_changelogs
from kafka_rescale.kafka.processing.state_copy import StateCopy
from kafka_rescale.spark.processing.logged_store import LoggedStore
from kafka_rescale.spark.processing.state_files import StateFiles

PASS_SECONDS = 60.0
"""After this time the rest is left to the next run, so that no run waits for a warm-up."""


@dataclass(frozen=True)
class WarmedUp:
    """The result of a warm-up.

    :param copied: number of records written to its changelogs.
    :param lag: how many offsets the new processor is behind its parent.
    """

    task: NewTask
    copied: int
    lag: int

    def __str__(self) -> str:
        return (
            f"task {self.task.task}: {self.copied:,} copied from {self.task.parent}, {self.lag:,} offsets behind"
        )


def warm_up(
    connection: KafkaConnection,
    task: NewTask,
    state_dir: str,
    *,
    seconds: float = PASS_SECONDS,
    every: int = 20_000,
    clock: Callable[[], int] = now_ms,
) -> WarmedUp:
    """Copy the entries that the new processor lacks, and save them where its first run looks for them.

    :param seconds: after this time the rest is left to the next call.
    :param every: number of records read per transaction.
    :raises Fenced: the processor has been given its partitions, or a newer warm-up has begun.
    :raises UnsafeState: the state is not placed by linear hashing.
    """
    copy = StateCopy(connection, task, clock)
    try:
        copied = copy.to_the_end(is_final=False, seconds=seconds, every=every)
        _save(connection, task, state_dir, clock)
        return WarmedUp(task, copied, sum(found.lag for found in copy.positions().values()))
    finally:
        copy.close()


def _save(connection: KafkaConnection, task: NewTask, state_dir: str, clock: Callable[[], int]) -> None:
    """Save the changelogs' contents to files, as a standby does: files never stand for more than was read."""
    names = {store.name: task.changelog(store) for store in task.stores}
    logs = whole_changelogs(connection, task.group, task.topics, task.task.partition, names.values())
    for store in task.stores:
        files = StateFiles.of(state_dir, task.application_id, task.task, store.name)
        logged = LoggedStore(connection, logs[names[store.name]], files, None, clock, Expiry.of(store))
        logged.restore()
        logged.save()
