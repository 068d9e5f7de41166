"""The other application files that name an input or an output of an application."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Set
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from kafka_rescale.core.application.topics import Input, InputPolicy
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.plan.shared_inputs import Declared
from kafka_rescale.core.preflight.described import Described
from kafka_rescale.operations.application.load import application_files, fields_of, load_application, topology_of
from kafka_rescale.operations.application.texts import text_if_readable

log = logging.getLogger(__name__)


def neighbours(known: Described) -> tuple[Declared, ...]:
    """Return the applications that read or write a topic of this one, as their files beside this one declare them.

    A file that can't be used is left out. If it names one of the topics, the log says so.
    """
    own = known.application
    topics = {known.full_name(i.topic) for i in own.inputs} | {o.topic for o in own.outputs}
    found: list[Declared] = []
    try:
        files = application_files()
    except InvalidInput:
        return ()
    for file in files:
        # Most files have nothing to do with this application, and need not be loaded.
        if not _names_any(file, topics):
            continue
        try:
            other = load_application(file)
            if other.application_id != own.application_id:
                found.append((other, topology_of(other)))
        except Exception as error:  # also what a function of the user raises when its module is imported
            log.warning("It is not known whether the application of %s reads or writes a topic: %s", file, error)
    return tuple(found)


def _names_any(file: Path, topics: Set[str]) -> bool:
    """Return whether a file, or the file that its ``topology:`` names, has one of the names in it."""
    own_text = text_if_readable(file)
    if any(topic in own_text for topic in topics):
        return True
    try:
        fields = fields_of(file)
    except InvalidInput:
        return False
    # A file goes on to name an input of which a successor is read.
    if any(each.may_be_followed_by(topic) for each in _repartitioned(fields) for topic in topics):
        return True
    named = fields.get("topology")
    # The topics of global stores stand in the topology alone.
    is_file = isinstance(named, str) and len(named.splitlines()) == 1
    text = text_if_readable(file.parent / str(named)) if is_file else ""
    return any(topic in text for topic in topics)


def _repartitioned(fields: Mapping[str, Any]) -> Iterator[Input]:
    """Yield the ``repartitioned`` inputs that a file declares, with what decides the names of successors."""
    given = fields.get("inputs")
    for each in given if isinstance(given, list) else ():
        if isinstance(each, dict) and each.get("policy") == InputPolicy.REPARTITIONED:
            with suppress(ValidationError):
                yield Input(topic=each.get("topic"), policy=each["policy"], successor=each.get("successor"))
