"""Commands by which a person decides about a finding, a stopped program, the switch, or the pace."""

from __future__ import annotations

import getpass
import os
import socket
from pathlib import Path
from typing import Annotated

import typer

from kafka_rescale.cli.connections import opened
from kafka_rescale.cli.options import AsJson, Config, File
from kafka_rescale.cli.output import Document, show
from kafka_rescale.core.expansion.pacing_say import LIMIT, PAUSE, RESUME
from kafka_rescale.core.expansion.switch_words import CANCEL, CUT_OVER_NOW, POSTPONE
from kafka_rescale.core.roles import Role
from kafka_rescale.operations.expansion.pace import say_pace
from kafka_rescale.operations.expansion.stopped import say_stopped
from kafka_rescale.operations.expansion.switch import say_action
from kafka_rescale.operations.verify.accept import accept as accept_findings
from kafka_rescale.operations.verify.accept import next_step

people = typer.Typer()
Reason = Annotated[str, typer.Option(help="Why. The page and status show it.")]


@people.command()
def accept(
    file: File,
    finding: Annotated[
        list[str],
        typer.Option(help="A finding as prove, verify or callback names it. Repeat the option for more."),
    ],
    reason: Annotated[str, typer.Option(help="Why the findings may be accepted. The report keeps it.")],
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Accept findings exactly as they are. verify still reports them, but they no longer fail a task."""
    application, connection = opened(file, config, Role.ADMIN)
    accepted = accept_findings(application, connection, findings=finding, by=_person(), reason=reason)
    data = {"accepted": [each.model_dump(mode="json") for each in accepted]}
    closing = next_step(application, connection)
    show(Document(data, "\n".join(map(str, accepted)), closing=closing), as_json)


@people.command()
def stopped(file: File, config: Config = None, as_json: AsJson = False) -> None:
    """State that every instance has ended, when the log asks you (`type: manual`). Empties the group at once."""
    word = say_stopped(*opened(file, config, Role.ADMIN))
    show(Document({"group": word.group, "removed": word.removed}, word.told), as_json)


@people.command()
def postpone(
    file: File,
    until: Annotated[
        str, typer.Option(help="The time in ISO 8601. Without it, the switch waits for another order.")
    ] = "",
    reason: Reason = "",
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Let the switch of the expansion in progress wait until a time, and then for the next window."""
    _say(file, config, as_json, POSTPONE, until=until, reason=reason)


@people.command()
def cut_over_now(file: File, reason: Reason = "", config: Config = None, as_json: AsJson = False) -> None:
    """Let the switch of the expansion in progress begin now, whatever the windows of the file are."""
    _say(file, config, as_json, CUT_OVER_NOW, reason=reason)


@people.command()
def cancel(file: File, reason: Reason = "", config: Config = None, as_json: AsJson = False) -> None:
    """End the expansion in progress before its switch. Nothing was stopped, and the copies stay."""
    _say(file, config, as_json, CANCEL, reason=reason)


@people.command()
def pace(
    file: File,
    bytes_per_second: Annotated[
        int | None, typer.Option(min=1, help="Counts keys and values of all tasks of a job. Without it: no limit.")
    ] = None,
    reason: Reason = "",
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Limit the copy and the proof of the expansion in progress. The jobs obey within seconds."""
    _pace(file, config, as_json, LIMIT, bytes_per_second=bytes_per_second, reason=reason)


@people.command()
def pause(file: File, reason: Reason = "", config: Config = None, as_json: AsJson = False) -> None:
    """Pause the copy and the proof of the expansion in progress. They keep their positions."""
    _pace(file, config, as_json, PAUSE, reason=reason)


@people.command()
def resume(file: File, reason: Reason = "", config: Config = None, as_json: AsJson = False) -> None:
    """Let a paused copy go on from where it is."""
    _pace(file, config, as_json, RESUME, reason=reason)


def _pace(
    file: Path,
    config: Path | None,
    as_json: bool,
    action: str,
    bytes_per_second: int | None = None,
    reason: str = "",
) -> None:
    told = say_pace(
        *opened(file, config, Role.ADMIN),
        action,
        by=_person(),
        bytes_per_second=bytes_per_second,
        reason=reason,
    )
    show(Document({"said": told}, told), as_json)


def _say(file: Path, config: Path | None, as_json: bool, action: str, until: str = "", reason: str = "") -> None:
    said = say_action(*opened(file, config, Role.ADMIN), action, by=_person(), until=until, reason=reason)
    show(Document({"said": said}, said), as_json)


def _person() -> str:
    try:
        return f"{getpass.getuser()}@{socket.gethostname()}"
    except (KeyError, OSError):  # In a container the user may have only a number.
        return f"user {os.getuid()}@{socket.gethostname()}"
