"""A lifecycle by commands of the user."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Callable
from dataclasses import replace

from kafka_rescale.core.application.commands import filled, words
from kafka_rescale.core.application.lifecycles import ShellLifecycle
from kafka_rescale.core.errors import Outage
from kafka_rescale.lifecycle.instance import Instance
from kafka_rescale.lifecycle.programs import run
from kafka_rescale.lifecycle.status import status

log = logging.getLogger(__name__)

RUNNING, STOPPED = 0, 3


def command_line(template: str, instance: Instance) -> list[str]:
    """Return the argument vector of a command with its placeholders filled in. No shell reads the command.

    :raises InvalidInput: the command can't be split into words.
    """
    return words(filled(template, instance))


class ShellCommands:
    """Runs the commands of a ``lifecycle: {type: shell}`` section.

    :param spec: the ``lifecycle`` section of the application file.
    :param prefix_of: takes an ``application.id``; returns the prefix of its internal topics' names.
    """

    def __init__(self, spec: ShellLifecycle, prefix_of: Callable[[str], str] = str) -> None:
        self._spec, self._prefix_of = spec, prefix_of
        self._last_status: tuple[Instance, int] | None = None

    def start(self, instance: Instance) -> None:
        """Run ``start``; see :class:`~kafka_rescale.lifecycle.instance.Lifecycle`."""
        self._call(self._spec.start, instance)

    def start_gated(self, instance: Instance) -> None:
        """Run ``start_gated``; see :func:`~kafka_rescale.lifecycle.factory.gated_start`."""
        assert self._spec.start_gated is not None, "start_gated is called, but the file does not declare it"
        self._call(self._spec.start_gated, instance)

    def start_held(self, instance: Instance) -> None:
        """Run ``start_held``; see :func:`~kafka_rescale.lifecycle.factory.held_start`."""
        assert self._spec.start_held is not None, "start_held is called, but the file does not declare it"
        self._call(self._spec.start_held, instance)

    def stop(self, instance: Instance) -> None:
        """Run ``stop``; see :class:`~kafka_rescale.lifecycle.instance.Lifecycle`."""
        self._call(self._spec.stop, instance, may_outlive=False)

    def is_running(self, instance: Instance) -> bool:
        """Run ``status``. Exit code 0 means running, 3 means stopped; any other code is an error."""
        return status(lambda: self._is_running(instance))

    def _is_running(self, instance: Instance) -> bool:
        line = self._line(self._spec.status, instance)
        code, output = run(line, self._spec.timeout_seconds, may_outlive=False)
        if (instance, code) != self._last_status:
            # Some waits ask every second. The log gets an answer only when it differs from the last one.
            _tell(line, code, output)
        self._last_status = instance, code
        if code not in {RUNNING, STOPPED}:
            raise Outage(
                f"lifecycle status of {instance.application_id}",
                found=f"exit code {code} ({output})",
                expected="0 (running) or 3 (stopped)",
                remedy="Run the `status` command of the application file by hand.",
            )
        return code == RUNNING

    def _call(self, template: str, instance: Instance, *, may_outlive: bool = True) -> None:
        line = self._line(template, instance)
        code, output = run(line, self._spec.timeout_seconds, may_outlive=may_outlive)
        _tell(line, code, output)
        if code:
            raise Outage(
                f"lifecycle command `{shlex.join(line)}` for {instance.application_id}",
                found=f"exit code {code} ({output})",
                expected="0",
                remedy="Run the command by hand on the Airflow worker; then retry the task.",
            )

    def _line(self, template: str, instance: Instance) -> list[str]:
        told = replace(instance, internal_topic_prefix=self._prefix_of(instance.application_id))
        return command_line(template, told)


def _tell(line: list[str], code: int, output: str) -> None:
    """Log a command as it was run, so that a person can run it by hand."""
    log.info("%s -> %s %s", shlex.join(line), code, output)
