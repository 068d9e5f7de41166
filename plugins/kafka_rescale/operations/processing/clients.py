"""Giving up clients of a pipeline, and starting them again."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kafka_rescale.core.application.pipeline import PipelineApplication
from kafka_rescale.core.control.keys import Concern
from kafka_rescale.core.control.processing import Processing
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import Fenced, Refused
from kafka_rescale.core.processing.adjustments import (
    all_clients_started,
    clients_removed,
    clients_started,
    with_declared,
)
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.kafka.control.lease import update_despite_races


def remove_clients(
    application: PipelineApplication,
    connection: KafkaConnection,
    client_id: str | None = None,
    tag: tuple[str, str] | None = None,
) -> list[str]:
    """Give up clients that are lost, or that shall go. From the next run on, other clients have their tasks.

    :param client_id: id of one client.
    :param tag: key and value of a tag. All clients with this tag are given up, such as those of a lost rack.
    :returns: ids of the clients that had not ended before.
    :raises InvalidInput: the file has no such client.
    :raises Refused: the pipeline has never run, or no client would be left.
    """
    ids = {application.member(client_id).client_id} if client_id is not None else set()
    if tag is not None:
        key, value = tag
        ids |= {c.client_id for c in application.members if c.tags.get(key) == value}
    return _change(application, connection, lambda known: clients_removed(with_declared(known, ids), ids))


def start_clients(
    application: PipelineApplication, connection: KafkaConnection, client_id: str | None = None
) -> list[str]:
    """Let clients that have ended, or are absent, begin anew with the next run.

    :param client_id: id of one client; None for all clients, if none of them is absent.
    :returns: ids of the clients that begin anew.
    :raises InvalidInput: the file has no such client.
    :raises Refused: the pipeline has never run; or no client is named, and one is absent.
    """
    if client_id is None:
        every = application.client_ids
        return _change(application, connection, lambda processing: all_clients_started(processing, every))
    ids = {application.member(client_id).client_id}
    return _change(application, connection, lambda processing: clients_started(processing, ids))


def _change(
    application: PipelineApplication, connection: KafkaConnection, event: Callable[[Processing], Processing]
) -> list[str]:
    changed: list[str] = []

    def change(state: ControlState) -> Mapping[str, Processing]:
        before = state.processing
        if before is None:
            raise Refused(
                f"pipeline {application.application_id}",
                found="no run of it so far",
                expected="clients that have taken part in a run",
                remedy="Run it, or take the client out of the application file.",
            )
        after = event(before)
        changed[:] = [
            a.client_id
            for a in after.clients
            if (b := before.client(a.client_id)) is None or (a.state, a.absent) != (b.state, b.absent)
        ]
        return {Concern.PROCESSING: after} if after != before else {}

    update_despite_races(ControlTopic(connection, application.application_id), change, lost=(Fenced,))
    return changed
