"""Commands of an application file. Each is one program and its arguments; no shell takes part."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from string import Formatter

from kafka_rescale.core.application.instance import Instance
from kafka_rescale.core.errors import InvalidInput

PLACEHOLDERS = ("application_id", "partitions", "generation", "internal_topic_prefix")

_LITERAL = re.compile(r"\\.|'[^']*'|\"(?:\\.|[^\"\\])*\"", re.DOTALL)
_OPERATOR = re.compile(r"\|[|&]?|&&?|.*;|\d*[<>].*|&>.*")
_EXPANSION = re.compile(r"\$\(|`|\$\{\w+\}?|\$[A-Za-z_]\w*")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


class _Inputs:
    """Fills ``{input:orders}`` in: to Python, the part behind the colon is a format specification."""

    def __init__(self, topics: Mapping[str, str]) -> None:
        self._topics = topics

    def __format__(self, name: str) -> str:
        return self._topics[name]


def filled(template: str, instance: Instance) -> str:
    """Return a lifecycle command with its placeholders filled in.

    :raises InvalidInput: it has other placeholders, or braces that don't match.
    """
    if found := _not_to_be_filled(template, instance):
        raise _malformed(template, found)
    try:
        return template.format(
            application_id=instance.application_id,
            partitions=instance.partitions,
            generation=instance.generation,
            internal_topic_prefix=instance.internal_topic_prefix or instance.application_id,
            input=_Inputs(instance.inputs),
        )
    except (ValueError, LookupError) as error:
        raise _malformed(template, f"a format that can't be applied ({error})") from None


def _not_to_be_filled(template: str, instance: Instance) -> str:
    try:
        fields = [(name, spec) for _, name, spec, _ in Formatter().parse(template) if name is not None]
    except ValueError as error:
        return f"braces that don't match ({error})"
    for name, spec in fields:
        known = spec in instance.inputs if name == "input" else name in PLACEHOLDERS
        if not known:
            return f"the placeholder {{{name}:{spec}}}" if spec else f"the placeholder {{{name}}}"
    return ""


def _malformed(template: str, found: str) -> InvalidInput:
    return InvalidInput(
        f"lifecycle command {template!r}",
        found=found,
        expected="only {application_id}, {partitions}, {generation}, {internal_topic_prefix} and {input:NAME} of "
        "a declared input",
        remedy="Correct the name; write {{ and }} for braces that are meant literally.",
    )


def words(command: str, kind: str = "lifecycle") -> list[str]:
    """Return the argument vector of a command.

    :param kind: whose command it is, for the error.
    :raises InvalidInput: it is empty, a quote is not closed, or it needs a shell.
    """
    try:
        found = shlex.split(command)
    except ValueError as error:
        raise _unreadable(command, kind, f"no end of it ({error})") from None
    if not found:
        raise _unreadable(command, kind, "nothing")
    if syntax := _shell_syntax(command):
        raise InvalidInput(
            f"{kind} command {command!r}",
            found=f"`{syntax}`, which only a shell understands",
            expected="one program with its arguments: no shell takes part",
            remedy=_remedy(syntax),
        )
    return found


def _unreadable(command: str, kind: str, found: str) -> InvalidInput:
    return InvalidInput(
        f"{kind} command {command!r}",
        found=found,
        expected="a program with its arguments",
        remedy="Give one; quotes come in pairs, a single one is written as \\'.",
    )


def _remedy(syntax: str) -> str:
    if _ASSIGNMENT.match(syntax):
        return f"Write `env {syntax}…` for a variable of its environment."
    return "Put the command into a script, or write `sh -c '…'`; quote what is meant literally."


def _shell_syntax(command: str) -> str:
    """Return the first syntax that a shell would act on; quoted text is meant for the program."""
    bare = _LITERAL.sub("_", command)
    operators = [word for word in bare.split() if _OPERATOR.fullmatch(word)]
    expansions = [found[0] for found in _EXPANSION.finditer(bare)]
    assignments = [found[0]] if (found := _ASSIGNMENT.match(bare.lstrip())) else []
    return next(iter([*assignments, *operators, *expansions]), "")
