"""YAML with the line of every value, for error messages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import yaml

from kafka_rescale.core.application.mistakes import Location, Mistake
from kafka_rescale.core.errors import Complaint, InvalidInput

_INT = "tag:yaml.org,2002:int"
_ODD_NUMBER = re.compile(r"[-+]?(0\d|\d[\d_]*:)")
"""YAML 1.1 reads 012 as an octal number, and 1:30 as a number to base 60."""


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

    def slips(self) -> Iterator[Mistake]:
        """Yield what YAML silently reads in another way than meant: keys that stand twice, and odd numbers."""
        yield from _slips(self.root, (), set())


@dataclass(frozen=True)
class _Child:
    value: yaml.Node
    key_line: int


def parse_yaml(text: str, file: str) -> YamlDocument:
    """Return a document whose root is a mapping.

    The same text is parsed once: while Airflow waits for its DAGs, each kind of DAG asks for each file.

    :param file: name of the file, for the message.
    :raises InvalidInput: the text is not YAML, or has no fields.
    """
    found = _parsed(text, file)
    if isinstance(found, Complaint):
        raise InvalidInput.of(found)
    return replace(found, data=deepcopy(found.data))


@lru_cache(maxsize=512)
def _parsed(text: str, file: str) -> YamlDocument | Complaint:
    root: yaml.Node | None = None
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        data = yaml.safe_load(text)
    except yaml.reader.ReaderError as error:
        return _unreadable(error, text, file)
    except yaml.YAMLError as error:
        return _malformed(error, file)
    except RecursionError:
        return Complaint(
            file,
            found="lists or fields that are nested too deeply to be read",
            expected="YAML",
            remedy="Look for brackets that are never closed, or for spaces in front of lines that grow from line "
            "to line.",
        )
    except Exception as error:  # PyYAML lets Python's own errors through, as for February 30th or `!!bool foo`.
        return _no_such_value(root, error, file)
    if not isinstance(data, dict) or root is None:
        return Complaint(
            f"{file}:1",
            found="no fields" if data is None else type(data).__name__,
            expected="fields such as `application_id:`",
            remedy="See the example in `applications/`.",
        )
    return YamlDocument(data, root)


def _malformed(error: yaml.YAMLError, file: str) -> Complaint:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error)
    return Complaint(
        f"{file}:{mark.line + 1}" if mark else file,
        found=f"malformed YAML ({problem})",
        expected="YAML",
        remedy="Look for a missing quote, bracket or space after a colon, or a tab, at or just above this line.",
    )


def _unreadable(error: yaml.reader.ReaderError, text: str, file: str) -> Complaint:
    return Complaint(
        f"{file}:{text.count(chr(10), 0, error.position) + 1}",
        found=f"the character U+{ord(text[error.position]):04X} ({error.reason})",
        expected="YAML",
        remedy="Delete it: it is invisible, and often comes along with pasted text.",
    )


def _child(node: yaml.Node, part: str | int) -> _Child | None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == str(part):
                return _Child(value, key.start_mark.line)
    elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        return _Child(node.value[part], node.value[part].start_mark.line)
    return None


def _slips(node: yaml.Node, location: Location, seen: set[int]) -> Iterator[Mistake]:
    if id(node) in seen:  # An alias may stand inside the very node that it refers to.
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield from _slips(item, (*location, index), seen)
    elif isinstance(node, yaml.MappingNode):
        yield from _second_keys(node, location)
        for key, value in node.value:
            yield from _slips(value, (*location, key.value), seen)
    elif node.tag == _INT and _ODD_NUMBER.match(node.value):
        number = yaml.constructor.SafeConstructor().construct_object(node)
        found = f"{node.value}, which YAML reads as {number}"
        yield Mistake(location, found, "a decimal number without a leading 0", "Write the number that is meant.")


def _second_keys(node: yaml.MappingNode, location: Location) -> Iterator[Mistake]:
    names: set[str] = set()
    for key, _ in node.value:
        if str(key.value) in names:
            found = f"the field `{key.value}` a second time, in line {key.start_mark.line + 1}"
            yield Mistake((*location, key.value), found, "each field once", "Delete one of the two.")
        names.add(str(key.value))


def _no_such_value(root: yaml.Node | None, error: Exception, file: str) -> Complaint:
    """Return what is wrong with the first scalar that YAML can't read as a value."""
    reason = f" ({error})" if isinstance(error, ValueError) else ""  # other errors only name a step of PyYAML
    for node in _scalars(root):
        try:
            yaml.constructor.SafeConstructor().construct_object(node)
        except Exception:
            return Complaint(
                f"{file}:{node.start_mark.line + 1}",
                found=f"{node.value[:60]!r}, which is none{reason}",
                expected=f"a value of the YAML type {node.tag.rpartition(':')[2]}",
                remedy="Correct it; a text that looks like a date or a number is put between quotes.",
            )
    return Complaint(file, found=str(error), expected="YAML", remedy="Correct the values.")


def _scalars(node: yaml.Node | None) -> Iterator[yaml.ScalarNode]:
    if isinstance(node, yaml.ScalarNode):
        yield node
    elif isinstance(node, yaml.CollectionNode):
        for child in node.value:
            for each in child if isinstance(child, tuple) else (child,):
                yield from _scalars(each)
