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

OfClient = Annotated[
    str | None, typer.Option("--client", help="client.id of its client. Needed if there are several clients.")
]


NoWait = Annotated[bool, typer.Option("--no-wait", help="Return at once. The next run makes the change.")]


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
    client: Annotated[str | None, typer.Option(help="client.id of the client to give up.")] = None,
    tag: Annotated[
        str | None,
        typer.Option(help="KEY=VALUE: give up all clients with this tag, such as those of a lost rack."),
    ] = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Give up clients of a pipeline. From the next run on, other clients have their tasks."""
    show(give_up_clients(file, config, client, tag), as_json)


@pipelines.command()
def start_client(
    file: File,
    client: Annotated[
        str | None, typer.Option(help="client.id of the client to start. Default: all, unless one is absent.")
    ] = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Start again the clients of a pipeline that have ended or are absent."""
    show(begin_clients(file, config, client), as_json)


@pipelines.command()
def expand_processors(
    file: File,
    processors: Annotated[int, typer.Option(min=1, help="Wanted number of processors of each sub-topology.")],
    sub_topology: Annotated[
        list[int] | None, typer.Option(help="Change only this sub-topology. Repeat the option for more.")
    ] = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Give a pipeline of runtime spark more processors. They warm up while the existing ones work."""
    show(expand(file, config, processors, sub_topology or ()), as_json)


@pipelines.command()
def set_offset(
    file: File,
    topic: Annotated[str, typer.Option(help="Full name of a topic that the pipeline reads.")],
    partition: Annotated[int, typer.Option(min=0, help="Number of the partition.")],
    to: Annotated[str, typer.Option(help="The next offset to process, or earliest, or latest.")],
    generation: Annotated[
        str | None, typer.Option(help="For a backfill: the id of its generation. Default: the pipeline itself.")
    ] = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Set where a pipeline of runtime spark continues. Unlike Kafka's own tools, this keeps stream time."""
    show(move_offset(file, config, (topic, partition), to, generation), as_json)
