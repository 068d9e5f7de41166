"""Clients with their stream threads and tasks, as the control topic keeps them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from pydantic import Field

from kafka_rescale.core.assignment.assignment import Assignment, ClientTasks, Movement
from kafka_rescale.core.assignment.stream_threads import StreamsClient, StreamThread, client_of
from kafka_rescale.core.assignment.tasks import Role, TaskId
from kafka_rescale.core.assignment.thread_states import State, ThreadState
from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.journal import PartitionOffsets
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.values import Value


class ThreadRecord(Value):
    """A stream thread.

    :param tasks: ids of the tasks that it runs.
    :param replaces: the thread that had its tasks when the run began and has died since.
    """

    name: str
    state: ThreadState
    tasks: tuple[str, ...] = ()
    replaces: str = ""


class ClientRecord(Value):
    """A client of a pipeline, as of the latest run.

    :param num_stream_threads: number of threads with which it was started.
    :param standbys: ids of the tasks whose state it keeps warm.
    :param state_dir: the place of its state when it last took part.
    :param tags: ``client.tag.*``.
    :param absent: why it has no part in this run, although it should have one; empty otherwise.
    :param put_out: why it was put out, as its Spark began no job any more; empty otherwise.
    """

    client_id: str
    state: State = State.CREATED
    threads: tuple[ThreadRecord, ...] = ()
    failed_stream_threads: int = 0
    num_stream_threads: int = 0
    standbys: tuple[str, ...] = ()
    state_dir: str = ""
    tags: dict[str, str] = Field(default_factory=dict)
    absent: str = ""
    put_out: str = ""

    @property
    def client(self) -> StreamsClient:
        """The client and its threads, as the rules of KIP-663 know them."""
        threads = tuple(StreamThread(t.name, t.state) for t in self.threads)
        return StreamsClient(self.client_id, self.state, threads, self.failed_stream_threads)

    @property
    def running(self) -> tuple[str, ...]:
        """The threads that have a part in this run."""
        return tuple(t.name for t in self.threads if t.state is ThreadState.RUNNING)

    @property
    def active(self) -> tuple[TaskId, ...]:
        """The tasks that its threads run, sorted."""
        return tuple(sorted(TaskId.parse(task) for thread in self.threads for task in thread.tasks))

    def cache_bytes_of_thread(self, total: int) -> int:
        """Return how much of the record cache each of its threads has now, in bytes.

        It is divided anew when threads come and go (KIP-663, ``KafkaStreams#resizeThreadCache``).

        :param total: ``statestore.cache.max.bytes``.
        """
        return total // max(1, len(self.running))

    def with_client(
        self, client: StreamsClient, tasks: Mapping[str, Collection[TaskId]] | None = None
    ) -> ClientRecord:
        """Return the record after events of the client.

        :param tasks: by thread; None leaves every thread its tasks.
        """
        had = {t.name: t for t in self.threads}
        given = {t.name: t.tasks for t in self.threads}
        if tasks is not None:
            given = {name: tuple(map(str, of)) for name, of in tasks.items()}
        threads = (
            ThreadRecord(
                name=t.name,
                state=t.state,
                tasks=given.get(t.name, ()),
                replaces=had[t.name].replaces if t.name in had and tasks is None else "",
            )
            for t in client.threads
        )
        return self.model_copy(
            update={
                "state": client.state,
                "threads": tuple(threads),
                "failed_stream_threads": client.failed_stream_threads,
            }
        )


class MovementRecord(Value):
    """A task that will move once the client that shall have it has caught up.

    :param task: its id.
    :param role: what moves.
    :param runs_on: client that has it meanwhile.
    :param goes_to: client that shall have it.
    :param is_warming_up: whether ``goes_to`` already restores it.
    :param is_swap: whether ``runs_on`` and ``goes_to`` swap the task and its standby.
    """

    task: str
    role: Role
    runs_on: str
    goes_to: str
    is_warming_up: bool
    is_swap: bool = False


class Processing(Value):
    """The clients of a pipeline, as of its latest run.

    :param run: the run that was given this assignment.
    :param at_ms: wall clock of the rebalance.
    :param tasks: number of tasks by sub-topology.
    :param movements: movements that are still to come.
    :param revoked: ids of tasks that a client has to give back before another client may have them. As long as
        there are such tasks, a second rebalance follows.
    :param adjusted_by: the latest runs whose changes have been made. They are made once, however often a run's
        ``assign`` is cleared.
    :param changed_threads: the thread that each of the latest tasks of operators has added or removed. A task that
        Airflow repeats changes no other thread.
    :param missing: number of standbys that no client may have, by the id of the task that lacks them.
    :param input_ends: up to where the run reads the inputs, by full names: their ends when ``assign`` ran last.
        All levels and their retries read them up to the same ends. Empty if an earlier version has made the
        assignment.
    """

    run: str = ""
    at_ms: int = 0
    tasks: dict[int, int] = Field(default_factory=dict)
    clients: tuple[ClientRecord, ...] = ()
    movements: tuple[MovementRecord, ...] = ()
    revoked: tuple[str, ...] = ()
    adjusted_by: tuple[str, ...] = ()
    changed_threads: dict[str, str] = Field(default_factory=dict, exclude_if=lambda of: not of)
    missing: dict[str, int] = Field(default_factory=dict, exclude_if=lambda of: not of)
    input_ends: PartitionOffsets = Field(default_factory=dict, exclude_if=lambda of: not of)

    @property
    def threads(self) -> tuple[ThreadRecord, ...]:
        """The threads of all clients."""
        return tuple(thread for client in self.clients for thread in client.threads)

    @property
    def running(self) -> tuple[str, ...]:
        """The threads that have a part in this run."""
        return tuple(thread for client in self.clients for thread in client.running)

    @property
    def state(self) -> State:
        """The state of the application, from the states of its clients: it goes on as long as one of them can."""
        states = {client.state for client in self.clients if not client.absent}
        order = (State.REBALANCING, State.RUNNING, State.CREATED, *State)
        return next((state for state in order if state in states), State.CREATED)

    @property
    def assignment(self) -> Assignment:
        """Which client has which tasks, which movements are still to come, and which standbys are missing."""
        return Assignment(
            {c.client_id: ClientTasks(c.active, tuple(map(TaskId.parse, c.standbys))) for c in self.clients},
            tuple(Movement(**{**m.model_dump(), "task": TaskId.parse(m.task)}) for m in self.movements),
            {TaskId.parse(task): lacks for task, lacks in self.missing.items()},
        )

    def client(self, client_id: str) -> ClientRecord | None:
        """Return a client by its id."""
        return next((client for client in self.clients if client.client_id == client_id), None)

    def the_client(self, client_id: str | None) -> ClientRecord:
        """Return a client by its id; without an id, the only client.

        :raises InvalidInput: there is no such client, or there are several.
        """
        found = [client for client in self.clients if client_id in {None, client.client_id}]
        if len(found) == 1:
            return found[0]
        raise InvalidInput(
            "client of the pipeline",
            found=f"no client {client_id!r}" if client_id is not None else f"{len(found)} clients, and no name",
            expected=f"one of {', '.join(client.client_id for client in self.clients) or 'its clients'}",
            remedy="Name one of them.",
        )

    def thread_for(self, thread: str) -> str:
        """Return the thread that does the work of a thread now: itself, or its replacement in this run.

        :param thread: its name when the run began.
        """
        return next((t.name for t in self.threads if t.replaces == thread), thread)

    def tasks_of(self, thread: str, sub_topologies: Collection[int]) -> list[TaskId]:
        """Return the tasks of some sub-topologies that a thread runs."""
        ids = [TaskId.parse(task) for t in self.threads if t.name == thread for task in t.tasks]
        return [task for task in ids if task.subtopology in sub_topologies]

    def jobs(self, results: Mapping[str, JobResult]) -> list[JobResult]:
        """Return the results that the threads' jobs of the latest run have left so far.

        :param results: of all jobs of the application, by name.
        """
        its = (r for name, r in results.items() if r.run == self.run and name.startswith("process/"))
        return sorted(its, key=lambda result: result.job)

    def owned(self, threads: Iterable[str]) -> dict[str, list[TaskId]]:
        """Return the tasks that clients own through some of their threads."""
        found: dict[str, list[TaskId]] = {}
        for thread in self.threads:
            if thread.name in set(threads):
                found.setdefault(client_of(thread.name), []).extend(map(TaskId.parse, thread.tasks))
        return found

    def with_clients(self, *changed: ClientRecord) -> Processing:
        """Return the record with some of its clients changed."""
        by_id = {client.client_id: client for client in changed}
        return self.model_copy(update={"clients": tuple(by_id.get(c.client_id, c) for c in self.clients)})
