"""Texts that an application file names or contains: the printed topology, and Avro schemas."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kafka_rescale.core.application.field_errors import shown
from kafka_rescale.core.application.mistakes import Mistake
from kafka_rescale.core.errors import Complaint, InvalidInput, Unreadable
from kafka_rescale.core.formats.avro_schemas import NUMBERED
from kafka_rescale.core.formats.serdes import AVRO, AVRO_CONFLUENT
from kafka_rescale.core.topology.describe import parse_describe

_LONGEST_NAME = 255
"""Longest name of a file on common file systems."""
_SAVE_IT = "Save what Topology#describe() prints there, or paste it after `topology: |`."


def with_texts(data: Mapping[str, Any], path: Path) -> tuple[dict[str, Any], list[Mistake]]:
    """Replace the names of files in an application file by their texts.

    :param data: the fields of the file, unchecked.
    :param path: path of the file; files that it names are looked up next to it.
    :return: the fields with the texts, and the mistakes in the texts. If there is no text, the name stays.
    :raises Unreadable: a file that is named there can't be read, at the moment or at all.
    """
    mistakes: list[Mistake] = []
    fields = dict(data)
    _resolve_topology(fields, path, mistakes)
    _resolve_schemas(fields, path, mistakes)
    return fields, mistakes


def read_text(path: Path) -> str:
    """Return the text of a file.

    :raises Unreadable: the system can't read it, at the moment or at all.
    :raises InvalidInput: it is not UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8-sig")  # with or without the byte order mark that Windows writes
    except OSError as error:
        raise Unreadable.of(_complaint(path, str(error.strerror))) from None
    except UnicodeDecodeError:
        raise InvalidInput.of(_complaint(path, "bytes that are not UTF-8")) from None


def text_if_readable(path: Path) -> str:
    """Return the text of a file whatever its bytes are, or an empty text if the system can't read it."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def _complaint(path: Path, found: str) -> Complaint:
    return Complaint(str(path), found, "a readable file in UTF-8", "Correct the path or the file.")


def _resolve_topology(fields: dict[str, Any], path: Path, mistakes: list[Mistake]) -> None:
    given, where = fields.get("topology"), "the text"
    if "topology" in fields and given in (None, "") and not fields.get("subtopologies"):
        expected = "a file with what Topology#describe() prints, or the text itself"
        mistakes.append(Mistake(("topology",), "nothing", expected, _SAVE_IT))
        # Keep the field: a missing field would be reported a second time.
        fields["topology"] = ""
        return
    if not isinstance(given, str):
        return
    if "Sub-topology:" not in given and "\n" not in given.strip():
        try:
            fields["topology"], where = _text_beside(path, given, _SAVE_IT), given
        except Unreadable:
            raise
        except InvalidInput as error:
            mistakes.append(Mistake.of(("topology",), error.complaint))
            return
    try:
        parse_describe(fields["topology"], _lists_in(fields.get("source_patterns")))
    except InvalidInput as error:
        # `topology, line 6` counts the lines of the text, and the text often stands in another file.
        where = ", ".join([where, *error.what.split(", ")[1:]])
        mistakes.append(Mistake(("topology",), f"in {where}: {error.found}", error.expected, error.remedy))


def _lists_in(patterns: object) -> dict[str, list[str]]:
    """Return the topics that a file lists per pattern. Skip whatever has a wrong shape: the model reports it."""
    given = patterns.items() if isinstance(patterns, dict) else ()
    return {
        str(pattern): [str(topic) for topic in topics] for pattern, topics in given if isinstance(topics, list)
    }


def _resolve_schemas(fields: dict[str, Any], path: Path, mistakes: list[Mistake]) -> None:
    section = fields.get("snapshots")
    if not isinstance(section, dict):
        return
    stores = section.get("stores")
    if not isinstance(stores, list) or not all(isinstance(store, dict) for store in stores):
        return
    resolved = [dict(store) for store in stores]
    for index, store in enumerate(resolved):
        for field in ("key", "value"):
            kind, separator, named = str(store.get(field, "")).partition(":")
            if separator and kind in {AVRO, AVRO_CONFLUENT} and named.strip():
                try:
                    store[field] = f"{kind}:{_with_schemas(path, named)}"
                except Unreadable:
                    raise
                except InvalidInput as error:
                    mistakes.append(Mistake.of(("snapshots", "stores", index, field), error.complaint))
    fields["snapshots"] = {**section, "stores": resolved}


def _with_schemas(path: Path, named: str) -> str:
    """Return a schema, or several with their ids, from the names of their files."""
    if not NUMBERED.match(named):
        return _schema(path, named)
    if any(mark in named for mark in '{["'):
        return named
    parts = [part.partition("=") for part in named.split(",")]
    return ",".join(f"{number}={_schema(path, file)}" for number, _, file in parts)


def _schema(path: Path, named: str) -> str:
    given = named.strip()
    return named if given[:1] in {*'{["'} else _text_beside(path, given, "Save the Avro schema there.")


def _text_beside(path: Path, named: str, remedy: str) -> str:
    file = path.parent / named
    # `Path.is_file` raises if a name is too long. A text of one line that is not a topology may be too long.
    if os.path.isfile(file):
        return read_text(file)
    raise InvalidInput(
        str(file),
        found=f"{named!r}, looked for as {file}" if len(named) <= _LONGEST_NAME else shown(named),
        expected=f"a file, its path as seen from {path.name}, or the text itself",
        remedy=remedy,
    )
