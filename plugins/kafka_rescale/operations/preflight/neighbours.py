"""The other application files that name an input or an output of an application."""

from __future__ import annotations

import logging
from collections.abc import Set
from pathlib import Path

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
        named = fields_of(file).get("topology")
    except InvalidInput:
        return False
    # The topics of global stores stand in the topology alone.
    is_file = isinstance(named, str) and len(named.splitlines()) == 1
    text = text_if_readable(file.parent / str(named)) if is_file else ""
    return any(topic in text for topic in topics)
