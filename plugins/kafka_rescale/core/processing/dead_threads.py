"""What happens after a stream thread died of an error, by the handler's decision (KIP-663, KIP-671)."""

from __future__ import annotations

from collections.abc import Iterator

from kafka_rescale.core.assignment.stream_threads import Decision, StreamsClient, client_of
from kafka_rescale.core.assignment.thread_states import ThreadState
from kafka_rescale.core.control.processing import ClientRecord, Processing, ThreadRecord
from kafka_rescale.core.processing.rebalance import started


def thread_died(processing: Processing, name: str, decision: Decision) -> Processing:
    """Return the record after the death of a thread; as it was if there is no such thread (any more).

    A thread that replaces another one takes over all of its tasks at once. A client that is shut down keeps its
    tasks for the rest of this run, as no other client may have them meanwhile; the next run's rebalance gives them
    to others. A thread that was asked to end also keeps its tasks: what is left of its work is done in its own
    name, and no thread takes its place.
    """
    record = processing.client(client_of(name))
    states = {thread.name: thread.state for thread in record.threads} if record is not None else {}
    if record is None or name not in states:
        return processing
    if decision is Decision.REPLACE_THREAD and states[name] is ThreadState.PENDING_SHUTDOWN:
        return processing
    client = record.client.thread_failed(name, decision).thread_became(name, ThreadState.DEAD)
    if decision is Decision.REPLACE_THREAD:
        client = started(client)
    after = processing.with_clients(_with_replaced(record, client, name))
    if decision is not Decision.SHUTDOWN_APPLICATION:
        return after
    others = (other for other in processing.clients if other.client_id != record.client_id)
    return after.with_clients(*(other.with_client(other.client.close_to_error()) for other in others))


def _with_replaced(record: ClientRecord, client: StreamsClient, dead: str) -> ClientRecord:
    after = record.with_client(client)
    return after.model_copy(update={"threads": tuple(_threads(record, after, dead))})


def _threads(before: ClientRecord, after: ClientRecord, dead: str) -> Iterator[ThreadRecord]:
    known = {thread.name: thread for thread in before.threads}
    # Names are used again, so the record refers to threads by the names that they began the run with.
    begun = known[dead].replaces or dead
    for thread in after.threads:
        is_new = thread.name not in known
        yield thread.model_copy(update={"tasks": known[dead].tasks, "replaces": begun}) if is_new else thread
