"""The lifecycle that an application file declares."""

from __future__ import annotations

from collections.abc import Callable

from kafka_rescale.core.application.lifecycles import ManualLifecycle, ShellLifecycle
from kafka_rescale.core.application.streams import Application
from kafka_rescale.lifecycle.instance import Instance, Lifecycle
from kafka_rescale.lifecycle.manual import Person
from kafka_rescale.lifecycle.python import OwnClass, load
from kafka_rescale.lifecycle.shell import ShellCommands

Start = Callable[[Instance], None]


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


def stop_in_time(lifecycle: Lifecycle, instance: Instance, seconds: float) -> None:
    """Stop an instance set within a pause. Only a person is waited for no longer than the pause may last.

    A command or a method has a limit of its own: broken off, it might go on stopping what is started again.

    :param seconds: how long the pause may still last.
    :raises Outage: the instance set could not be stopped in time.
    """
    if isinstance(lifecycle, Person):
        lifecycle.stop(instance, seconds)
    else:
        lifecycle.stop(instance)


def gated_start(application: Application, lifecycle: Lifecycle) -> Start | None:
    """Return the call that starts an instance set behind the warm-up gate; None if it is not declared.

    :param lifecycle: the lifecycle that ``lifecycle_of`` returned.
    """
    return _declared(application, lifecycle, "start_gated")


def held_start(application: Application, lifecycle: Lifecycle) -> Start | None:
    """Return the call that starts an instance set behind the hold gate; None if it is not declared.

    :param lifecycle: the lifecycle that ``lifecycle_of`` returned.
    """
    return _declared(application, lifecycle, "start_held")


def _declared(application: Application, lifecycle: Lifecycle, name: str) -> Start | None:
    if isinstance(lifecycle, OwnClass):
        is_declared = lifecycle.has(name)
    else:
        is_declared = getattr(application.lifecycle, name, None) is not None
    call: Start | None = getattr(lifecycle, name, None)
    return call if is_declared and callable(call) else None
