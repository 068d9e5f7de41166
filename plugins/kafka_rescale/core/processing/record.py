"""Who processes what: the stream threads of a pipeline and their tasks, as the control topic keeps them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pydantic import Field

from kafka_rescale.core.application_state import State, ThreadState
from kafka_rescale.core.assignment.configs import AssignmentConfigs
from kafka_rescale.core.assignment.high_availability import assign
from kafka_rescale.core.assignment.over_threads import over_threads
from kafka_rescale.core.assignment.tasks import Client, TaskId, Tasks
from kafka_rescale.core.assignment.validation import require_valid
from kafka_rescale.core.stream_threads import StreamsClient, StreamThread
from kafka_rescale.core.values import Value


class ThreadRecord(Value):
    """A stream thread.

    :param tasks: ids of what it runs.
    """

    name: str
    state: ThreadState
    tasks: tuple[str, ...] = ()


class Processing(Value):
    """The client of a pipeline, as of its latest run.

    :param num_stream_threads: with how many it was started.
    :param run: the run that was given this assignment.
    :param tasks: number of tasks by sub-topology.
    """

    client_id: str
    state: State = State.CREATED
    threads: tuple[ThreadRecord, ...] = ()
    failed_stream_threads: int = 0
    num_stream_threads: int = 0
    run: str = ""
    tasks: dict[int, int] = Field(default_factory=dict)

    @property
    def client(self) -> StreamsClient:
        """The client and its threads, as the rules of KIP-663 know them."""
        threads = tuple(StreamThread(t.name, t.state) for t in self.threads)
        return StreamsClient(self.client_id, self.state, threads, self.failed_stream_threads)

    @property
    def running(self) -> tuple[str, ...]:
        """The threads that have a part in this run."""
        return tuple(t.name for t in self.threads if t.state is ThreadState.RUNNING)

    def tasks_of(self, thread: str, sub_topologies: Collection[int]) -> list[TaskId]:
        """Return what a thread runs of some sub-topologies."""
        ids = [TaskId.parse(task) for t in self.threads if t.name == thread for task in t.tasks]
        return [task for task in ids if task.subtopology in sub_topologies]

    def with_client(
        self, client: StreamsClient, tasks: Mapping[str, Collection[TaskId]] | None = None
    ) -> Processing:
        """Return the record after events of the client.

        :param tasks: by thread; None leaves every thread what it has.
        """
        had = {t.name: t.tasks for t in self.threads}
        given = had if tasks is None else {name: tuple(map(str, of)) for name, of in tasks.items()}
        threads = (ThreadRecord(name=t.name, state=t.state, tasks=given.get(t.name, ())) for t in client.threads)
        return self.model_copy(
            update={
                "state": client.state,
                "threads": tuple(threads),
                "failed_stream_threads": client.failed_stream_threads,
            }
        )


def next_run(
    before: Processing | None, client_id: str, run: str, num_stream_threads: int, tasks: Mapping[int, int]
) -> Processing:
    """Return who runs what in the next run: threads that were added have their part, removed ones are gone.

    Between two runs nobody processes anything, so that a task changes hands without having to be revoked.

    :param before: of the run before; None is the first one. Another number of threads in the file starts the
        client anew, and then what was added and removed is forgotten (KIP-663).
    :param tasks: number of tasks by sub-topology.
    """
    if before is None or before.num_stream_threads != num_stream_threads:
        before = Processing(client_id=client_id, num_stream_threads=num_stream_threads)
        client = before.client.start(num_stream_threads)
    else:
        client = before.client
    client = _settled(client)
    names = [thread.name for thread in client.threads]
    ids = frozenset(TaskId(sub_topology, p) for sub_topology, count in tasks.items() for p in range(count))
    dealt = over_threads(_active(client_id, ids, len(names)), names, _previous(before, ids)) if names else {}
    return before.with_client(client, dealt).model_copy(update={"run": run, "tasks": dict(tasks)})


def _active(client_id: str, ids: frozenset[TaskId], threads: int) -> Collection[TaskId]:
    all_tasks = Tasks(stateful=dict.fromkeys(ids, 0))
    assignment = assign(all_tasks, [Client(client_id, threads)], AssignmentConfigs())
    require_valid(assignment, all_tasks, [client_id])
    return assignment.clients[client_id].active


def _previous(before: Processing, ids: frozenset[TaskId]) -> dict[str, list[TaskId]]:
    return {t.name: [task for task in map(TaskId.parse, t.tasks) if task in ids] for t in before.threads}


def _settled(client: StreamsClient) -> StreamsClient:
    """Let threads that were asked to end be gone, and those that were added run."""
    for thread in client.threads:
        if thread.state is ThreadState.PENDING_SHUTDOWN:
            client = client.thread_became(thread.name, ThreadState.DEAD)
    for thread in client.threads:
        for state in _TO_RUNNING.get(thread.state, ()):
            client = client.thread_became(thread.name, state)
    return client


_TO_RUNNING: Mapping[ThreadState, tuple[ThreadState, ...]] = {
    ThreadState.STARTING: (ThreadState.PARTITIONS_ASSIGNED, ThreadState.RUNNING),
}
