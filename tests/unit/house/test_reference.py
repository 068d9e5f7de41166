"""The reference says what the code says: made anew it is the same, and it leaves out nothing of the code."""

from __future__ import annotations

import typing
from functools import cache
from pathlib import Path

import pytest
from kafka_rescale.core.application.clients import DeclaredClient
from kafka_rescale.core.application.common import ApplicationFile
from kafka_rescale.core.application.fields import Strict
from kafka_rescale.core.application.pipeline import DeclaredBackfill, PipelineApplication
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.control.keys import Concern
from kafka_rescale.core.control.lease import Lease
from pydantic import BaseModel

from scripts.create_reference import RECORDS, SECTIONS, pages
from scripts.reference_of_models import NOTES, documented, fields, undescribed

PAGES = (
    "reference.md",
    "reference-dags.md",
    "reference-operators.md",
    "reference-records.md",
    "reference-records-of-pipelines.md",
)
ROOT = Path(__file__).resolve().parents[3]
IN_THE_FILE: tuple[type[BaseModel], ...] = (
    Application,
    DeclaredBackfill,
    PipelineApplication,
    DeclaredClient,
    *(model for models in SECTIONS.values() for model in models),
)
VALUES = {
    note: typing.get_args(field.annotation)
    for model in IN_THE_FILE
    for name, field in model.model_fields.items()
    if typing.get_origin(field.annotation) is typing.Literal
    and "`: " in NOTES.get(note := f"{model.__name__}.{name}", "")
}
"""The values of each field whose note begins with a value and its meaning."""


@cache
def made() -> dict[str, str]:
    return pages()


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_what_the_code_says_now(name: str) -> None:
    """If not: PYTHONPATH=plugins .venv/bin/python -m scripts.create_reference"""
    assert (ROOT / "docs" / name).read_text() == made()[name]


def test_it_is_not_while_a_field_has_another_name() -> None:
    class Renamed(Strict):
        application: str

    assert fields(Renamed) not in made()["reference.md"]
    assert fields(Application) in made()["reference.md"]


def unexplained(text: str, values: tuple[str, ...]) -> list[str]:
    """Return the values to which a note gives no meaning."""
    return [value for value in values if f"`{value}`:" not in text]


@pytest.mark.parametrize(("note", "values"), VALUES.items())
def test_a_note_that_explains_some_values_of_a_field_explains_each(note: str, values: tuple[str, ...]) -> None:
    assert unexplained(NOTES[note], values) == []


def test_a_value_without_a_meaning_is_found() -> None:
    note = "Repartition.count"
    assert unexplained(NOTES[note].replace("`joined`:", "`joined`"), VALUES[note]) == ["joined"]


@pytest.mark.parametrize("model", IN_THE_FILE, ids=lambda model: model.__name__)
def test_every_field_of_the_application_file_is_described(model: type[BaseModel]) -> None:
    assert undescribed(model) == []


def test_a_field_without_a_description_is_found() -> None:
    class Bare(Strict):
        """One.

        :param said: yes.
        """

        said: int
        silent: int

    assert undescribed(Bare) == ["silent"]


def test_no_note_stands_beside_a_docstring_or_without_a_field() -> None:
    by_name = {model.__name__: model for model in IN_THE_FILE}
    for note in NOTES:
        model, _, field = note.partition(".")
        assert field in by_name[model].model_fields
        assert field not in documented(by_name[model]).params


def test_every_model_of_the_application_file_has_its_section() -> None:
    models = [*Strict.__subclasses__(), *ApplicationFile.__subclasses__()]
    found = {model for model in models if model.__module__.startswith("kafka_rescale.core.")}
    assert found - {ApplicationFile} == set(IN_THE_FILE)


def test_every_record_of_the_control_topic_has_its_fields() -> None:
    assert set(RECORDS) == set(Concern)
    assert fields(Lease) in made()["reference-records.md"]


@pytest.mark.parametrize(
    "kind", ["expand", "rollback", "retire", "bridge", "watch", "snapshot", "process", "keep_warm"]
)
def test_every_dag_of_an_application_is_listed(kind: str) -> None:
    assert f"### `{kind}_<application>`" in made()["reference-dags.md"]


def test_the_chain_and_every_command_are_listed() -> None:
    text = made()["reference-dags.md"]
    assert "### `expand_chain_<name>`" in text
    for command in ("validate", "acls", "describe", "plan", "status", "verify", "add-stream-thread"):
        assert f"**`{command}`**" in text
