"""The trigger form of a pipeline."""

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
    """Return the params of a pipeline's run. A scheduled run takes the defaults, which change nothing."""
    clients = [client.client_id for client in application.members]
    made = {
        ADD_STREAM_THREAD: _client(
            clients, "Add a stream thread", THREADS, "The client that gets one more thread."
        ),
        REMOVE_STREAM_THREAD: _client(
            clients, "Remove a stream thread", THREADS, "The client that loses a thread."
        ),
        REMOVE_TIMEOUT: Param(
            None,
            type=["null", "number"],
            minimum=0,
            title="Timeout of the removal",
            section=THREADS,
            description_md="Seconds to wait for the end of the removed thread, if it is still at work. Empty: the "
            "run doesn't wait, and that thread can't commit any more.",
        ),
        EXPAND_PROCESSORS: Param(
            None,
            type=["null", "integer"],
            minimum=1,
            maximum=100_000,
            title="Number of processors",
            section=PROCESSORS,
            description_md="Wanted number of tasks of every sub-topology: at most the number of partitions of its "
            "inputs. The new tasks warm up beside this run and work from a later run on. Empty: as now.",
        ),
    }
    if not application.clients:
        return made
    return {
        **made,
        REMOVE_CLIENT: _client(
            clients, "Give up a client", CLIENTS, "From this run on, other clients have its tasks."
        ),
        START_CLIENT: _client(
            clients,
            "Start a client again",
            CLIENTS,
            "A client that has ended or is absent. It starts without its old state.",
        ),
    }


def _client(clients: list[str], title: str, section: str, text: str) -> Param:
    enum = [None, *clients]
    return Param(None, type=["null", "string"], enum=enum, title=title, section=section, description_md=text)
