"""The form shown when a run of a pipeline is triggered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk import Param

from kafka_rescale.core.processing.adjustments import (
    ADD_STREAM_THREAD,
    EXPAND_PROCESSORS,
    REMOVE_CLIENT,
    REMOVE_STREAM_THREAD,
    REMOVE_TIMEOUT,
    START_CLIENT,
)

if TYPE_CHECKING:
    from kafka_rescale.core.application.pipeline import PipelineApplication

THREADS, PROCESSORS, CLIENTS = "Stream threads", "Processors", "Clients"


def process_params(application: PipelineApplication) -> dict[str, Param]:
    """Return the params of a pipeline's run; a scheduled one takes the defaults, which change nothing."""
    clients = [client.client_id for client in application.members]
    made = {
        ADD_STREAM_THREAD: _client(clients, "Add a stream thread", THREADS, "The client that gets one more."),
        REMOVE_STREAM_THREAD: _client(clients, "Remove a stream thread", THREADS, "The client that loses one."),
        REMOVE_TIMEOUT: Param(
            None,
            type=["null", "number"],
            minimum=0,
            title="Timeout of the removal",
            section=THREADS,
            description_md="Seconds to wait for the end of the thread that is removed, should it still be at "
            "work. Empty: it is not waited for, and can't commit any more.",
        ),
        EXPAND_PROCESSORS: Param(
            None,
            type=["null", "integer"],
            minimum=1,
            maximum=100_000,
            title="Number of processors",
            section=PROCESSORS,
            description_md="How many tasks every sub-topology shall have, at most as many as its inputs have "
            "partitions. The new ones warm up beside this run, and work from a later one on. Empty: as now.",
        ),
    }
    if not application.clients:
        return made
    return {
        **made,
        REMOVE_CLIENT: _client(clients, "Give a client up", CLIENTS, "Others have its tasks from this run on."),
        START_CLIENT: _client(
            clients,
            "Start a client again",
            CLIENTS,
            "One that has ended, or that is absent: without its old state.",
        ),
    }


def _client(clients: list[str], title: str, section: str, text: str) -> Param:
    enum = [None, *clients]
    return Param(None, type=["null", "string"], enum=enum, title=title, section=section, description_md=text)
