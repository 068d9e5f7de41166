"""What happens after a stream thread died of an error, by the handler's decision (KIP-663, KIP-671).

A client whose Spark is gone would have its threads replaced in run after run. So it is put out, as a member of a
consumer group that no longer responds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kafka_rescale.core.assignment.stream_threads import Decision, StreamsClient, client_of
from kafka_rescale.core.assignment.thread_states import ThreadState
from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.processing import ClientRecord, Processing, ThreadRecord
from kafka_rescale.core.errors import RescaleError
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


def has_lost_its_spark(
    processing: Processing, job: str, last: JobResult | None, results: Mapping[str, JobResult]
) -> bool:
    """Return whether a client's Spark begins no task any more, while that of another client does.

    If no client's Spark has begun a task in this run, the reason may be common to all of them. Then this is false,
    and so it is false for the last client.

    :param job: a job of the client that has failed in all its attempts, by the name of its result.
    :param last: what the last attempt has left; None if it has left nothing.
    :param results: of all jobs of the application, by name.
    """
    if last is not None and (last.progressed_ms or not _is_foreign(last)):
        return False
    others = (each.job for each in processing.jobs(results) if each.progressed_ms and each.job != job)
    at_work = {_client_of_job(each) for each in others}
    can_go_on = {c.client_id for c in processing.clients if c.state.is_running_or_rebalancing and not c.absent}
    return _client_of_job(job) not in at_work and bool(at_work & can_go_on)


def _is_foreign(result: JobResult) -> bool:
    """Whether a job has failed by an error that is none of ours, or without a word: Spark's errors are foreign."""
    return result.failure is None or result.failure.kind == RescaleError.__name__


def _client_of_job(job: str) -> str:
    return client_of(job.split("/", 2)[2])


def put_out(processing: Processing, name: str, why: str) -> Processing:
    """Return the record after the death of a thread whose client is put out, from the next run on."""
    after = thread_died(processing, name, Decision.SHUTDOWN_CLIENT)
    record = after.client(client_of(name))
    return after if record is None else after.with_clients(record.model_copy(update={"put_out": why}))


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
