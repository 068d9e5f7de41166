"""The other application files that name a topic of an application, a successor or a later generation."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Set
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.application.topics import Input, InputPolicy
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.plan.shared_inputs import Declared, Unusable
from kafka_rescale.core.preflight.described import Described
from kafka_rescale.core.topology.patterns import matching
from kafka_rescale.operations.application.load import application_files, fields_of, load_application, topology_of
from kafka_rescale.operations.application.texts import text_if_readable

log = logging.getLogger(__name__)


class Neighbours(NamedTuple):
    """What the other application files tell.

    :param declared: the applications that read or write a topic of this one, or may read or make a successor, and
        those that may have the name of a later generation.
    :param unusable: the files that can't be used, and that name such a topic as an input.
    """

    declared: tuple[Declared, ...] = ()
    unusable: tuple[Unusable, ...] = ()


def neighbours(known: Described) -> Neighbours:
    """Return the applications that read or write a topic of this one, as their files beside this one declare them.

    Applications that may be named as a later generation of this one would be are returned as well. If a file can't
    be used and names one of the topics, the log says why.
    """
    own = known.application
    topics = {known.full_name(i.topic) for i in own.inputs} | {o.topic for o in own.outputs}
    topics |= set(known.successors().values())
    found: list[Declared] = []
    unusable: list[Unusable] = []
    try:
        files = application_files()
    except InvalidInput:
        return Neighbours()
    for file in files:
        # Most files have nothing to do with this application, and need not be loaded.
        if not _names_any(file, topics) and f"{own.application_id}-g" not in text_if_readable(file):
            continue
        try:
            other = load_application(file)
            if other.application_id != own.application_id:
                found.append((other, topology_of(other)))
        except Exception as error:  # also what a function of the user raises when its module is imported
            log.warning("It is not known whether the application of %s reads or writes a topic: %s", file, error)
            unusable.append(Unusable(str(file), _may_be_read(file, own, topics)))
    return Neighbours(tuple(found), tuple(each for each in unusable if each.topics))


def _may_be_read(file: Path, own: Application, topics: Set[str]) -> frozenset[str]:
    """Return the topics that a file that can't be used names as inputs, as far as that can be told."""
    try:
        fields = fields_of(file)
    except InvalidInput:
        return _named_in(text_if_readable(file), topics)
    on_default = Application.model_fields["kafka_conn_id"].default
    elsewhere = fields.get("kafka_conn_id", on_default) != own.kafka_conn_id
    if elsewhere or fields.get("application_id") == own.application_id:
        return frozenset()
    text = str(
        fields.get("inputs") or [fields.get("subtopologies"), fields.get("topology"), _topology(file, fields)]
    )
    inputs = list(_repartitioned(fields))
    succeeding = {topic for topic in topics if any(i.may_be_followed_by(topic) for i in inputs)}
    return _named_in(text, topics) | succeeding


def _named_in(text: str, topics: Set[str]) -> frozenset[str]:
    """Return the topics whose whole names stand in a text."""
    return frozenset(topics & set(re.findall(r"[A-Za-z0-9._-]+", text)))


def _names_any(file: Path, topics: Set[str]) -> bool:
    """Return whether a file, or the file that its ``topology:`` names, has one of the names in it.

    A file that goes on with one of the topics, or reads it by a pattern, counts as well.
    """
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
    if any(matching(pattern, topics) for pattern in _patterns(fields)):
        return True
    # The topics of global stores stand in the topology alone.
    text = _topology(file, fields)
    return any(topic in text for topic in topics)


def _topology(file: Path, fields: Mapping[str, Any]) -> str:
    """Return the text of the file that a file's ``topology:`` names; empty if it names none."""
    named = fields.get("topology")
    is_file = isinstance(named, str) and len(named.splitlines()) == 1
    return text_if_readable(file.parent / str(named)) if is_file else ""


def _patterns(fields: Mapping[str, Any]) -> Iterator[str]:
    """Yield the patterns of sources that a file declares, as far as they can be used."""
    given = fields.get("source_patterns")
    for pattern in given if isinstance(given, dict) else ():
        with suppress(re.error, TypeError):
            re.compile(pattern)
            yield pattern


def _repartitioned(fields: Mapping[str, Any]) -> Iterator[Input]:
    """Yield the ``repartitioned`` inputs that a file declares, with what decides the names of successors."""
    given = fields.get("inputs")
    for each in given if isinstance(given, list) else ():
        if isinstance(each, dict) and each.get("policy") == InputPolicy.REPARTITIONED:
            with suppress(ValidationError):
                yield Input(topic=each.get("topic", ""), policy=each["policy"], successor=each.get("successor"))
