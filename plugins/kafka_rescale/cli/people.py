"""Commands by which a person states something: a finding may be accepted, a program has stopped."""

from __future__ import annotations

import getpass
import os
import socket
from typing import Annotated

import typer

from kafka_rescale.cli.connections import opened
from kafka_rescale.cli.options import AsJson, Config, File
from kafka_rescale.cli.output import Document, show
from kafka_rescale.core.roles import Role
from kafka_rescale.operations.expansion.stopped import say_stopped
from kafka_rescale.operations.verify.accept import accept as accept_findings

people = typer.Typer()


@people.command()
def accept(
    file: File,
    finding: Annotated[
        list[str], typer.Option(help="A finding as verify or callback names it. Repeat the option for more.")
    ],
    reason: Annotated[str, typer.Option(help="Why the findings may be accepted. The report keeps it.")],
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Accept findings exactly as they are. verify still reports them, but they no longer fail a task."""
    application, connection = opened(file, config, Role.ADMIN)
    accepted = accept_findings(application, connection, findings=finding, by=_person(), reason=reason)
    data = {"accepted": [each.model_dump(mode="json") for each in accepted]}
    show(
        Document(data, "\n".join(map(str, accepted)), closing="Now clear the failed task: verify or callback."),
        as_json,
    )


@people.command()
def stopped(file: File, config: Config = None, as_json: AsJson = False) -> None:
    """State that every instance has ended, when the log asks you (`type: manual`). Empties the group at once."""
    group, removed = say_stopped(*opened(file, config, Role.ADMIN))
    said = f"{removed} members removed, and no member has come back" if removed else "it has no members"
    show(Document({"group": group, "removed": removed}, f"group {group}: {said}"), as_json)


def _person() -> str:
    try:
        return f"{getpass.getuser()}@{socket.gethostname()}"
    except (KeyError, OSError):  # In a container the user may have only a number.
        return f"user {os.getuid()}@{socket.gethostname()}"
