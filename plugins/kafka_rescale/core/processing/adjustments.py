"""The changes that a user asks for when triggering a run: more or fewer threads, clients and processors."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from kafka_rescale.core.assignment.thread_states import State
from kafka_rescale.core.control.processing import ClientRecord, Processing
from kafka_rescale.core.errors import Refused
from kafka_rescale.core.processing.rebalance import CAN_JOIN

ADD_STREAM_THREAD = "add_stream_thread"
REMOVE_STREAM_THREAD = "remove_stream_thread"
REMOVE_TIMEOUT = "remove_stream_thread_timeout_seconds"
REMOVE_CLIENT = "remove_client"
START_CLIENT = "start_client"
EXPAND_PROCESSORS = "expand_processors"


@dataclass(frozen=True)
class Adjustments:
    """Changes before a rebalance.

    :param add_to: the client that gets a stream thread.
    :param remove_from: the client that loses a stream thread.
    :param timeout_seconds: how long the run waits for the end of a removed thread that may still be at work. None:
        the run does not wait.
    :param remove: the client that ends.
    :param start: the client that starts again.
    :param processors: the number of processors that every sub-topology shall have.
    """

    add_to: str | None = None
    remove_from: str | None = None
    timeout_seconds: float | None = None
    remove: str | None = None
    start: str | None = None
    processors: int | None = None

    @classmethod
    def of(cls, params: Mapping[str, Any]) -> Self:
        """Return the changes that the params of a run ask for."""
        return cls(
            params.get(ADD_STREAM_THREAD),
            params.get(REMOVE_STREAM_THREAD),
            params.get(REMOVE_TIMEOUT),
            params.get(REMOVE_CLIENT),
            params.get(START_CLIENT),
            params.get(EXPAND_PROCESSORS),
        )


NOTHING_ASKED = Adjustments()
REMEMBERED = 500
"""How many runs with changes the record remembers, and how many tasks that have added or removed a thread. If an
older one is cleared, it makes its changes again."""


def still_asked(processing: Processing | None, run: str, asked: Adjustments) -> Adjustments:
    """Return the changes that a run still has to make. If an attempt at the run has made them, none are left."""
    return NOTHING_ASKED if processing is not None and run in processing.adjusted_by else asked


@dataclass(frozen=True)
class Adjusted:
    """The clients after the changes of a run, before the rebalance.

    :param asked: the changes. If an earlier attempt at the run has made them, none are left.
    :param added: the added stream thread. None if there is none, because the client's state allowed no new thread.
    :param removed: the stream thread that was asked to end. None if the client had none to lose.
    """

    processing: Processing
    asked: Adjustments = NOTHING_ASKED
    added: str | None = None
    removed: str | None = None

    def told(self, after: Processing) -> Iterator[str]:
        """Yield what has become of the threads, for the person who has asked (KIP-663, ``addStreamThread``).

        :param after: the record after the rebalance. A client that it has started anew has lost the added thread.
        """
        if (client := self.asked.add_to) is not None:
            stays = self.added in {thread.name for thread in after.threads}
            yield (
                f"added {self.added}" if stays else f"no thread added: {self._why_not(client, self.added, after)}"
            )
        if (client := self.asked.remove_from) is not None:
            why = self._why_not(client, self.removed, after)
            yield f"removed {self.removed}" if self.removed else f"no thread removed: {why}"

    def _why_not(self, client_id: str, changed: str | None, after: Processing) -> str:
        client, now = self.processing.the_client(client_id), after.client(client_id)
        if now is not None and now.absent:
            return f"{client_id} is absent ({now.absent})"
        if changed is not None or client.state is State.CREATED:
            return f"{client_id} starts with this run, with as many threads as the file gives it"
        if client.state.is_running_or_rebalancing:
            return f"{client_id} has no thread"
        return f"{client_id} is {client.state} (see start-client)"


def adjusted(processing: Processing, run: str, asked: Adjustments, declared: Collection[str] = ()) -> Adjusted:
    """Return the clients after the changes of a run. If an attempt at the run has made them, change nothing.

    The next rebalance begins with the result.

    :param declared: ids of the clients of the application file. The record may not know some of them yet.
    :raises InvalidInput: there is no such client.
    :raises Refused: no client would be left.
    """
    asked = still_asked(processing, run, asked)
    if asked == NOTHING_ASKED:
        return Adjusted(processing)
    processing, added, removed = with_declared(processing, declared), None, None
    if asked.start is not None:
        processing = clients_started(processing, {processing.the_client(asked.start).client_id})
    if asked.remove is not None:
        processing = clients_removed(processing, {processing.the_client(asked.remove).client_id})
    if asked.add_to is not None:
        processing, added = thread_added(processing, asked.add_to)
    if asked.remove_from is not None:
        processing, removed = thread_removed(processing, asked.remove_from)
    done = (*processing.adjusted_by, run)[-REMEMBERED:]
    return Adjusted(processing.model_copy(update={"adjusted_by": done}), asked, added, removed)


def with_declared(processing: Processing, declared: Collection[str]) -> Processing:
    """Return the record with the clients of the file that have not taken part in a run yet.

    :param declared: ids of the clients of the file.
    """
    new = (ClientRecord(client_id=each) for each in declared if processing.client(each) is None)
    return processing.model_copy(update={"clients": (*processing.clients, *new)})


def thread_added(processing: Processing, client_id: str | None) -> tuple[Processing, str | None]:
    """Add a thread, and return the changed record and the thread's name. The name is None if no thread was added.

    :param client_id: the client. None stands for the only client.
    """
    record = processing.the_client(client_id)
    client, name = record.client.add_stream_thread()
    return processing.with_clients(record.with_client(client)), name


def thread_removed(processing: Processing, client_id: str | None) -> tuple[Processing, str | None]:
    """Ask a thread to end, and return the changed record and the thread's name.

    The name is None if the client has no thread or can't lose one.

    :param client_id: the client. None stands for the only client.
    """
    record = processing.the_client(client_id)
    client, name = record.client.remove_stream_thread()
    return processing.with_clients(record.with_client(client)), name


def changed_by(processing: Processing, task: str, thread: str) -> Processing:
    """Return the record after a task has added or removed a thread, for repetitions of that task.

    :param task: id of the task, which all its tries have.
    """
    changed = {**processing.changed_threads, task: thread}
    latest = dict(list(changed.items())[-REMEMBERED:])
    return processing.model_copy(update={"changed_threads": latest})


def clients_removed(processing: Processing, ids: Collection[str]) -> Processing:
    """Shut clients down, also those that would start with the next run, and absent ones, which would come back.

    Clients that have ended stay as they are.

    :raises Refused: no client would be left.
    """
    can_join = [c for c in processing.clients if c.state in CAN_JOIN]
    removed = {c.client_id for c in can_join} & set(ids)
    at_work = {c.client_id for c in can_join if not c.absent}
    # An absent client may be the last one that can come back.
    if (at_work and at_work <= removed) or (removed and len(removed) == len(can_join)):
        raise Refused(
            "clients of the pipeline",
            found=f"{', '.join(sorted(removed))}, which are all that are left",
            expected="another client that is running",
            remedy="Start another client first. Or pause the DAG, if the pipeline shall stop.",
        )
    closed = (c.with_client(c.client.close()) for c in can_join if c.client_id in ids)
    return processing.with_clients(*closed)


def all_clients_started(processing: Processing, ids: Collection[str]) -> Processing:
    """Start all clients again that have ended.

    :param ids: the clients of the file.
    :raises Refused: one of them is absent. Its disk may only not be mounted, so a person has to name it.
    """
    absent = [client for client in processing.clients if client.absent and client.client_id in ids]
    if absent:
        raise Refused(
            "clients that shall start",
            found=", ".join(f"{client.client_id}, which is absent ({client.absent})" for client in absent),
            expected="a name, because an absent client would begin in a new directory",
            remedy="Mount its state.dir, and it takes part by itself. Or name each client that shall start, this "
            "one only if its directory is lost for good.",
        )
    return clients_started(processing, ids)


def clients_started(processing: Processing, ids: Collection[str]) -> Processing:
    """Start clients again that have ended or are absent. Running clients stay as they are.

    An absent client joins without the state that it had: it makes a new directory for its state.
    """
    again = (
        ClientRecord(client_id=c.client_id, state_dir="" if c.absent else c.state_dir)
        for c in processing.clients
        if c.client_id in ids and not c.state.is_running_or_rebalancing
    )
    return processing.with_clients(*again)
