"""The tasks of each stream thread of a client (``StreamsPartitionAssignor#assignTasksToThreads``)."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kafka_rescale.core.assignment.tasks import TaskId


def over_threads(
    tasks: Collection[TaskId], threads: Collection[str], previous: Mapping[str, Collection[TaskId]]
) -> dict[str, tuple[TaskId, ...]]:
    """Return the tasks of each thread.

    The numbers of tasks of two threads differ by one at most. If possible, a thread keeps the tasks that it had.

    :param threads: names of the client's live threads, at least one.
    :param previous: the tasks that each thread had before.
    """
    names = sorted(threads)
    at_most = -(-len(tasks) // len(names))
    with_one_more = len(tasks) - (at_most - 1) * len(names)
    left = set(tasks)
    has: dict[str, set[TaskId]] = {}
    for name in sorted(names, key=lambda name: (-len(left & set(previous.get(name, ()))), name)):
        quota = at_most if with_one_more > 0 else at_most - 1
        own = sorted(left & set(previous.get(name, ())))[:quota]
        with_one_more -= len(own) == at_most
        has[name] = set(own)
        left -= has[name]
    for task in sorted(left):
        least = min(names, key=lambda name: (len(has[name]), name))
        has[least].add(task)
    return {name: tuple(sorted(has[name])) for name in names}
