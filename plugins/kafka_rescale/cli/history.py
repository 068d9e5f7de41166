"""The command that shows what became of an application's expansions."""

from __future__ import annotations

import typer

from kafka_rescale.cli.connections import opened
from kafka_rescale.cli.options import AsJson, Config, File
from kafka_rescale.cli.output import Document, Rows, show
from kafka_rescale.core.control.history import MOST, newest_first
from kafka_rescale.core.page.history import HEADER, history_rows, pause_text
from kafka_rescale.kafka.control.control_topic import ControlTopic

past = typer.Typer()


@past.command()
def history(file: File, config: Config = None, as_json: AsJson = False) -> None:
    """Show the expansions that have ended: who, how long, what was proven, and what had been predicted."""
    application, connection = opened(file, config)
    found = newest_first(ControlTopic(connection, application.application_id).read().history.values())
    data = {"kept_at_most": MOST, "expansions": [each.model_dump(mode="json") for each in found]}
    kept = f"The newest {MOST} attempts are kept."
    text = f"{application.application_id}: {len(found)} attempts at an expansion have ended. {kept}"
    rows = history_rows(found)
    pauses = [
        (row[0], each.reason or None, pause_text(each) or None) for each, row in zip(found, rows, strict=True)
    ]
    tables = (
        Rows("Expansions, the newest first", HEADER, rows),
        Rows("Pauses", ("ended", "rolled back because", "parts"), [row for row in pauses if any(row[1:])]),
    )
    show(Document(data, text, tables), as_json)
