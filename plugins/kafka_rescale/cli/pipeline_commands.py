"""The commands that change a pipeline: its threads, clients and processors."""

from __future__ import annotations

import math
from typing import Annotated

import typer

from kafka_rescale.cli.options import AsJson, Config, File
from kafka_rescale.cli.output import show
from kafka_rescale.cli.pipelines import (
    add_thread,
    begin_clients,
    expand,
    give_up_clients,
    move_offset,
    remove_thread,
)

pipelines = typer.Typer()

OfClient = Annotated[str | None, typer.Option("--client", help="Its client.id; needed where there are several.")]


NoWait = Annotated[bool, typer.Option("--no-wait", help="Return at once; it happens with the next run.")]


@pipelines.command()
def add_stream_thread(
    file: File,
    timeout: Annotated[float, typer.Option(min=0, help="Seconds to wait until it has started.")] = math.inf,
    no_wait: NoWait = False,
    client: OfClient = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Add a stream thread to a pipeline of runtime spark, and wait until it has started."""
    show(add_thread(file, config, None if no_wait else timeout, client), as_json)


@pipelines.command()
def remove_stream_thread(
    file: File,
    timeout: Annotated[float, typer.Option(min=0, help="Seconds to wait until it has ended.")] = math.inf,
    no_wait: NoWait = False,
    client: OfClient = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Remove a stream thread of a pipeline of runtime spark, and wait until it has ended."""
    show(remove_thread(file, config, None if no_wait else timeout, client), as_json)


@pipelines.command()
def remove_client(
    file: File,
    client: Annotated[str | None, typer.Option(help="Its client.id.")] = None,
    tag: Annotated[str | None, typer.Option(help="KEY=VALUE: all clients with this tag, a lost rack.")] = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Give clients of a pipeline up; others have their tasks from the next run on."""
    show(give_up_clients(file, config, client, tag), as_json)


@pipelines.command()
def start_client(
    file: File,
    client: Annotated[str | None, typer.Option(help="Its client.id; else all.")] = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Start clients of a pipeline again that have ended, or are absent."""
    show(begin_clients(file, config, client), as_json)


@pipelines.command()
def expand_processors(
    file: File,
    processors: Annotated[int, typer.Option(min=1, help="How many there shall be of each sub-topology.")],
    sub_topology: Annotated[list[int] | None, typer.Option(help="Only this one; may be repeated.")] = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Give a pipeline of runtime spark more processors; they warm up while the existing ones work."""
    show(expand(file, config, processors, sub_topology or ()), as_json)


@pipelines.command()
def set_offset(
    file: File,
    topic: Annotated[str, typer.Option(help="What the pipeline reads, by its full name.")],
    partition: Annotated[int, typer.Option(min=0, help="Its number.")],
    to: Annotated[str, typer.Option(help="The first offset that shall be processed; or earliest, latest.")],
    generation: Annotated[str | None, typer.Option(help="Of a backfill: its id; else the pipeline's.")] = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Set where a pipeline of runtime spark goes on; stream time stays, unlike with Kafka's own tools."""
    show(move_offset(file, config, (topic, partition), to, generation), as_json)
