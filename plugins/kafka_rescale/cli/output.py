"""Print one document, as JSON for programs or as tables for people."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from kafka_rescale.core.errors import RescaleError

WIDE = 10_000
"""Width in columns if the output is not a terminal: more than a row needs.

Topic names must stay whole, so that grep finds them.
"""


@dataclass(frozen=True)
class Rows:
    """A table.

    :param header: The names of the columns.
    """

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[object]]


@dataclass(frozen=True)
class Document:
    """The output of a command.

    :param data: What ``--json`` prints.
    :param text: Lines before the tables.
    :param closing: Lines after the tables.
    """

    data: Mapping[str, Any]
    text: str = ""
    tables: Sequence[Rows] = field(default_factory=tuple)
    closing: str = ""


def show(document: Document, as_json: bool) -> None:
    """Print a document."""
    console = _console()
    if as_json:
        console.print(json.dumps(document.data, indent=2, sort_keys=True), soft_wrap=True)
        return
    if document.text:
        console.print(document.text, soft_wrap=True)
    for rows in document.tables:
        if rows.rows:
            # Within the table, it would be folded to the width of the rows.
            console.print(rows.title, style="table.title", soft_wrap=True)
            console.print(_table(rows))
    if document.closing:
        console.print(document.closing, soft_wrap=True)


def failed(error: RescaleError) -> None:
    """Print an error to stderr, and nothing else."""
    _console(stderr=True).print(str(error), soft_wrap=True)


def progress(line: str) -> None:
    """Print to stderr what a command waits for. Only its result goes to stdout."""
    _console(stderr=True).print(line, soft_wrap=True)


def _console(*, stderr: bool = False) -> Console:
    console = Console(stderr=stderr, markup=False, highlight=False, emoji=False)
    if not console.is_terminal:
        console.width = WIDE
    return console


def _table(rows: Rows) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    numbers = [all(isinstance(row[i], int | None) for row in rows.rows) for i in range(len(rows.header))]
    for name, is_number in zip(rows.header, numbers, strict=True):
        table.add_column(name, justify="right" if is_number else "left", overflow="fold")
    for row in rows.rows:
        table.add_row(*map(_cell, row))
    return table


def _cell(value: object) -> str:
    """Return the text of a cell. An unknown value shows as a dash, not as 0."""
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else str(value)
