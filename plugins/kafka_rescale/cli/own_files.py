"""Show where the package keeps the files that a user needs."""

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
    """What ``path`` can locate."""

    DAGS = "dags"
    GATE = "gate"
    SPARK_JOBS = "spark-jobs"


PLACES = {OwnFile.DAGS: DAG_FILE, OwnFile.GATE: GATE_JAR, OwnFile.SPARK_JOBS: SPARK_JOBS}


@own_files.command("path")
def path_of(
    file: Annotated[OwnFile, typer.Argument(help="What to locate.", show_default=False)], as_json: AsJson = False
) -> None:
    """Print the path of the DAG file to copy, of the warm-up gate's jar, or of the Spark jobs."""
    path = own_file(PLACES[file])
    if not path.exists():
        raise InvalidInput(
            f"{file} of this package",
            found=f"no {path}",
            expected="that file or directory",
            remedy="In a checkout, run `make setup`, which builds the jar. Otherwise install the wheel again.",
        )
    show(Document({"path": str(path)}, str(path)), as_json)
