"""The pages for trouble quote messages as the program prints them: all fixed parts of one are in one function."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("troubleshooting.md", "runbooks.md")
SHORTEST = 3
NO_MESSAGES = {"…", "what: found …; expected …. What to do.", "producers: {application: …}"}
"""What else the pages have in backticks."""

HOLE = re.compile(r"…|: found |; expected |\. (?=[A-Z])")


@cache
def functions() -> list[list[str]]:
    """The string constants of every function of the source, with the parts of f-strings one by one."""
    trees = (ast.parse(file.read_text()) for file in (ROOT / "plugins" / "kafka_rescale").rglob("*.py"))
    nodes = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    return [_strings(node) for node in nodes]


def _strings(function: ast.FunctionDef) -> list[str]:
    constants = (node.value for node in ast.walk(function) if isinstance(node, ast.Constant))
    return [text for text in constants if isinstance(text, str)]


def quoted(page: str) -> list[str]:
    """The messages of a page: what stands in backticks and has a part left open or `: found` in it."""
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


def test_every_link_from_the_messages_leads_to_a_runbook() -> None:
    headings = re.findall(r"^## (.+)$", (ROOT / "docs" / "runbooks.md").read_text(), re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    linked = re.findall(r"runbooks\.md#([\w-]+)", (ROOT / "docs" / "troubleshooting.md").read_text())
    assert set(linked) <= anchors
    assert len(set(linked)) > 8
