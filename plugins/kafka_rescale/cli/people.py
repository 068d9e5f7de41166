"""What a person says: that a finding may be accepted, that a program has been stopped."""

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
        list[str], typer.Option(help="As verify or callback reports it; more than once for several.")
    ],
    reason: Annotated[str, typer.Option(help="Why it may be accepted; kept in the report.")],
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Accept findings of verify, exactly as they are: they are reported from then on, and fail nothing."""
    application, connection = opened(file, config, Role.ADMIN)
    accepted = accept_findings(application, connection, findings=finding, by=_person(), reason=reason)
    data = {"accepted": [each.model_dump(mode="json") for each in accepted]}
    show(
        Document(data, "\n".join(map(str, accepted)), closing="Clear the task that failed, verify or callback."),
        as_json,
    )


@people.command()
def stopped(file: File, config: Config = None, as_json: AsJson = False) -> None:
    """Say that every instance has ended, as the log asked (`type: manual`): its group is emptied at once."""
    group, removed = say_stopped(*opened(file, config, Role.ADMIN))
    said = f"{removed} members removed, and none has come back" if removed else "it has no members"
    show(Document({"group": group, "removed": removed}, f"group {group}: {said}"), as_json)


def _person() -> str:
    try:
        return f"{getpass.getuser()}@{socket.gethostname()}"
    except (KeyError, OSError):  # In a container the user may have a number only.
        return f"user {os.getuid()}@{socket.gethostname()}"
