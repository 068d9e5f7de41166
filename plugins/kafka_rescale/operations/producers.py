"""The producers of ``paused`` inputs: held while the inputs are drained and grown, released afterwards."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterator

from kafka_rescale.core.application import Application
from kafka_rescale.core.declared_topics import Input, InputPolicy, Producers
from kafka_rescale.core.errors import InvalidInput, Outage, UnsafeState
from kafka_rescale.kafka.control_topic import ControlTopic
from kafka_rescale.lifecycle.factory import lifecycle_of
from kafka_rescale.lifecycle.instance import Instance, Lifecycle
from kafka_rescale.lifecycle.shell import home
from kafka_rescale.operations.load import application_files, load_application
from kafka_rescale.operations.rescale import Rescale, running_instance


def check(application: Application) -> None:
    """Refuse an application that names producers which can't be found.

    :raises InvalidInput: a named application has no file.
    """
    for _, producers in _declared(application):
        if producers.application is not None:
            _application_named(producers.application)


def hold(rescale: Rescale) -> None:
    """Stop the producers of every ``paused`` input.

    :raises Outage: a command failed.
    :raises UnsafeState: an application that writes the input is being rescaled itself.
    """
    for declared, producers in _declared(rescale.application):
        if producers.application is None:
            _run(producers.stop, declared, "stop")
            continue
        lifecycle, instance = _running(rescale, producers.application)
        lifecycle.stop(instance)
        # A classic member lingers after a clean close; the start that follows would wait for its session timeout.
        rescale.admin.remove_members(instance.application_id)


def release(rescale: Rescale) -> None:
    """Start the producers of every ``paused`` input again.

    :raises Outage: a command failed.
    """
    for declared, producers in _declared(rescale.application):
        if producers.application is None:
            _run(producers.start, declared, "start")
        else:
            lifecycle, instance = _running(rescale, producers.application)
            lifecycle.start(instance)


def _declared(application: Application) -> Iterator[tuple[Input, Producers]]:
    for declared in application.inputs:
        if declared.policy is InputPolicy.PAUSED and declared.producers is not None:
            yield declared, declared.producers


def _running(rescale: Rescale, name: str) -> tuple[Lifecycle, Instance]:
    """Return the running generation of another application of this cluster, and how it is started."""
    application = _application_named(name)
    state = ControlTopic(rescale.connection, name).read()
    if state.journal is not None and state.journal.in_progress:
        raise UnsafeState(
            f"application {name}",
            found=f"an expansion of it in phase {state.journal.told}",
            expected=f"none while it is held as the producer of {rescale.application.application_id}",
            remedy="Let it finish or roll it back; then trigger again.",
        )
    instance = running_instance(application, state.generations)
    return lifecycle_of(application, lambda group: rescale.admin.describe_group(group).is_live), instance


def _application_named(name: str) -> Application:
    for file in application_files():
        try:
            # Called within the pause: of many files, only those that mention the name are worth parsing.
            if name not in file.read_text(errors="replace"):
                continue
            application = load_application(file)
        except (InvalidInput, OSError):
            continue
        if application.application_id == name:
            return application
    raise InvalidInput(
        "producers",
        found=f"application {name!r}, of which there is no file that can be used",
        expected="the application_id of another application file",
        remedy="Correct the name, or give `stop:` and `start:` commands instead.",
    )


def _run(command: str, declared: Input, action: str) -> None:
    done = subprocess.run(
        shlex.split(command),
        cwd=home(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        start_new_session=True,
        check=False,
    )
    if done.returncode:
        raise Outage(
            f"{action} command of the producers of {declared.topic}",
            found=f"exit code {done.returncode} ({done.stderr.decode(errors='replace')[-300:]})",
            expected="0",
            remedy=f"Run it by hand: {command}",
        )
