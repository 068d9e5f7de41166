"""A lifecycle by a class of the user, for deployments that have an API."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from inspect import signature
from typing import Any

from kafka_rescale.core.application.lifecycles import PythonLifecycle
from kafka_rescale.core.callables import RAISED, named
from kafka_rescale.core.errors import InvalidInput, Outage, RescaleError
from kafka_rescale.lifecycle.instance import Instance
from kafka_rescale.lifecycle.status import status

METHODS = ("start", "stop", "is_running")


class OwnClass:
    """Calls the methods of a class of the user.

    A method may raise any exception. This class turns it into an error that a step can act on.

    :param name: ``module:Name`` of the class, for error texts.
    :param made: an object of the class.
    :param prefix_of: takes an ``application.id``; returns the prefix of its internal topics' names.
    """

    def __init__(self, name: str, made: object, prefix_of: Callable[[str], str] = str) -> None:
        self._name, self._made, self._prefix_of = name, made, prefix_of

    def has(self, method: str) -> bool:
        """Whether the class has an optional method: ``start_gated`` or ``start_held``."""
        return callable(getattr(self._made, method, None))

    def start(self, instance: Instance) -> None:
        """Call ``start``; see :class:`~kafka_rescale.lifecycle.instance.Lifecycle`."""
        self._call("start", instance)

    def start_gated(self, instance: Instance) -> None:
        """Call ``start_gated``; see :func:`~kafka_rescale.lifecycle.factory.gated_start`."""
        self._call("start_gated", instance)

    def start_held(self, instance: Instance) -> None:
        """Call ``start_held``; see :func:`~kafka_rescale.lifecycle.factory.held_start`."""
        self._call("start_held", instance)

    def stop(self, instance: Instance) -> None:
        """Call ``stop``; see :class:`~kafka_rescale.lifecycle.instance.Lifecycle`."""
        self._call("stop", instance)

    def is_running(self, instance: Instance) -> bool:
        """Call ``is_running``; see :class:`~kafka_rescale.lifecycle.instance.Lifecycle`.

        :raises InvalidInput: the method did not return a boolean. A forgotten ``return``, for example, gives None.
        """
        return status(lambda: self._is_running(instance))

    def _is_running(self, instance: Instance) -> bool:
        answer = self._call("is_running", instance)
        if not isinstance(answer, bool):
            raise InvalidInput(
                f"lifecycle method {self._name}.is_running for {instance.application_id}",
                found=repr(answer),
                expected="True or False",
                remedy="Let the method return True or False. If it can't tell, let it raise an error.",
            )
        return answer

    def _call(self, method: str, instance: Instance) -> Any:
        told = replace(instance, internal_topic_prefix=self._prefix_of(instance.application_id))
        try:
            return getattr(self._made, method)(told)
        except RescaleError:
            raise
        except RAISED as error:
            raise Outage(
                f"lifecycle method {self._name}.{method} for {instance.application_id}",
                found=f"{type(error).__name__}: {error}",
                expected="a call that returns",
                remedy="The log has the traceback. Mend the method or what it calls; then retry the task.",
            ) from error


def load(spec: PythonLifecycle, prefix_of: Callable[[str], str] = str) -> OwnClass:
    """Return an object of the class that ``callable: module:Name`` names.

    :param prefix_of: takes an ``application.id``; returns the prefix of its internal topics' names.
    :raises InvalidInput: the class can't be imported, takes arguments, or lacks one of the three methods.
    :raises Outage: the constructor has failed. It may have called something that is away for a moment.
    """
    made = _made(spec.callable)
    missing = [m for m in METHODS if not callable(getattr(made, m, None))]
    if missing:
        raise InvalidInput(
            f"lifecycle {spec.callable!r}",
            found=f"no method {', '.join(missing)}",
            expected="start(instance), stop(instance) and is_running(instance) -> bool",
            remedy="See docs/lifecycle.md.",
        )
    return OwnClass(spec.callable, made, prefix_of)


def _made(name: str) -> Any:
    made_by = named("lifecycle", name, "an importable class without constructor arguments")
    try:
        # Python knows no signature of some classes that have a base in C.
        with suppress(ValueError):
            signature(made_by).bind()
    except TypeError as error:
        raise InvalidInput(
            f"lifecycle {name!r}",
            found=f"{type(error).__name__}: {error}",
            expected="a class that can be made without constructor arguments",
            remedy="Let the class read what it needs from the environment.",
        ) from error
    try:
        return made_by()
    except RescaleError:
        raise
    except RAISED as error:
        raise Outage(
            f"lifecycle {name!r}",
            found=f"{type(error).__name__}: {error}",
            expected="a constructor that returns",
            remedy="The log has the traceback. Mend the constructor or what it calls; then retry the task.",
        ) from error
