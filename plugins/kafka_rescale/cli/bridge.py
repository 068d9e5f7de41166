"""The command that the owner of a producer runs before moving the producer to the new topic."""

from __future__ import annotations

from typing import Annotated

import typer

from kafka_rescale.cli.connections import opened
from kafka_rescale.cli.options import AsJson, Config, File
from kafka_rescale.cli.output import Document, show
from kafka_rescale.operations.expansion.bridged import wait_until_bridged

bridge = typer.Typer()


@bridge.command()
def bridged(
    file: File,
    topic: Annotated[str, typer.Option(help="The old topic to wait for. Default: all bridged topics.")] = "",
    seconds: Annotated[float, typer.Option(min=0, help="Seconds to wait at most.")] = 3600.0,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Wait until the bridge has carried over every record that the old topics hold now.

    Then a producer may be moved. Before you call this, flush the producer or commit its transaction. Progress goes
    to stderr.
    """
    application, connection = opened(file, config)
    found = wait_until_bridged(
        application.application_id,
        connection,
        topic=topic,
        seconds=seconds,
        say=lambda line: typer.echo(line, err=True),
    )
    data = {"ends": found.ends, "records": found.records, "successors": found.successors}
    new = ", ".join(f"{old} -> {target}" for old, target in sorted(found.successors.items()))
    show(
        Document(
            data,
            f"The bridge has carried over the {found.records:,} records that were left. "
            f"Write to the new topic: {new}",
        ),
        as_json,
    )
