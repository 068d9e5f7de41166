"""Stream threads that are added and removed while a pipeline is in operation (KIP-663).

A thread is one ``spark-submit`` of each run: one that was added has its part from the next run on, and one that
was removed keeps its tasks until the run in progress, in which nobody else may have them, has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kafka_rescale.core.control.keys import Concern
from kafka_rescale.core.control.processing import Processing
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import Fenced, Outage
from kafka_rescale.core.processing.adjustments import thread_added, thread_removed
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import poll_until
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.kafka.control.lease import update_despite_races

Event = Callable[[Processing], tuple[Processing, str | None]]
LONGEST_PAUSE_SECONDS = 2.0


def add_stream_thread(
    application_id: str, connection: KafkaConnection, client_id: str | None = None
) -> str | None:
    """Add a thread, and return its name; None if the pipeline has never run, or the client is not running.

    :param client_id: of the client that gets it; None is the only one.
    :raises InvalidInput: there is no such client, or there are several.
    :raises Outage: the brokers don't answer.
    """
    control = ControlTopic(connection, application_id)
    return _changed(control, lambda processing: thread_added(processing, client_id))


def remove_stream_thread(
    application_id: str,
    connection: KafkaConnection,
    timeout_seconds: float | None = None,
    client_id: str | None = None,
) -> str | None:
    """Ask a thread to end, and return its name; None if there is none or the client can't lose one.

    :param timeout_seconds: how long to wait until it has ended; None returns at once.
    :param client_id: of the client that loses it; None is the only one.
    :raises InvalidInput: there is no such client, or there are several.
    :raises Outage: it has not ended in time; it still will.
    """
    control = ControlTopic(connection, application_id)
    name = _changed(control, lambda processing: thread_removed(processing, client_id))
    if name is None or timeout_seconds is None:
        return name

    def ended() -> bool:
        processing = control.read().processing
        return processing is None or name not in {thread.name for thread in processing.threads}

    poll_until(
        ended,
        seconds=timeout_seconds,
        otherwise=lambda: Outage(
            f"stream thread {name}",
            found=f"PENDING_SHUTDOWN after {timeout_seconds:g} s",
            expected="its end",
            remedy="It ends with the next run of the pipeline; nothing has to be done again.",
        ),
        longest_pause=LONGEST_PAUSE_SECONDS,
    )
    return name


def _changed(control: ControlTopic, event: Event) -> str | None:
    names: list[str | None] = [None]

    def change(state: ControlState) -> Mapping[str, Processing]:
        if state.processing is None:
            return {}
        after, names[0] = event(state.processing)
        return {} if names[0] is None else {Concern.PROCESSING: after}

    update_despite_races(control, change, lost=(Fenced,))
    return names[0]
