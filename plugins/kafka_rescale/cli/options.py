"""What several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

File = Annotated[Path, typer.Argument(help="The application file.", show_default=False)]
Config = Annotated[
    Path | None,
    typer.Option(
        help="Kafka settings by their librdkafka names, as JSON or properties. Else from the environment."
    ),
]
OfRole = Annotated[Path | None, typer.Option(help="Of this role, whose permissions are checked as well.")]
Principal = Annotated[str, typer.Option(help="Of this role, such as User:alice.", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
