"""Adding and removing stream threads while a pipeline is in operation (KIP-663).

A thread is one ``spark-submit`` of each run. A thread that was added takes part from the next run on. A thread
that was removed keeps its tasks until the run in progress has ended, because no other thread may have them within
that run.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping

from kafka_rescale.core.assignment.thread_states import ThreadState
from kafka_rescale.core.control.keys import Concern
from kafka_rescale.core.control.processing import Processing, ThreadRecord
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import Fenced, TimedOut, UnsafeState
from kafka_rescale.core.processing.adjustments import changed_by, thread_added, thread_removed, with_declared
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import poll_until
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.kafka.control.lease import update_despite_races

log = logging.getLogger(__name__)

Say = Callable[[str], None]
Event = Callable[[Processing], tuple[Processing, str | None]]
LONGEST_PAUSE_SECONDS = 2.0
REPORT_SECONDS = 30.0


def add_stream_thread(
    application_id: str,
    connection: KafkaConnection,
    client_id: str | None = None,
    timeout_seconds: float | None = None,
    say: Say = log.info,
    declared: Collection[str] = (),
    task: str = "",
) -> str | None:
    """Add a thread, and return its name; None if the pipeline has never run, or the client is not running.

    :param client_id: id of the client that gets the thread; None for the only client.
    :param timeout_seconds: how long to wait for its start, ``math.inf`` without a limit; None returns at once.
    :param say: called with a sentence about the wait.
    :param declared: ids of the clients of the application file. The record may not know some of them yet.
    :param task: id of the task that asks for it. A repetition of the task only waits for the thread of the first
        try. Empty if nothing repeats the call.
    :raises InvalidInput: there is no such client, or no client was named and there are several.
    :raises Outage: the thread has not started in time, but it still will; or the brokers don't answer.
    :raises UnsafeState: the thread ended before it had started.
    """
    control = ControlTopic(connection, application_id)
    name = _change(control, lambda known: thread_added(with_declared(known, declared), client_id), task)
    if name is None or timeout_seconds is None:
        return name
    what, tell = f"stream thread {name} to start", now_and_then(say)
    remedy = f"It starts with the next run of process_{application_id}; trigger one if there is no schedule."

    def has_started() -> bool:
        thread = _thread(control, name)
        if thread is None or thread.state is ThreadState.PENDING_SHUTDOWN:
            raise UnsafeState(
                f"stream thread {name}",
                found="its end before it has started: it was removed, or its client ended or was started anew",
                expected="its start",
                remedy="See `status`, and add a thread again if it is still needed.",
            )
        if thread.state is not ThreadState.STARTING:
            return True
        tell(f"Waiting for {what}: it is {thread.state}. {remedy}")
        return False

    _wait(has_started, timeout_seconds, what, remedy)
    return name


def remove_stream_thread(
    application_id: str,
    connection: KafkaConnection,
    timeout_seconds: float | None = None,
    client_id: str | None = None,
    say: Say = log.info,
    declared: Collection[str] = (),
    task: str = "",
) -> str | None:
    """Ask a thread to end, and return its name; None if the client has no thread or can't lose any.

    :param timeout_seconds: how long to wait for its end, ``math.inf`` without a limit; None returns at once.
    :param client_id: id of the client that loses the thread; None for the only client.
    :param say: called with a sentence about the wait.
    :param declared: ids of the clients of the application file. The record may not know some of them yet.
    :param task: id of the task that asks for it. A repetition of the task only waits for the thread of the first
        try. Empty if nothing repeats the call.
    :raises InvalidInput: there is no such client, or no client was named and there are several.
    :raises Outage: the thread has not ended in time, but it still will.
    """
    control = ControlTopic(connection, application_id)
    name = _change(control, lambda known: thread_removed(with_declared(known, declared), client_id), task)
    if name is None or timeout_seconds is None:
        return name
    what, tell = f"stream thread {name} to end", now_and_then(say)
    remedy = f"It ends with the next run of process_{application_id}; nothing has to be done again."

    def has_ended() -> bool:
        thread = _thread(control, name)
        # Another thread may have been given its name since.
        if thread is None or thread.state is not ThreadState.PENDING_SHUTDOWN:
            return True
        tell(f"Waiting for {what}: it is {thread.state} and has {', '.join(thread.tasks) or 'no task'}. {remedy}")
        return False

    _wait(has_ended, timeout_seconds, what, remedy)
    return name


def now_and_then(say: Say) -> Say:
    """Return a function that passes a sentence on if it is new, and otherwise every half minute."""
    last, said_at = "", 0.0

    def tell(text: str) -> None:
        nonlocal last, said_at
        if text != last or time.monotonic() - said_at >= REPORT_SECONDS:
            last, said_at = text, time.monotonic()
            say(text)

    return tell


def _thread(control: ControlTopic, name: str) -> ThreadRecord | None:
    processing = control.read().processing or Processing()
    return next((thread for thread in processing.threads if thread.name == name), None)


def _wait(condition: Callable[[], bool], seconds: float, what: str, remedy: str) -> None:
    """Wait for an effect of the next run."""
    poll_until(
        condition,
        seconds=seconds,
        otherwise=lambda: TimedOut(what, seconds, remedy),
        longest_pause=LONGEST_PAUSE_SECONDS,
    )


def _change(control: ControlTopic, event: Event, task: str) -> str | None:
    """Change a thread, and return its name. If an earlier try of the task has done so, only return the name."""
    names: list[str | None] = [None]

    def change(state: ControlState) -> Mapping[str, Processing]:
        if state.processing is None:
            return {}
        if (name := state.processing.changed_threads.get(task)) is not None:
            names[0] = name
            return {}
        after, names[0] = event(state.processing)
        if names[0] is None:
            return {}
        # Only a client that the record knows has threads. A new one gets its record by the next run.
        changed = state.processing.with_clients(*after.clients)
        return {Concern.PROCESSING: changed_by(changed, task, names[0]) if task else changed}

    update_despite_races(control, change, lost=(Fenced,))
    return names[0]
