"""Which files are application files, and what is kept of their texts."""

from __future__ import annotations

from pathlib import Path

import pytest
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.operations.application.load import application_files, load_application
from kafka_rescale.operations.application.yaml_lines import parse_yaml


def test_the_files_are_those_of_the_directory_that_the_environment_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("b.yaml", "a.yml", "a.topology.txt", ".#b.yaml", ".b.yaml"):
        (tmp_path / name).touch()
    monkeypatch.setenv("KAFKA_RESCALE_APPLICATIONS", str(tmp_path))
    assert application_files() == [tmp_path / "a.yml", tmp_path / "b.yaml"]
    monkeypatch.setenv("KAFKA_RESCALE_APPLICATIONS", "/nonexistent")
    with pytest.raises(InvalidInput) as error:
        application_files()
    assert str(error.value) == (
        "environment variable KAFKA_RESCALE_APPLICATIONS: found /nonexistent; expected an existing directory "
        "of application files. Create it, or unset the variable to use `applications/`."
    )


def test_every_file_of_this_repository_is_sound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KAFKA_RESCALE_APPLICATIONS", raising=False)
    assert "flights" in [load_application(file).application_id for file in application_files()]


def test_a_change_of_what_was_read_is_not_read_by_the_next_one() -> None:
    parse_yaml("a: {b: 1}", "shop.yaml").data["a"]["b"] = 2
    assert parse_yaml("a: {b: 1}", "shop.yaml").data == {"a": {"b": 1}}
