"""The lifecycle that an application file declares."""

from __future__ import annotations

from collections.abc import Callable

from kafka_rescale.core.application import Application, ManualLifecycle, ShellLifecycle
from kafka_rescale.lifecycle import python
from kafka_rescale.lifecycle.instance import Lifecycle
from kafka_rescale.lifecycle.manual import Person
from kafka_rescale.lifecycle.shell import ShellCommands


def lifecycle_of(application: Application, has_members: Callable[[str], bool]) -> Lifecycle:
    """Return the lifecycle of an application.

    :param has_members: whether a consumer group has live members, by name of the group.
    """
    spec = application.lifecycle
    if isinstance(spec, ShellLifecycle):
        return ShellCommands(spec, application.internal_prefix)
    if isinstance(spec, ManualLifecycle):
        return Person(spec, has_members)
    return python.load(spec)
