"""Lifecycle by shell commands of the user."""

from __future__ import annotations

import logging
import os
import shlex
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from kafka_rescale.core.declared_lifecycles import ShellLifecycle
from kafka_rescale.core.errors import InvalidInput, Outage
from kafka_rescale.lifecycle.instance import Instance

log = logging.getLogger(__name__)

RUNNING, STOPPED = 0, 3


def home() -> Path:
    """Return the directory in which commands run: ``KAFKA_RESCALE_HOME``, or the checkout of this project."""
    return Path(os.environ.get("KAFKA_RESCALE_HOME") or Path(__file__).resolve().parents[3])


class _Inputs:
    """Fills ``{input:orders}`` in; what follows the colon is a format specification to Python."""

    def __init__(self, topics: Mapping[str, str]) -> None:
        self._topics = topics

    def __format__(self, name: str) -> str:
        if name not in self._topics:
            raise ValueError(f"{{input:{name}}}")
        return self._topics[name]


def command_line(template: str, instance: Instance, internal_topic_prefix: str = "") -> list[str]:
    """Return the argument vector of a command with its placeholders filled in; no shell takes part.

    :param internal_topic_prefix: what the names of the instance set's internal topics begin with.
    :raises InvalidInput: the template names an unknown placeholder.
    """
    try:
        filled = template.format(
            application_id=instance.application_id,
            partitions=instance.partitions,
            generation=instance.generation,
            internal_topic_prefix=internal_topic_prefix or instance.application_id,
            input=_Inputs(instance.inputs),
        )
    except (KeyError, IndexError, ValueError) as error:
        raise InvalidInput(
            f"lifecycle command {template!r}",
            found=f"placeholder {error}",
            expected="only {application_id}, {partitions}, {generation}, {internal_topic_prefix} and {input:NAME} "
            "of a declared input",
            remedy="Mend the command in the application file; write {{ and }} for plain braces.",
        ) from None
    return shlex.split(filled)


class ShellCommands:
    """Runs the commands of a ``lifecycle: {type: shell}`` section.

    :param spec: the section of the application file.
    :param prefix_of: what the names of internal topics begin with, by ``application.id``.
    """

    def __init__(self, spec: ShellLifecycle, prefix_of: Callable[[str], str] = str) -> None:
        self._spec, self._prefix_of = spec, prefix_of
        self._last_status: tuple[Instance, int] | None = None

    def start(self, instance: Instance) -> None:
        """Run ``start``; see :class:`~kafka_rescale.lifecycle.instance.Lifecycle`."""
        self._checked(self._spec.start, instance)

    def start_gated(self, instance: Instance) -> None:
        """Run ``start_gated``; see :func:`~kafka_rescale.lifecycle.factory.gated_start`."""
        assert self._spec.start_gated is not None, "asked for although it isn't declared"
        self._checked(self._spec.start_gated, instance)

    def stop(self, instance: Instance) -> None:
        """Run ``stop``; see :class:`~kafka_rescale.lifecycle.instance.Lifecycle`."""
        self._checked(self._spec.stop, instance)

    def is_running(self, instance: Instance) -> bool:
        """Run ``status``: exit code 0 is running, 3 is stopped, anything else is an error."""
        code, output = self._run(self._spec.status, instance)
        if (instance, code) != self._last_status:
            # Asked every second now and then: told when it changes.
            _tell(self._spec.status, instance, code, output)
        self._last_status = instance, code
        if code not in {RUNNING, STOPPED}:
            raise Outage(
                f"lifecycle status of {instance.application_id}",
                found=f"exit code {code} ({output})",
                expected="0 (running) or 3 (stopped)",
                remedy="Run the `status` command of the application file by hand.",
            )
        return code == RUNNING

    def _checked(self, template: str, instance: Instance) -> None:
        code, output = self._run(template, instance)
        _tell(template, instance, code, output)
        if code:
            raise Outage(
                f"lifecycle command {template!r} for {instance.application_id}",
                found=f"exit code {code} ({output})",
                expected="0",
                remedy="Run it by hand on the Airflow worker; then retry the task.",
            )

    def _run(self, template: str, instance: Instance) -> tuple[int, str]:
        # A session of its own: a killed Airflow task must not take the application down with it.
        try:
            done = subprocess.run(
                command_line(template, instance, self._prefix_of(instance.application_id)),
                cwd=home(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=self._spec.timeout_seconds,
                start_new_session=True,
                check=False,
            )
        except FileNotFoundError as error:
            return 127, str(error)
        except subprocess.TimeoutExpired:
            return 124, f"no end within {self._spec.timeout_seconds} s"
        return done.returncode, done.stdout.decode(errors="replace").strip()[-500:]


def _tell(template: str, instance: Instance, code: int, output: str) -> None:
    log.info("%s (%s) -> %s %s", template, instance.application_id, code, output)
