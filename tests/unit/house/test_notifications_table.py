"""The guide to notifications: its example works, and it leaves out no event and no part of a notice."""

from __future__ import annotations

import re
from pathlib import Path

import yaml
from kafka_rescale.core.application.notifications import Event
from kafka_rescale.core.expansion.notices import approval
from kafka_rescale.operations.application.load import load_application

from tests.support.application_files import write_application
from tests.support.house.documents import ROOT, rows

TEXT = (ROOT / "docs" / "notifications.md").read_text()


def test_the_example_is_a_valid_application_file(tmp_path: Path) -> None:
    (example,) = re.findall(r"```yaml\n(.+?)```", TEXT, re.DOTALL)
    application = load_application(write_application(tmp_path, **yaml.safe_load(example)))
    assert application.pause_alert_seconds == 60
    assert len(application.notifications_of(Event.LONG_PAUSE)) == 2


def test_every_event_is_explained() -> None:
    assert {name.strip("`") for name, *_ in rows(TEXT, "event | when")} == set(Event)


def test_every_part_of_a_notice_is_named() -> None:
    assert all(f"`{part}`" in TEXT for part in approval("orders", "?", "-").fields())
