"""The record after a stream thread has died of an error, as the handler has decided (KIP-663, KIP-671).

If a client has lost its Spark, its threads would die and be replaced in every run. So the run puts this client
out, as a consumer group removes a member that no longer responds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kafka_rescale.core.assignment.stream_threads import Decision, StreamsClient, client_of
from kafka_rescale.core.assignment.thread_states import State, ThreadState
from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.processing import ClientRecord, Processing, ThreadRecord
from kafka_rescale.core.errors import RescaleError
from kafka_rescale.core.processing.rebalance import started


def thread_died(processing: Processing, name: str, decision: Decision) -> Processing:
    """Return the record after the death of a thread. If the record has no such thread (any more), change nothing.

    A thread that replaces another one takes over all its tasks at once. A client that is shut down keeps its tasks
    for the rest of this run, because no other client may have them meanwhile. The rebalance of the next run gives
    them to other clients. A thread that was asked to end also keeps its tasks if it dies: no thread replaces it,
    and the rest of its work is done under its own name.
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
    return after.with_clients(*map(_shut_down, others))


def _shut_down(client: ClientRecord) -> ClientRecord:
    """Return the record of another client after the application was shut down (``SHUTDOWN_APPLICATION``)."""
    if client.state is State.CREATED:
        # Kafka Streams has no way from CREATED to ERROR, because a process that has not started receives no
        # request to shut down. But an absent client, or one that a person has just started, is of this
        # application: in the next run it would process everything alone.
        return client.model_copy(update={"state": State.ERROR})
    return client.with_client(client.client.close_to_error())


def has_lost_its_spark(
    processing: Processing, job: str, last: JobResult | None, results: Mapping[str, JobResult]
) -> bool:
    """Return whether a client's Spark begins no task any more, while the Spark of another client does.

    If no client's Spark has begun a task in this run, all clients may have the same problem. Then the answer is
    false. For this reason, the answer is also false for the last client.

    :param job: a job of the client that has failed in all its attempts, by the name of its result.
    :param last: the result of the last attempt. None if it has left no result.
    :param results: the results of all jobs of the application, by name.
    """
    if last is not None and (last.progressed_ms or not _is_foreign(last)):
        return False
    others = (each.job for each in processing.jobs(results) if each.progressed_ms and each.job != job)
    at_work = {_client_of_job(each) for each in others}
    can_go_on = {c.client_id for c in processing.clients if c.state.is_running_or_rebalancing and not c.absent}
    return _client_of_job(job) not in at_work and bool(at_work & can_go_on)


def _is_foreign(result: JobResult) -> bool:
    """Whether a job has failed by an error that is not of this project, such as Spark's, or without any report."""
    return result.failure is None or result.failure.kind == RescaleError.__name__


def _client_of_job(job: str) -> str:
    return client_of(job.split("/", 2)[2])


def put_out(processing: Processing, name: str, why: str) -> Processing:
    """Return the record after the death of a thread whose client is put out: the next run leaves it out."""
    after = thread_died(processing, name, Decision.SHUTDOWN_CLIENT)
    record = after.client(client_of(name))
    return after if record is None else after.with_clients(record.model_copy(update={"put_out": why}))


def _with_replaced(record: ClientRecord, client: StreamsClient, dead: str) -> ClientRecord:
    after = record.with_client(client)
    return after.model_copy(update={"threads": tuple(_threads(record, after, dead))})


def _threads(before: ClientRecord, after: ClientRecord, dead: str) -> Iterator[ThreadRecord]:
    known = {thread.name: thread for thread in before.threads}
    # A new thread may get the name of a dead one. So the record refers to threads by their names at the begin of
    # the run.
    begun = known[dead].replaces or dead
    for thread in after.threads:
        is_new = thread.name not in known
        yield thread.model_copy(update={"tasks": known[dead].tasks, "replaces": begun}) if is_new else thread
