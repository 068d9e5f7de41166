"""A notifier of Airflow as a user would write one. It writes each notification into a file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from airflow.sdk import BaseNotifier, Context


class RecordingNotifier(BaseNotifier):
    """
    Append one line of JSON per notification.

    :param file: the file
    :param subject: templated
    :param text: templated
    """

    template_fields: Sequence[str] = ("subject", "text")

    def __init__(
        self, *, file: str, subject: str = "{{ rescale.subject }}", text: str = "{{ rescale.text }}"
    ) -> None:
        super().__init__()
        self.file = file
        self.subject = subject
        self.text = text

    def notify(self, context: Context) -> None:
        """Write it down."""
        rescale: Any = context["rescale"]  # type: ignore[typeddict-item]
        line = {"event": rescale["event"], "subject": self.subject, "text": self.text, "run": rescale["run"]}
        with Path(self.file).open("a") as out:
            out.write(f"{json.dumps(line)}\n")


class BrokenNotifier(BaseNotifier):
    """Can never send anything."""

    def notify(self, context: Context) -> None:
        """Fail."""
        raise ConnectionError("nobody there")


def told(file: Path) -> list[dict[str, str]]:
    """Return the notifications in a file, the oldest first."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def declared(file: Path, *events: str) -> dict[str, Any]:
    """Return an entry of ``notifications:``. Without events, it is for all events."""
    chosen = {"events": list(events)} if events else {}
    return {
        "notifier": "tests.support.airflow.recorded_notices:RecordingNotifier",
        "arguments": {"file": str(file)},
        **chosen,
    }
