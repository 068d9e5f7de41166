"""Stream threads that are added, removed and replaced while a client runs (KIP-663).

A client is a value, and each event returns the next value. Nothing in this module starts a thread or waits for a
thread: the runner of the threads reports the changes of their states.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Self

from kafka_rescale.core.assignment.thread_states import State, ThreadState
from kafka_rescale.core.errors import InvalidInput, UnsafeState

_INFIX = "-StreamThread-"


def client_of(thread: str) -> str:
    """Return the id of the client that a thread's name begins with."""
    return thread.rpartition(_INFIX)[0]


class Decision(StrEnum):
    """The reaction to a thread that has died of an error (``StreamThreadExceptionResponse``)."""

    REPLACE_THREAD = "REPLACE_THREAD"
    SHUTDOWN_CLIENT = "SHUTDOWN_CLIENT"
    SHUTDOWN_APPLICATION = "SHUTDOWN_APPLICATION"


@dataclass(frozen=True)
class StreamThread:
    """A thread that is not dead yet."""

    name: str
    state: ThreadState = ThreadState.CREATED


@dataclass(frozen=True)
class StreamsClient:
    """A client and its threads.

    :param threads: the threads in the order of their start. A dead thread is no longer among them, so its name is
        free again.
    :param failed_stream_threads: the metric ``failed-stream-threads``, the number of threads that died of an error
        so far.
    :param is_application_ending: whether this client has asked all clients of the application to shut down.
    """

    client_id: str
    state: State = State.CREATED
    threads: tuple[StreamThread, ...] = ()
    failed_stream_threads: int = 0
    is_application_ending: bool = False

    @property
    def alive(self) -> tuple[StreamThread, ...]:
        """The threads that are neither dead nor shutting down."""
        return tuple(thread for thread in self.threads if thread.state.is_alive)

    def start(self, num_stream_threads: int) -> Self:
        """Start with this number of threads. Threads that were added or removed before the last stop don't count.

        :raises InvalidInput: the client was started before.
        """
        if self.state is not State.CREATED:
            raise InvalidInput(
                f"client {self.client_id}",
                found=f"state {self.state}",
                expected=f"state {State.CREATED}",
                remedy="Start a new client. A client that was stopped can't be started again.",
            )
        started = self._become(State.REBALANCING)
        for _ in range(num_stream_threads):
            started, _ = started.add_stream_thread()
        return started

    def add_stream_thread(self) -> tuple[Self, str | None]:
        """Add a thread and return its name. The name is ``None`` if the client's state allows no new thread."""
        if not self.state.is_running_or_rebalancing:
            return self, None
        name = f"{self.client_id}{_INFIX}{self._lowest_free_index()}"
        thread = StreamThread(name, ThreadState.STARTING)
        # If no other thread is at work, the client processes nothing until this thread gets its tasks.
        client = self if self.alive else self._become(State.REBALANCING)
        return replace(client, threads=(*self.threads, thread)), name

    def remove_stream_thread(self, calling: str | None = None) -> tuple[Self, str | None]:
        """Ask a thread to shut down and return its name. The name is ``None`` if the client can lose no thread.

        :param calling: name of the thread that calls this. It removes itself only if there is no other thread.
        """
        alive = self.alive
        chosen = [t for t in alive if t.name != calling] or list(alive)
        if not self.state.is_running_or_rebalancing or not chosen:
            return self, None
        return self._with(chosen[0].name, ThreadState.PENDING_SHUTDOWN), chosen[0].name

    def thread_became(self, name: str, state: ThreadState) -> Self:
        """Note a thread's new state.

        :raises UnsafeState: there is no such thread, or a thread can't change its state like this.
        """
        now = self._thread(name).state
        if now is ThreadState.PENDING_SHUTDOWN and state is not ThreadState.DEAD:
            return self
        if not now.may_become(state):
            raise UnsafeState(
                f"stream thread {name}",
                found=f"a change from {now} to {state}",
                expected="a change that KafkaStreams makes",
                remedy="Remove the thread and add another one.",
            )
        return self._with(name, state)._follow(state)

    def thread_failed(self, name: str, decision: Decision) -> Self:
        """Note that a thread dies of an error, and do what the handler has decided.

        The old thread is still there when its replacement is added. Therefore the two have different names.

        :raises UnsafeState: there is no such thread.
        """
        failed = replace(self, failed_stream_threads=self.failed_stream_threads + 1)
        failed = failed._with(self._thread(name).name, ThreadState.PENDING_SHUTDOWN)
        if decision is Decision.REPLACE_THREAD:
            return failed.add_stream_thread()[0]
        if decision is Decision.SHUTDOWN_APPLICATION:
            failed = replace(failed, is_application_ending=True)
        return failed.close_to_error()

    def close(self) -> Self:
        """Shut down without an error."""
        return self._end(State.PENDING_SHUTDOWN)

    def close_to_error(self) -> Self:
        """Shut down because of an error of this client, or of another client (``SHUTDOWN_APPLICATION``)."""
        return self._end(State.PENDING_ERROR)

    def _end(self, state: State) -> Self:
        ending = self._become(state)
        if ending.state is state:
            stopping = (replace(thread, state=ThreadState.PENDING_SHUTDOWN) for thread in ending.threads)
            ending = replace(ending, threads=tuple(stopping))
        return ending._end_if_empty()

    def _follow(self, state: ThreadState) -> Self:
        if state in {ThreadState.PARTITIONS_REVOKED, ThreadState.PARTITIONS_ASSIGNED}:
            return self._become(State.REBALANCING)
        states = {thread.state for thread in self.threads}
        settled = {ThreadState.RUNNING, ThreadState.PENDING_SHUTDOWN}
        if ThreadState.RUNNING in states and states <= settled:
            return self._become(State.RUNNING)
        return self._end_if_empty()

    def _end_if_empty(self) -> Self:
        if self.threads:
            return self
        if self.state is State.PENDING_SHUTDOWN:
            return replace(self, state=State.NOT_RUNNING)
        return replace(self, state=State.ERROR) if self.state is State.PENDING_ERROR else self

    def _become(self, state: State) -> Self:
        """Change the client's state if that change is possible. A client that shuts down ignores other changes."""
        return replace(self, state=state) if self.state.may_become(state) else self

    def _with(self, name: str, state: ThreadState) -> Self:
        threads = (replace(thread, state=state) if thread.name == name else thread for thread in self.threads)
        return replace(self, threads=tuple(t for t in threads if t.state is not ThreadState.DEAD))

    def _thread(self, name: str) -> StreamThread:
        for thread in self.threads:
            if thread.name == name:
                return thread
        raise UnsafeState(
            f"client {self.client_id}",
            found=f"a report of {name}",
            expected=f"one of its threads: {', '.join(t.name for t in self.threads) or 'there is none'}",
            remedy="End that thread: it does not belong to this client, or the client took it for dead.",
        )

    def _lowest_free_index(self) -> int:
        taken = {int(thread.name.rpartition("-")[2]) for thread in self.threads}
        return next(index for index in range(1, len(taken) + 2) if index not in taken)
