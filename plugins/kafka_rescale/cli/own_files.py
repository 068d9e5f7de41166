"""Where the files are that come with the package and that a user needs."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from kafka_rescale.cli.options import AsJson
from kafka_rescale.cli.output import Document, show
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.installation import DAG_FILE, GATE_JAR, SPARK_JOBS, own_file

own_files = typer.Typer()


class OwnFile(StrEnum):
    """What ``path`` can be asked for."""

    DAGS = "dags"
    GATE = "gate"
    SPARK_JOBS = "spark-jobs"


PLACES = {OwnFile.DAGS: DAG_FILE, OwnFile.GATE: GATE_JAR, OwnFile.SPARK_JOBS: SPARK_JOBS}


@own_files.command("path")
def path_of(
    file: Annotated[OwnFile, typer.Argument(help="Which one.", show_default=False)], as_json: AsJson = False
) -> None:
    """Print where this package has the DAG file to copy, the jar of the warm-up gate, or the Spark jobs."""
    path = own_file(PLACES[file])
    if not path.exists():
        raise InvalidInput(
            f"{file} of this package",
            found=f"no {path}",
            expected="it to be there",
            remedy="In a checkout, `make setup` builds the jar. Install a wheel again.",
        )
    show(Document({"path": str(path)}, str(path)), as_json)
