"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

File = Annotated[Path, typer.Argument(help="The application file.", show_default=False)]
Config = Annotated[
    Path | None,
    typer.Option(
        help="File of Kafka settings by their librdkafka names, as JSON or properties. Default: the environment."
    ),
]
OfRole = Annotated[Path | None, typer.Option(help="Settings file of this role. Its permissions are checked too.")]
Principal = Annotated[str, typer.Option(help="Principal of this role, such as User:alice.", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
