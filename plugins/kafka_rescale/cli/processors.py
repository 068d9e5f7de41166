"""The command that gives a pipeline more processors (KIP-287)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kafka_rescale.cli.connections import connection_for
from kafka_rescale.cli.output import Document
from kafka_rescale.core.acls import Role
from kafka_rescale.operations.load import load_pipeline_application
from kafka_rescale.operations.processors import expand_processors


def expanded(file: Path, config: Path | None, processors: int, sub_topologies: Sequence[int]) -> Document:
    """Ask for processors, and return what to say about it."""
    application = load_pipeline_application(file)
    connection = connection_for(application, config, Role.ADMIN)
    connection.check()
    known = expand_processors(application, connection, processors, sub_topologies)
    lines = (
        f"Sub-topology {number}: {counts.count} processors"
        + (f", to become {counts.expanding_to} once the new ones are warm." if counts.expanding_to else ".")
        for number, counts in known.sub_topologies.items()
    )
    return Document(data=known.model_dump(mode="json"), text="\n".join(lines))
