"""The lifecycle that an application file declares."""

from __future__ import annotations

from collections.abc import Callable

from kafka_rescale.core.application.lifecycles import ManualLifecycle, ShellLifecycle
from kafka_rescale.core.application.streams import Application
from kafka_rescale.lifecycle.instance import Instance, Lifecycle
from kafka_rescale.lifecycle.manual import Person
from kafka_rescale.lifecycle.python import OwnClass, load
from kafka_rescale.lifecycle.shell import ShellCommands


def lifecycle_of(application: Application, has_members: Callable[[str], bool]) -> Lifecycle:
    """Return the lifecycle of an application.

    :param has_members: takes the name of a consumer group; returns whether the group has live members.
    """
    spec = application.lifecycle
    if isinstance(spec, ShellLifecycle):
        return ShellCommands(spec, application.internal_prefix)
    if isinstance(spec, ManualLifecycle):
        return Person(spec, has_members)
    return load(spec, application.internal_prefix)


def gated_start(application: Application, lifecycle: Lifecycle) -> Callable[[Instance], None] | None:
    """Return the call that starts an instance set behind the warm-up gate.

    The answer is None if the application file declares no such start.

    :param lifecycle: the lifecycle that ``lifecycle_of`` returned.
    """
    if isinstance(lifecycle, OwnClass):
        return lifecycle.start_gated if lifecycle.has_gate else None
    declared = getattr(application.lifecycle, "start_gated", None) is not None
    call: Callable[[Instance], None] | None = getattr(lifecycle, "start_gated", None)
    return call if declared and callable(call) else None
