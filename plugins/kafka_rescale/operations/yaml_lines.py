"""YAML with the line of every value, as error messages need it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.mistakes import Location, Mistake


@dataclass(frozen=True)
class YamlDocument:
    """A parsed document: ``data`` for the program, ``root`` for the lines."""

    data: Any
    root: yaml.Node

    def line_of(self, location: Location) -> int:
        """Return the line, counted from 1, of the deepest part of a path that the document has."""
        node, line = self.root, self.root.start_mark.line
        for part in location:
            child = _child(node, part)
            if child is not None:
                node, line = child.value, child.key_line
        return line + 1

    def duplicate_fields(self) -> Iterator[Mistake]:
        """Yield keys that one mapping has twice; YAML readers would silently keep the last."""
        yield from _duplicates(self.root, ())


@dataclass(frozen=True)
class _Child:
    value: yaml.Node
    key_line: int


def parse_yaml(text: str, file: str) -> YamlDocument:
    """Return a document whose root is a mapping.

    :param file: name of the file, for the message.
    :raises InvalidInput: the text is no YAML, or has no fields.
    """
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise _malformed(error, file) from None
    if not isinstance(data, dict) or root is None:
        raise InvalidInput(
            f"{file}:1",
            found="no fields" if data is None else type(data).__name__,
            expected="fields such as `application_id:`",
            remedy="See the example in `applications/`.",
        )
    return YamlDocument(data, root)


def _malformed(error: yaml.YAMLError, file: str) -> InvalidInput:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error)
    return InvalidInput(
        f"{file}:{mark.line + 1}" if mark else file,
        found=f"malformed YAML ({problem})",
        expected="YAML",
        remedy="Look for a missing quote, bracket or space after a colon at or just above this line.",
    )


def _child(node: yaml.Node, part: str | int) -> _Child | None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == str(part):
                return _Child(value, key.start_mark.line)
    elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        return _Child(node.value[part], node.value[part].start_mark.line)
    return None


def _duplicates(node: yaml.Node, location: Location) -> Iterator[Mistake]:
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield from _duplicates(item, (*location, index))
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if key.value in seen:
                found = f"the field `{key.value}` a second time, in line {key.start_mark.line + 1}"
                yield Mistake((*location, key.value), found, "each field once", "Delete one of the two.")
            seen.add(str(key.value))
            yield from _duplicates(value, (*location, key.value))
