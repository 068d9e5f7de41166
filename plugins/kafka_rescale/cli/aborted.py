"""The command that looks again for records that the new generation has lost in aborted transactions."""

from __future__ import annotations

import typer

from kafka_rescale.cli.connections import opened
from kafka_rescale.cli.exit_codes import FINDINGS
from kafka_rescale.cli.options import AsJson, Config, File
from kafka_rescale.cli.output import Document, Rows, show
from kafka_rescale.core.roles import Role
from kafka_rescale.core.verify.aborted import told_aborted
from kafka_rescale.core.verify.report import to_be_verified
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.operations.verify.aborted import look_for_aborted

lost = typer.Typer()


@lost.command()
def aborted(file: File, config: Config = None, as_json: AsJson = False) -> None:
    """Look for records that the new generation wrote in aborted transactions and has not written again."""
    application, connection = opened(file, config, Role.VERIFY)
    journal = to_be_verified(
        application.application_id, ControlTopic(connection, application.application_id).read().journal
    )
    found = look_for_aborted(connection, journal)
    text = told_aborted(found) or f"{journal.plan.green} has aborted no transaction with records."
    rows = [
        (each.topic, r.partition, r.offset, r.key, r.timestamp_ms) for each in found.topics for r in each.first
    ]
    table = Rows("Lost records", ("topic", "partition", "offset", "key", "timestamp"), rows)
    show(Document(found.model_dump(mode="json"), text, (table,) if rows else ()), as_json)
    if found.lost:
        raise typer.Exit(FINDINGS)
