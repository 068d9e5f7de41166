"""The pages for trouble quote messages as the program prints them: one function has all fixed parts of one."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.support.house.sources import parsed_file

ROOT = Path(__file__).resolve().parents[3]
PAGES = ("troubleshooting.md", "runbooks.md")
SHORTEST = 3
ERRORS = {"Refused", "UnsafeState", "Outage", "TimedOut", "Fenced", "LeaseHeld"}
NO_MESSAGES = {
    "…",
    "what: found …; expected …. What to do.",
    "Timed out after … s waiting for … to …",
    "Timed out after … s waiting for …",
    "producers: {application: …}",
}
"""Other texts that the pages have in backticks."""

HOLE = re.compile(r"Timed out after … s waiting for |…|: found |; expected |\. (?=[A-Z])")


@cache
def functions() -> list[list[str]]:
    """The string constants of every function of the source, with the parts of f-strings one by one."""
    trees = (parsed_file(file) for file in (ROOT / "plugins" / "kafka_rescale").rglob("*.py"))
    nodes = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    return [_strings(node) for node in nodes]


def _strings(function: ast.AST) -> list[str]:
    constants = (node.value for node in ast.walk(function) if isinstance(node, ast.Constant))
    return [text for text in constants if isinstance(text, str)]


def quoted(page: str) -> list[str]:
    """The messages of a page: texts in backticks with an open part (…) or with `: found`."""
    spans = re.findall(r"`([^`]+)`", re.sub(r"^```.*?^```", "", page, flags=re.DOTALL | re.MULTILINE))
    return [span for span in spans if ("…" in span or ": found " in span) and span not in NO_MESSAGES]


def fragments(message: str) -> list[str]:
    """The fixed parts of a message that are long enough to say something."""
    parts = (part.strip(" .,;:()'`") for part in HOLE.split(message))
    return [part for part in parts if len(part) >= SHORTEST]


def says(message: str) -> bool:
    """Whether one function has every fixed part of a message."""
    return bool(parts := fragments(message)) and any(
        all(any(part in text for text in texts) for part in parts) for texts in functions()
    )


@pytest.mark.parametrize("page", PAGES)
def test_every_quoted_message_is_in_the_source(page: str) -> None:
    messages = quoted((ROOT / "docs" / page).read_text())
    assert len(messages) > 10
    assert [message for message in messages if not says(message)] == []


@pytest.mark.parametrize(
    "message",
    [
        "pause of …: found more then … s",
        "lag gate of …: found …; expected another run's expansion",
        "lease of …: found a rescale to … partitions",
        "…: found …",
    ],
)
def test_a_message_that_the_program_does_not_print_is_found(message: str) -> None:
    assert quoted(f"| `{message}` | |") == [message]
    assert not says(message)


def raised(directory: str) -> list[list[str]]:
    """The string constants of every error that a person may see, by where it is made."""
    files = (ROOT / "plugins" / "kafka_rescale" / directory).rglob("*.py")
    nodes = (node for file in files for node in ast.walk(parsed_file(file)))
    calls = (node for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name))
    made = (_strings(call) for call in calls if isinstance(call.func, ast.Name) and call.func.id in ERRORS)
    # An error without its own text is made from the arguments of its function.
    return [texts for texts in made if texts]


def unexplained(errors: list[list[str]], text: str) -> list[str]:
    """The errors that fit no quoted message of a text. Each is shown by one of its strings."""
    messages = [parts for message in quoted(text) if (parts := fragments(message))]
    return [
        max(texts, key=len)
        for texts in errors
        if not any(all(any(part in text for text in texts) for part in parts) for parts in messages)
    ]


@pytest.mark.parametrize("directory", ["operations", "spark", "lifecycle", "airflow"])
def test_every_error_of_a_step_is_explained(directory: str) -> None:
    text = "\n".join((ROOT / "docs" / page).read_text() for page in PAGES)
    assert unexplained(raised(directory), text) == []


def test_an_error_that_is_not_explained_is_found() -> None:
    said = ["pause of ", "more than ", " s", "promotion in time"]
    assert unexplained([said], "`pause of …: found more than … s`") == []
    assert unexplained([said], "`pause of …: found less than … s`") == ["promotion in time"]


def test_every_link_from_the_messages_leads_to_a_runbook() -> None:
    headings = re.findall(r"^## (.+)$", (ROOT / "docs" / "runbooks.md").read_text(), re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    linked = re.findall(r"runbooks\.md#([\w-]+)", (ROOT / "docs" / "troubleshooting.md").read_text())
    assert set(linked) <= anchors
    assert len(set(linked)) > 8
