"""Commands for pipelines: their threads (KIP-663), clients, processors (KIP-287), offsets and status."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kafka_rescale.cli.connections import connection_for
from kafka_rescale.cli.output import Document, Rows, progress
from kafka_rescale.core.application.pipeline import PipelineApplication
from kafka_rescale.core.assignment.picture import svg
from kafka_rescale.core.cluster import TopicPartition
from kafka_rescale.core.control.job_results import JobResult
from kafka_rescale.core.control.processing import ClientRecord, Processing, ThreadRecord
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.processing.late_records import told_dropped
from kafka_rescale.core.roles import Role
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.operations.application.load import load_pipeline_application
from kafka_rescale.operations.processing.clients import remove_clients, start_clients
from kafka_rescale.operations.processing.new_offset import set_offset
from kafka_rescale.operations.processing.processors import expand_processors
from kafka_rescale.operations.processing.stream_threads import add_stream_thread, remove_stream_thread

JOB = ("job", "attempt", "state", "last progress", "detail")
NOT_RUNNING = (
    "No thread was {}: the client is not running. If it starts with the next run, it has as many threads as the "
    "file gives it."
)


def add_thread(file: Path, config: Path | None, timeout_seconds: float | None, client: str | None) -> Document:
    """Add a thread, and return what to print about it.

    :param timeout_seconds: Seconds to wait until the thread has started; None doesn't wait.
    """
    application, connection = _opened(file, config)
    name = add_stream_thread(
        application.application_id, connection, client, timeout_seconds, progress, application.client_ids
    )
    started = "has started." if timeout_seconds is not None else "gets its tasks from the next run on."
    text = NOT_RUNNING.format("added") if name is None else f"{name} {started}"
    return Document(data={"thread": name}, text=text)


def remove_thread(file: Path, config: Path | None, timeout_seconds: float | None, client: str | None) -> Document:
    """Remove a thread, and return what to print about it.

    :param timeout_seconds: Seconds to wait until the thread has ended; None doesn't wait.
    """
    application, connection = _opened(file, config)
    name = remove_stream_thread(
        application.application_id, connection, timeout_seconds, client, progress, application.client_ids
    )
    ended = "has ended." if timeout_seconds is not None else "ends with the next run."
    text = NOT_RUNNING.format("removed") if name is None else f"{name} {ended}"
    return Document(data={"thread": name}, text=text)


def give_up_clients(file: Path, config: Path | None, client: str | None, tag: str | None) -> Document:
    """Give clients up, and return what to print about it.

    :param tag: ``key=value``; all clients with this tag are given up.
    :raises InvalidInput: Neither a client nor a tag is named, or both are.
    """
    key, separator, value = (tag or "").partition("=")
    if (client is None) == (not separator):
        raise InvalidInput(
            "clients that shall be removed",
            found=f"--client {client} --tag {tag}",
            expected="either --client ID or --tag KEY=VALUE",
            remedy="Name one client, or a tag that all these clients have.",
        )
    application, connection = _opened(file, config)
    names = remove_clients(application, connection, client, (key, value) if separator else None)
    text = f"{', '.join(names)}: from the next run on, other clients have its tasks."
    text = text if names else "No client was removed."
    return Document(data={"clients": names}, text=text)


def begin_clients(file: Path, config: Path | None, client: str | None) -> Document:
    """Start clients again, and return what to print about it."""
    application, connection = _opened(file, config)
    names = start_clients(application, connection, client)
    text = f"{', '.join(names)}: takes part from the next run on." if names else "No client had ended."
    return Document(data={"clients": names}, text=text)


def expand(file: Path, config: Path | None, processors: int, sub_topologies: Sequence[int]) -> Document:
    """Ask for processors, and return what to print about it."""
    application, connection = _opened(file, config)
    known = expand_processors(application, connection, processors, sub_topologies)
    lines = (
        f"Sub-topology {number}: {counts.count} processors"
        + (f", to become {counts.expanding_to} once the new ones are warm." if counts.expanding_to else ".")
        for number, counts in known.sub_topologies.items()
    )
    return Document(data=known.model_dump(mode="json"), text="\n".join(lines))


def move_offset(
    file: Path, config: Path | None, source: TopicPartition, to: str, generation: str | None
) -> Document:
    """Set the offset at which a pipeline continues with a partition, and return what to print about it.

    :param generation: The id of a backfill's generation; None is the pipeline itself.
    """
    application, connection = _opened(file, config)
    if generation is not None:
        application = application.model_copy(update={"application_id": generation})
    offset = set_offset(application, connection, source, to)
    text = f"{application.application_id} continues with {source[0]}-{source[1]} at offset {offset}."
    return Document(data={"topic": source[0], "partition": source[1], "offset": offset}, text=text)


def pipeline_status(file: Path, config: Path | None, picture: Path | None) -> Document:
    """Return the state of a pipeline and of its clients, as of the latest rebalance.

    :param picture: The file to draw the assignment into, as SVG; None draws nothing.
    """
    application = load_pipeline_application(file)
    connection = connection_for(application, config, Role.PLAN)
    connection.check()
    state = ControlTopic(connection, application.application_id).read()
    processing = state.processing or Processing()
    assignment = processing.assignment
    if picture is not None:
        picture.write_text(svg(assignment))
    results = processing.jobs(state.results)
    jobs, dropped = list(map(_job, results)), sum(result.dropped for result in results)
    told = told_dropped(dropped)
    return Document(
        {
            "state": str(processing.state),
            **processing.model_dump(mode="json", exclude={"tasks", "input_ends"}),
            "jobs": [dict(zip(JOB, map(str, job), strict=True)) for job in jobs],
            "dropped": dropped,
        },
        f"{application.application_id}: {processing.state}, as of {processing.run or 'no run'}.",
        (
            Rows(
                "Clients",
                ("client", "state", "failed threads", "tags", "why absent"),
                list(map(_client, processing.clients)),
            ),
            Rows("Stream threads", ("thread", "state", "tasks"), list(map(_thread, processing.threads))),
            Rows("Jobs of the run", JOB, jobs),
            Rows("Assignment", ("client", "active", "standbys"), list(assignment.rows())),
            Rows("To come", ("task", "role", "runs on", "goes to", "waits for"), list(assignment.movement_rows())),
            Rows("Missing standbys", ("task", "missing"), list(assignment.missing_rows())),
        ),
        f"warning: {told}" if told else "",
    )


def _client(client: ClientRecord) -> tuple[object, ...]:
    tags = ", ".join(f"{key}={value}" for key, value in sorted(client.tags.items()))
    return client.client_id, str(client.state), client.failed_stream_threads, tags, client.absent or client.put_out


def _thread(thread: ThreadRecord) -> tuple[object, ...]:
    return thread.name, str(thread.state), ", ".join(thread.tasks)


def _job(result: JobResult) -> tuple[object, ...]:
    progressed = "none so far"
    if result.progressed_ms:
        progressed = f"{max(0, now_ms() - result.progressed_ms) // 1000} s ago"
    return result.job, result.attempt, result.state, progressed if result.state == "running" else "", result.detail


def _opened(file: Path, config: Path | None) -> tuple[PipelineApplication, KafkaConnection]:
    application = load_pipeline_application(file)
    connection = connection_for(application, config, Role.ADMIN)
    connection.check()
    return application, connection
