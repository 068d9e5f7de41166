"""One new processor's warm-up: its share of the existing one's state, in its own changelog and its own files.

It writes nothing else, reads no input, and nobody's work is touched by it (KIP-287).
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
"""After so long the rest is left to the next run, so that no run waits for a warm-up."""


@dataclass(frozen=True)
class WarmedUp:
    """What a warm-up has done.

    :param copied: records written to its changelogs.
    :param lag: offsets that it is behind its parent.
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
    """Copy what the new processor lacks, and save it where its first run will look for it.

    :param seconds: after which the rest is left to the next call.
    :param every: records read per transaction.
    :raises Fenced: it has its partitions by now, or a newer warm-up has begun.
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
    """Make files of what the changelogs hold, as a standby does: they never stand for more than was read."""
    names = {store.name: task.changelog(store) for store in task.stores}
    logs = whole_changelogs(connection, task.group, task.topics, task.task.partition, names.values())
    for store in task.stores:
        files = StateFiles.of(state_dir, task.application_id, task.task, store.name)
        logged = LoggedStore(connection, logs[names[store.name]], files, None, clock, Expiry.of(store))
        logged.restore()
        logged.save()
