"""A status that can't be told for a moment is asked for again; one that can never be told is an error."""

from __future__ import annotations

from pathlib import Path

import pytest
from kafka_rescale.core.application.instance import Instance
from kafka_rescale.core.errors import Outage
from kafka_rescale.lifecycle import status as module
from kafka_rescale.lifecycle.factory import lifecycle_of

from tests.support.small_application import application, declared

BLUE = Instance("shop", 1, 4, {})


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Commands run in this directory, and are called again at once."""
    monkeypatch.setenv("KAFKA_RESCALE_HOME", str(tmp_path))
    monkeypatch.setattr(module, "PAUSE_SECONDS", 0.0)
    return tmp_path


def runs(command: str) -> bool:
    shell = {**declared("shop")["lifecycle"], "status": f"sh -c '{command}' {{application_id}}"}
    return lifecycle_of(application("shop", lifecycle=shell), lambda _: False).is_running(BLUE)


@pytest.mark.parametrize(("code", "expected"), [(0, True), (3, False)])
def test_a_command_that_fails_at_first_is_run_again(home: Path, code: int, expected: bool) -> None:
    assert runs(f"echo >>asked; test $(wc -l <asked) -lt 3 && exit 1; exit {code}") is expected
    assert (home / "asked").read_text() == "\n" * 3


def test_a_command_that_goes_on_failing_is_an_outage(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STATUS_SECONDS", 0.1)
    with pytest.raises(Outage, match="found exit code 1 "):
        runs("echo >>asked; exit 1")
    assert len((home / "asked").read_text()) > 1
