"""Producers that are another application: it is found among files of which some can't be used."""

from __future__ import annotations

from pathlib import Path

import pytest
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.operations import producers
from kafka_rescale.operations.load import load_application

from tests.support.application_files import write_application

HELD_BY_UPSTREAM = {
    "application_id": "downstream",
    "inputs": [{"topic": "orders", "policy": "paused", "producers": {"application": "upstream"}}],
}


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Application files, the first of which can't be used though they may be of the one that is sought."""
    monkeypatch.setenv("KAFKA_RESCALE_APPLICATIONS", str(tmp_path))
    (tmp_path / "a-dangling-link.yaml").symlink_to(tmp_path / "nowhere.yaml")
    (tmp_path / "b-directory.yaml").mkdir()
    (tmp_path / "c-not-text.yaml").write_bytes(b"application_id: upstream\xff\x00")
    (tmp_path / "d-mistake.yaml").write_text("application_id: upstream\npartitions: none")
    write_application(tmp_path, **HELD_BY_UPSTREAM)
    return tmp_path


def test_files_that_can_not_be_read_or_used_are_passed_over(directory: Path) -> None:
    write_application(directory, application_id="upstream")
    producers.check(load_application(directory / "downstream.yaml"))


def test_an_application_without_a_file_that_can_be_used_is_refused(directory: Path) -> None:
    with pytest.raises(InvalidInput) as refused:
        producers.check(load_application(directory / "downstream.yaml"))
    assert str(refused.value) == (
        "producers: found application 'upstream', of which there is no file that can be used; expected "
        "the application_id of another application file. Correct the name, or give `stop:` and `start:` commands "
        "instead."
    )
